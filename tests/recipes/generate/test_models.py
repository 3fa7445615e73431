"""Models from GGUF files, and chat templates that mark the assistant's turns."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.generate.models import fast_dtype, load_model, load_tokenizer, resolve


def write_gguf(path: Path, model: Path) -> None:
    """The model as a GGUF file of 8-bit blocks, with the tokenizer of bytes."""
    import gguf
    from transformers import AutoTokenizer

    whole = AutoModelForCausalLM.from_pretrained(model)
    config, tokenizer = whole.config, AutoTokenizer.from_pretrained(model)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, *[1] * (len(tokens) - 2)])
    writer.add_token_scores([0.0] * len(tokens))  # there are no merges
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(1)
    writer.add_chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    weights = dict(whole.state_dict())
    for name in ("q_proj", "k_proj", "v_proj"):  # Qwen2 has biases where the tiny model has none
        weights[f"model.layers.0.self_attn.{name}.bias"] = torch.arange(config.hidden_size) / 64
    for name, weight in weights.items():
        stem, suffix = name.rsplit(".", 1)
        kind = gguf.GGMLQuantizationType.Q8_0 if weight.dim() == 2 else gguf.GGMLQuantizationType.F32
        data = gguf.quantize(weight.float().numpy(), kind)
        writer.add_tensor(f"{names.get_name(stem)}.{suffix}", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, tiny_model)
    return path


def test_a_gguf_file_is_unpacked_once_and_without_drawing_weights(
    gguf_file: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(weight: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        assert weight.is_meta, "weights were drawn"
        return weight

    monkeypatch.setattr(torch.Tensor, "normal_", draw)
    folder = resolve(str(gguf_file), tmp_path)
    assert resolve(str(gguf_file.parent), tmp_path) == folder  # a folder with one file
    monkeypatch.undo()
    record = json.loads((Path(folder) / "gguf.json").read_text())
    assert record["file"] == "tiny.gguf" and Path(folder).name == f"tiny-{record['sha256'][:12]}"
    config = AutoConfig.from_pretrained(folder)
    assert (config.model_type, config.dtype) == ("qwen2", torch.bfloat16)
    before = AutoModelForCausalLM.from_pretrained(tiny_model).state_dict()
    after = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    for name, weight in before.items():
        torch.testing.assert_close(after[name].float(), weight, rtol=0.02, atol=0.02 * float(weight.abs().max()))
    bias = after["model.layers.0.self_attn.k_proj.bias"].float()
    torch.testing.assert_close(bias, torch.arange(32) / 64, rtol=0.01, atol=0.01)


def test_a_template_without_marks_gets_an_equal_one_with_them(gguf_file: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(resolve(str(gguf_file), tmp_path))
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False) == (
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
    )
    encoded = tokenizer.apply_chat_template(chat, return_dict=True, return_assistant_tokens_mask=True)
    said = [token for token, mask in zip(encoded["input_ids"], encoded["assistant_masks"], strict=True) if mask]
    assert tokenizer.decode(said) == "b<|im_end|>"


def test_an_unknown_template_needs_a_name(gguf_file: Path, tmp_path: Path) -> None:
    folder = Path(resolve(str(gguf_file), tmp_path))
    (folder / "chat_template.jinja").write_text("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}")
    with pytest.raises(UserError, match="does not mark what the assistant says"):
        load_tokenizer(str(folder))


def test_a_file_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "none.gguf").write_bytes(b"GGUF, but not really")
    with pytest.raises(UserError, match="no model that transformers reads"):
        resolve(str(tmp_path / "none.gguf"), tmp_path)
    (tmp_path / "more.gguf").write_bytes(b"")
    with pytest.raises(UserError, match="holds 2 models"):
        resolve(str(tmp_path), tmp_path)
    with pytest.raises(UserError, match="no such model"):
        resolve("missing.gguf", tmp_path)


def test_a_model_uses_all_cores(tiny_model: Path) -> None:
    torch.set_num_threads(1)  # as the sandbox's judge does when it is imported
    load_model(str(tiny_model))
    assert torch.get_num_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("has", "dtype"),
    [({"avx512_bf16": True}, torch.bfloat16), ({"amx_bf16": True}, torch.bfloat16), ({"avx2": True}, torch.float32)],
)
def test_bfloat16_is_for_processors_with_instructions_for_it(
    has: dict[str, bool], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    assert fast_dtype() == dtype
