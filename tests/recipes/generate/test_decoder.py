"""The decoder's answers equal those of transformers, and packed rows attend only to themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from kernelquarry.recipes.generate.decoder import Decoder, Sampling, least_probability
from kernelquarry.recipes.generate.varlen_attention import VARLEN, register

_ENDS = [5, 100]


@pytest.fixture(params=["llama", "qwen2"])
def model(tiny_model: Path, request: pytest.FixtureRequest) -> Any:
    if request.param == "llama":
        return AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float64).eval()
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=260,
        hidden_size=56,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=14,
        num_key_value_heads=2,  # seven heads share a key, as in Qwen2.5-Coder-0.5B
        max_position_embeddings=4096,
        eos_token_id=1,
    )
    return Qwen2ForCausalLM(config).to(torch.float64).eval()


def _prompts() -> list[list[int]]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(3, 250, (length,), generator=draw).tolist() for length in (5, 17, 9, 1, 30)]


def test_greedy_answers_equal_those_of_transformers(model: Any) -> None:
    prompts = _prompts()
    written = [
        model.generate(
            torch.tensor([prompt]), max_new_tokens=20, do_sample=False, eos_token_id=_ENDS, pad_token_id=1
        ).tolist()[0][len(prompt) :]
        for prompt in prompts
    ]
    decoder = Decoder(model, _ENDS, slots=2, room=50, sampling=Sampling(0.0, 1.0, 20))
    assert dict(decoder.run(prompts)) == dict(enumerate(written))
    assert dict(decoder.run(prompts)) == dict(enumerate(written)), "a second run starts afresh"


def test_a_tiny_top_p_is_greedy(model: Any) -> None:
    decoder = Decoder(model, _ENDS, slots=5, room=50, sampling=Sampling(1.0, 1e-6, 20))
    likeliest = Decoder(model, _ENDS, slots=5, room=50, sampling=Sampling(0.0, 1.0, 20))
    assert dict(decoder.run(_prompts())) == dict(likeliest.run(_prompts()))


@pytest.mark.parametrize("top_p", [0.5, 0.97])
def test_a_nucleus_is_the_smallest_set_of_likely_tokens_with_enough_mass(top_p: float) -> None:
    draw = torch.Generator().manual_seed(0)
    probabilities = torch.softmax(3 * torch.randn(8, 1000, generator=draw), -1)
    kept = probabilities >= least_probability(probabilities, top_p)
    ordered = probabilities.sort(descending=True).values.cumsum(-1)
    assert (
        abs(kept.sum(-1) - ((ordered < top_p).sum(-1) + 1)) <= 3
    ).all()  # of these, those within 2^-16 of the largest probability
    assert (probabilities.where(kept, 0.0).sum(-1) >= top_p).all()


def test_a_prompt_that_exceeds_the_room_raises(model: Any) -> None:
    with pytest.raises(ValueError, match="no room in 40"):
        list(Decoder(model, _ENDS, slots=2, room=40, sampling=Sampling(0.0, 1.0, 20)).run(_prompts()))


def test_packed_rows_attend_only_to_themselves(model: Any) -> None:
    register()
    prompts = _prompts()
    with torch.no_grad():
        apart = torch.cat([model(torch.tensor([prompt])).logits[0] for prompt in prompts])
        model.set_attn_implementation(VARLEN)
        starts = torch.tensor([0, *torch.tensor([len(prompt) for prompt in prompts]).cumsum(0).tolist()])
        packed = model(
            torch.tensor([[token for prompt in prompts for token in prompt]]),
            position_ids=torch.cat([torch.arange(len(prompt)) for prompt in prompts])[None],
            cu_seq_lens_q=starts,
            cu_seq_lens_k=starts,
            max_length_q=30,
            max_length_k=30,
            use_cache=False,
        ).logits[0]
    torch.testing.assert_close(packed, apart)
