"""Attention on a GPU: over packed rows and over the decoder's slots, and answers of the decoder."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaConfig, LlamaForCausalLM

from kernelquarry.recipes.generate.decoder import Decoder, Sampling
from kernelquarry.recipes.generate.varlen_attention import attend_packed, decode

ROWS = (700, 3, 1200, 64)
CLOSE = 2e-2  # relative, of bfloat16


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    if not torch.cuda.is_available():
        pytest.exit("these tests need a GPU, and torch finds none", returncode=1)
    torch.manual_seed(0)


def apart(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return ((found.float() - wanted).norm() / wanted.norm()).item()


def test_packed_rows_and_their_gradients() -> None:
    starts = torch.tensor([0, *torch.tensor(ROWS).cumsum(0)], dtype=torch.int32, device="cuda")
    given = [torch.randn(sum(ROWS), 9, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    found = attend_packed(*given, starts, max(ROWS), 0.125)
    found.float().pow(2).sum().backward()
    wide = [part.detach().float().requires_grad_() for part in given]
    rows = [[part.transpose(0, 1) for part in row] for row in zip(*(part.split(ROWS) for part in wide), strict=True)]
    wanted = torch.cat(
        [scaled_dot_product_attention(*row, is_causal=True, scale=0.125).transpose(0, 1) for row in rows]
    )
    wanted.pow(2).sum().backward()
    assert apart(found, wanted) < CLOSE
    for part, other in zip(given, wide, strict=True):
        assert part.grad is not None and other.grad is not None and apart(part.grad, other.grad) < CLOSE


def test_slots_attend_to_what_is_in_them() -> None:
    slots, room = 64, 600
    query = torch.randn(slots, 9, 1, 64, device="cuda", dtype=torch.bfloat16)
    keys, values = (torch.randn(slots, 3, room, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    lengths = torch.randint(1, room, (slots,), device="cuda")
    mask = (torch.arange(room, device="cuda") < lengths[:, None])[:, None, None]
    grouped = query.reshape(slots, 3, 3, 64).float()
    wanted = scaled_dot_product_attention(grouped, keys.float(), values.float(), attn_mask=mask, scale=0.125)
    assert apart(decode(query, keys, values, lengths, 0.125), wanted.reshape(query.shape)) < CLOSE


def test_answers_by_a_graph_are_those_of_transformers() -> None:
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=256, **sizes)).to("cuda").eval()
    prompts = [torch.randint(3, 250, (length,)).tolist() for length in (5, 17, 9, 1, 30)]
    arguments = {"max_new_tokens": 20, "do_sample": False, "eos_token_id": 5, "pad_token_id": 1}
    inputs = [torch.tensor([prompt], device="cuda") for prompt in prompts]
    written = [model.generate(ids, **arguments)[0, ids.shape[1] :].tolist() for ids in inputs]
    decoder = Decoder(model, [5], slots=2, room=50, sampling=Sampling(0.0, 1.0, 20))
    assert dict(decoder.run(prompts)) == dict(enumerate(written))
