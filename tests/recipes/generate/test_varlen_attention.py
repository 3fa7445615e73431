"""The decode kernel without a GPU: it compiles, and is right in the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from kernelquarry.recipes.generate import varlen_attention
from kernelquarry.recipes.train.rollouts import frozen_copy

# Three key heads with three query heads each, and slots of different lengths.
RIGHT = """
import torch
from kernelquarry.recipes.generate.varlen_attention import _decode
torch.manual_seed(0)
room, lengths = 200, torch.tensor([1, 64, 65, 200])
query, keys, values = torch.randn(4, 3, 3, 64), torch.randn(4, 3, room, 64), torch.randn(4, 3, room, 64)
keys[0, :, 1:] = values[0, :, 1:] = float("nan")
out = torch.empty_like(query)
_decode[(4, 3)](query, keys, values, lengths, out, room, 0.125, GROUP=3, ROWS=16, SIZE=64, COLUMNS=64, BLOCK=64)
for slot, length in enumerate(lengths.tolist()):
    weights = torch.softmax(0.125 * query[slot] @ keys[slot, :, :length].transpose(1, 2), -1)
    torch.testing.assert_close(out[slot], weights @ values[slot, :, :length])
"""


@pytest.mark.parametrize(("group", "size"), [(3, 64), (7, 64), (6, 128)])  # as in the models of our recipes
def test_the_decode_kernel_compiles_for_a_gpu(group: int, size: int) -> None:
    from triton import compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    pointers = dict.fromkeys(("query_ptr", "key_ptr", "value_ptr", "out_ptr"), "*bf16")
    sizes = {"GROUP": group, "ROWS": 16, "SIZE": size, "COLUMNS": size, "BLOCK": 64}
    signature = pointers | {"length_ptr": "*i64", "room": "i32", "scale": "fp32"} | dict.fromkeys(sizes, "constexpr")
    made = compile(ASTSource(varlen_attention._decode, signature, sizes), target=GPUTarget("cuda", 90, 32))
    assert made.asm["cubin"]


def test_the_decode_kernel_is_right_in_the_interpreter() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", RIGHT], env=environment, check=True, timeout=300)


def test_packed_rows_have_one_dtype_under_autocast(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flash attention accepts no mixture; rotary embeddings leave queries and keys in float32."""
    from transformers import AutoModelForCausalLM

    varlen_attention.register()
    seen: list[torch.dtype] = []

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any) -> torch.Tensor:
        seen.extend(part.dtype for part in (query, key, value))
        return value

    monkeypatch.setattr(varlen_attention, "attend_packed", attend)
    model = AutoModelForCausalLM.from_pretrained(tiny_model, attn_implementation=varlen_attention.VARLEN)
    starts = torch.tensor([0, 2, 5])
    with torch.autocast("cpu", torch.bfloat16):
        model(torch.arange(5)[None], cu_seq_lens_q=starts, max_length_q=3, position_ids=torch.tensor([[0, 1, 0, 1, 2]]))
    assert seen == [torch.bfloat16] * 3


def test_a_frozen_copy_keeps_the_rotary_frequencies(tiny_model: Any) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    writer = frozen_copy(model, torch.bfloat16)
    assert {weight.dtype for weight in writer.parameters()} == {torch.bfloat16}
    assert torch.equal(writer.model.rotary_emb.inv_freq, model.model.rotary_emb.inv_freq)
    assert model.lm_head.weight.dtype == torch.float32
