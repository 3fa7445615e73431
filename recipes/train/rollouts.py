"""Rollouts of GRPO: submit each answer to the verifiers when it ends, while the batch is still being generated."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import StoppingCriteria, StoppingCriteriaList

from kernelquarry.recipes.generate.decoder import Decoder, Sampling
from kernelquarry.recipes.generate.models import end_tokens

_PEFT, _BASE_LAYER = "base_model.model.", ".base_layer"  # that PEFT puts into the names of weights
_ROOM = 256  # tokens: the cache has room in multiples of it, so that few CUDA graphs are captured


class FinishedCallback(StoppingCriteria):
    """A stopping criterion that stops nothing, and calls `on_finished(prompt, answer)` when a sequence ends."""

    def __init__(self, ends: torch.Tensor, on_finished: Callable[[list[int], list[int]], None]) -> None:
        """`ends`: ids of the tokens that end a sequence."""
        self._ends, self._on_finished = ends, on_finished
        self._prompt = 0
        self._open: torch.Tensor | None = None

    def __call__(self, input_ids: torch.LongTensor, scores: Any, **_: Any) -> torch.BoolTensor:
        if self._open is None:
            self._prompt = input_ids.shape[1] - 1
            self._open = torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
            self._ends = self._ends.to(input_ids.device)
        ended = torch.isin(input_ids[:, -1], self._ends) & self._open
        self._open &= ~ended
        for row in ended.nonzero().flatten().tolist():
            tokens = input_ids[row].tolist()
            self._on_finished(tokens[: self._prompt], tokens[self._prompt :])
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)  # type: ignore[return-value]


def submit_when_finished(
    model: Any, tokenizer: Any, prompts: Mapping[str, str], submit: Callable[[str, str], object]
) -> None:
    """Patch `model.generate` to call `submit(id, answer)` when an answer ends. `prompts`: ids by decoded prompt."""
    generate = model.generate
    on_finished = _submitter(tokenizer, prompts, submit)

    @functools.wraps(generate)
    def generate_and_submit(*args: Any, **kwargs: Any) -> Any:
        criterion = FinishedCallback(torch.tensor(end_tokens(kwargs["generation_config"])), on_finished)
        return generate(*args, **kwargs, stopping_criteria=StoppingCriteriaList([criterion]))

    model.generate = generate_and_submit


def decode_by_slots(
    model: Any, tokenizer: Any, prompts: Mapping[str, str], submit: Callable[[str, str], object]
) -> None:
    """Patch `model.generate` as `submit_when_finished` does, and generate with `Decoder` and a copy of the weights.

    The copy is in bfloat16 on a GPU.
    """
    on_finished = _submitter(tokenizer, prompts, submit)
    on_gpu = next(model.parameters()).is_cuda
    writer = frozen_copy(model, torch.bfloat16 if on_gpu else None)
    decoders: dict[int, Decoder] = {}  # by room: one CUDA graph each

    @torch.no_grad()
    @torch.autocast("cuda", enabled=False)
    def generate(input_ids: torch.Tensor, attention_mask: torch.Tensor, generation_config: Any, **_: Any) -> Any:
        trained = dict(merged_weights(model))
        for name, copied in writer.named_parameters():
            copied.copy_(trained[name])
        room = _ROOM * math.ceil((input_ids.shape[1] + generation_config.max_new_tokens) / _ROOM)
        if room not in decoders:
            decoders.clear()
            top_p = 1.0 if generation_config.top_p is None else generation_config.top_p
            sampling = Sampling(generation_config.temperature, top_p, generation_config.max_new_tokens)
            decoders[room] = Decoder(writer, end_tokens(generation_config), len(input_ids), room, sampling)
        inputs = [row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
        answers: dict[int, list[int]] = {}
        for index, answer in decoders[room].run(inputs):
            answers[index] = answer
            on_finished(inputs[index], answer)
        written = [torch.tensor(answers[index], device=input_ids.device) for index in range(len(inputs))]
        padding = generation_config.pad_token_id
        return torch.cat((input_ids, pad_sequence(written, batch_first=True, padding_value=padding)), 1)

    model.generate = generate


def merged_weights(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and weights of a model, with its adapters merged if it is one of PEFT's."""
    modules = dict(model.named_modules())
    for name, weight in model.named_parameters():
        if "lora_" in name:
            continue
        layer = name.rpartition(".")[0]
        if layer.endswith(_BASE_LAYER) and name.endswith(".weight"):
            weight = weight + modules[layer.removesuffix(_BASE_LAYER)].get_delta_weight("default")
        yield name.removeprefix(_PEFT).replace(_BASE_LAYER, ""), weight


def frozen_copy(model: Any, dtype: torch.dtype | None) -> Any:
    """A copy without gradients and adapters, with weights in `dtype`. Rotary frequencies need their float32."""
    writer = copy.deepcopy(model)
    writer = writer.unload() if hasattr(writer, "peft_config") else writer
    writer = writer.eval().requires_grad_(False)
    for weight in writer.parameters():
        weight.data = weight.data.to(dtype)
    return writer


def _submitter(
    tokenizer: Any, prompts: Mapping[str, str], submit: Callable[[str, str], object]
) -> Callable[[list[int], list[int]], None]:
    def on_finished(prompt: list[int], answer: list[int]) -> None:
        id = prompts.get(decode(tokenizer, prompt))
        if id is not None:
            submit(id, decode(tokenizer, answer))

    return on_finished


def decode(tokenizer: Any, tokens: list[int]) -> str:
    """Text of the tokens, without special tokens."""
    text: str = tokenizer.decode(tokens, skip_special_tokens=True)
    return text
