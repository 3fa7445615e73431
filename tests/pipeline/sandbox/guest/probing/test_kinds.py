"""Kinds of parameters by name."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.sandbox.guest.probing.kinds import SIZES, kind_of, snake

NAMES = {
    "flag": "use_bias return_attention bias inplace batch_first align_corners",
    "image": "image_size img_size input_resolution imgSize",
    "map": "feat_size fmap_size",
    "frames": "num_frames frames",
    "patch": "patch_size patch patch_height",
    "heads": "heads num_heads n_head nhead h",
    "head_dim": "dim_head head_dim d_k key_dim headDim head_channels",
    "chosen": "top_k topk topK num_experts_per_tok",
    "groups": "groups num_groups cardinality",
    "kernel": "kernel_size ksize k conv_kernel",
    "stride": "stride strides",
    "padding": "padding pad",
    "dilation": "dilation",
    "window": "window_size ws_window",
    "dropout": "dropout drop_path attn_drop p dropout_prob",
    "epsilon": "eps epsilon norm_eps",
    "classes": "num_classes nclass n_labels",
    "vocabulary": "vocab_size num_embeddings num_tokens codebook_size",
    "length": "seq_len max_len block_size num_patches max_seq_len",
    "depth": "depth num_layers nlayers n_layer num_encoder_layers n_blocks steps layers",
    "reduction": "reduction squeeze_factor r",
    "factor": "mlp_ratio scale_factor upscale_factor expansion growth_rate",
    "number": "alpha gamma temperature init_value",
    "activation": "act activation act_layer nonlinearity act_fn",
    "norm": "norm norm_layer",
    "module": "fn module backbone encoder attn",
    "mode": "mode padding_mode type",
    "hidden": "hidden_size hidden_units mlp_dim ffn_dim intermediate_size mid_channels",
    "inner": "in_channels inplanes in_features input_dim c1 inChannels",
    "outer": "out_channels planes out_features output_dim c2 outChannels",
    "size": "dim channels width embed_dim d_model whatever",
}


@pytest.mark.parametrize(("kind", "names"), NAMES.items())
def test_kind_of(kind: str, names: str) -> None:
    assert {name: kind_of(name).name for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_sizes_agree_with_heads_and_groups() -> None:
    """The first values of sizes are multiples of the first values of their divisors."""
    heads, width = int(kind_of("num_heads").values[0]), int(kind_of("head_dim").values[0])
    assert heads * width == 32
    assert {kind_of(name).name for name in ("in_channels", "out_channels", "hidden_size", "dim")} == SIZES


@pytest.mark.parametrize(("name", "expected"), [("inChannels", "in_channels"), ("_x", "x"), ("nX", "n_x"), ("H", "h")])
def test_snake(name: str, expected: str) -> None:
    assert snake(name) == expected
