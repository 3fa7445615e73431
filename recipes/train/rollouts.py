"""Each answer goes to the verifiers when its own last token is there, while others of the batch are still written."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import StoppingCriteria, StoppingCriteriaList

from kernelquarry.recipes.generate.decoder import Decoder, Sampling

_ROOM = 256  # tokens: prompts and answers have room in multiples of it


class Finished(StoppingCriteria):
    """Stops nothing: it is asked after every token, and tells of each sequence that has just ended."""

    def __init__(self, ends: torch.Tensor, tell: Callable[[list[int], list[int]], None]) -> None:
        """`ends`: ids of tokens that end a sequence; `tell` gets the tokens of the prompt, and those of the answer."""
        self._ends, self._tell = ends, tell
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
            self._tell(tokens[: self._prompt], tokens[self._prompt :])
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)  # type: ignore[return-value]


def tell_when_finished(
    model: Any, tokenizer: Any, prompts: Mapping[str, str], submit: Callable[[str, str], object]
) -> None:
    """From now on `model.generate` calls `submit(id, answer)` as answers end; `prompts` are ids by decoded prompt."""
    generate = model.generate

    tell = _telling(tokenizer, prompts, submit)

    @functools.wraps(generate)
    def generate_and_tell(*args: Any, **kwargs: Any) -> Any:
        ends = kwargs["generation_config"].eos_token_id
        ends = torch.tensor(ends if isinstance(ends, list) else [ends])
        return generate(*args, **kwargs, stopping_criteria=StoppingCriteriaList([Finished(ends, tell)]))

    model.generate = generate_and_tell


def write_by_slots(
    model: Any, tokenizer: Any, prompts: Mapping[str, str], submit: Callable[[str, str], object]
) -> None:
    """As `tell_when_finished`, and the answers are written by `Decoder`, with a copy of the weights in bfloat16."""
    tell = _telling(tokenizer, prompts, submit)
    on_gpu = next(model.parameters()).is_cuda
    writer = writing_copy(model, torch.bfloat16 if on_gpu else None)
    decoders: dict[int, Decoder] = {}  # by room, so that a graph is made once

    @torch.no_grad()
    @torch.autocast("cuda", enabled=False)
    def generate(input_ids: torch.Tensor, attention_mask: torch.Tensor, generation_config: Any, **_: Any) -> Any:
        for mine, trained in zip(writer.parameters(), model.parameters(), strict=True):
            mine.copy_(trained)
        room = _ROOM * math.ceil((input_ids.shape[1] + generation_config.max_new_tokens) / _ROOM)
        if room not in decoders:
            decoders.clear()
            decoders[room] = _decoder(writer, len(input_ids), room, generation_config)
        asked = [row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
        answers: dict[int, list[int]] = {}
        for index, answer in decoders[room].run(asked):
            answers[index] = answer
            tell(asked[index], answer)
        written = [torch.tensor(answers[index], device=input_ids.device) for index in range(len(asked))]
        padding = generation_config.pad_token_id
        return torch.cat((input_ids, pad_sequence(written, batch_first=True, padding_value=padding)), 1)

    model.generate = generate


def writing_copy(model: Any, dtype: torch.dtype | None) -> Any:
    """A copy that is not trained, its weights in `dtype`. Its buffers stay: the rotary embedding's are frequencies."""
    writer = copy.deepcopy(model).eval().requires_grad_(False)
    for weight in writer.parameters():
        weight.data = weight.data.to(dtype)
    return writer


def _decoder(model: Any, slots: int, room: int, config: Any) -> Decoder:
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    sampling = Sampling(config.temperature, 1.0 if config.top_p is None else config.top_p, config.max_new_tokens)
    return Decoder(model, ends, slots, room, sampling)


def _telling(
    tokenizer: Any, prompts: Mapping[str, str], submit: Callable[[str, str], object]
) -> Callable[[list[int], list[int]], None]:
    def tell(prompt: list[int], answer: list[int]) -> None:
        id = prompts.get(plain(tokenizer, prompt))
        if id is not None:
            submit(id, plain(tokenizer, answer))

    return tell


def plain(tokenizer: Any, tokens: list[int]) -> str:
    """The text, without marks and padding."""
    text: str = tokenizer.decode(tokens, skip_special_tokens=True)
    return text
