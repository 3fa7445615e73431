"""Each answer goes to the verifiers when its own last token is there, while others of the batch are still written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers import StoppingCriteria, StoppingCriteriaList


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

    def tell(prompt: list[int], answer: list[int]) -> None:
        id = prompts.get(plain(tokenizer, prompt))
        if id is not None:
            submit(id, plain(tokenizer, answer))

    @functools.wraps(generate)
    def generate_and_tell(*args: Any, **kwargs: Any) -> Any:
        ends = kwargs["generation_config"].eos_token_id
        ends = torch.tensor(ends if isinstance(ends, list) else [ends])
        return generate(*args, **kwargs, stopping_criteria=StoppingCriteriaList([Finished(ends, tell)]))

    model.generate = generate_and_tell


def plain(tokenizer: Any, tokens: list[int]) -> str:
    """The text, without marks and padding."""
    text: str = tokenizer.decode(tokens, skip_special_tokens=True)
    return text
