"""Alternative names of one aten operator."""

from __future__ import annotations

import pytest

from kernelquarry.filters.language.operator_names import same_operator


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("linear", "addmm"),
        ("Conv2d", "convolution"),
        ("conv_transpose3d", "convolution"),
        ("BatchNorm2d", "native_batch_norm"),
        ("InstanceNorm1d", "native_batch_norm"),
        ("cudnn_batch_norm", "native_batch_norm"),
        ("_cudnn_rnn", "lstm"),
        ("LayerNorm", "native_layer_norm"),
        ("GroupNorm", "native_group_norm"),
        ("max_pool2d", "max_pool2d_with_indices"),
        ("AdaptiveAvgPool2d", "_adaptive_avg_pool2d"),
        ("LeakyReLU", "leaky_relu"),
        ("softmax", "_softmax"),
        ("Upsample", "upsample_nearest2d"),
        ("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"),
    ],
)
def test_one_operator_has_several_names(one: str, other: str) -> None:
    assert same_operator(one, other) and same_operator(other, one)


@pytest.mark.parametrize(
    ("one", "other"), [("relu", "leaky_relu"), ("linear", "convolution"), ("max_pool2d", "avg_pool2d")]
)
def test_different_operators_are_distinguished(one: str, other: str) -> None:
    assert not same_operator(one, other)
