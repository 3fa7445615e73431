"""Many answers at once by a small model: slots of one cache, each refilled when its answer ends.

For a model this small transformers' own loop is bound by Python, its static cache attends to all that is allotted, and
its continuous batching is slower still. Here, on a GPU, a step is one replay of a CUDA graph, and attention reads
no more than there is.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from .varlen_attention import VARLEN, register

_logger = logging.getLogger(__name__)
_AT_ONCE = 32  # prompts that are read at once
_STEPS = 16  # between looks at which answers have ended
_SHARE = 0.7  # of the GPU's free memory, for the cache

Key = TypeVar("Key")  # what a prompt's answer is told from others by


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; a temperature of 0 takes the likeliest."""

    temperature: float
    top_p: float
    new_tokens: int  # longest answer


class _Slots:
    """What a model's layers see as their cache: a token's keys and values go to its slot's next place."""

    def __init__(self, config: Any, like: torch.Tensor, slots: int, room: int) -> None:
        shape = (config.num_hidden_layers, slots, config.num_key_value_heads, room, _head_size(config))
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)
        self.lengths = torch.zeros(slots, dtype=torch.int64, device=like.device)  # tokens that are in it
        self._all = torch.arange(slots, device=like.device)

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One token a slot, (slots, kv heads, 1, size); returns all that there is room for."""
        self.keys[layer][self._all, :, self.lengths] = keys[:, :, 0]
        self.values[layer][self._all, :, self.lengths] = values[:, :, 0]
        return self.keys[layer], self.values[layer]

    def fill(self, slots: torch.Tensor, layers: Sequence[Any], lengths: torch.Tensor) -> None:
        """The caches of prompts that were read, (prompts, kv heads, longest, size)."""
        for layer, read in enumerate(layers):
            self.keys[layer][slots, :, : read.keys.shape[2]] = read.keys
            self.values[layer][slots, :, : read.values.shape[2]] = read.values
        self.lengths[slots] = lengths


class Decoder:
    """Of one model of transformers whose layers are all full attention; its weights may change, in place."""

    def __init__(self, model: Any, ends: Collection[int], slots: int, room: int, sampling: Sampling) -> None:
        """`ends`: tokens that end an answer; `slots`: answers at once, fewer if memory is short; `room`: tokens of a
        prompt and its answer."""
        register()
        model.set_attn_implementation(VARLEN)
        like = model.get_input_embeddings().weight
        slots = min(slots, _affordable(model.config, like, room))
        self._model, self._sampling, self.room, self._device = model, sampling, room, like.device
        self._cache = _Slots(model.config, like, slots, room)
        self._all = torch.arange(slots, device=like.device)
        self._ends = torch.tensor(sorted(set(ends)), device=like.device)
        self._written = torch.zeros(slots, sampling.new_tokens + 1, dtype=torch.int64, device=like.device)
        self._counts = torch.zeros(slots, dtype=torch.int64, device=like.device)  # tokens written
        self._lengths = torch.zeros(slots, dtype=torch.int64, device=like.device)  # of answers that ended, or 0
        self._last = torch.zeros(slots, 1, dtype=torch.int64, device=like.device)
        self._mask = torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=like.device)  # of no use, but then none is made
        self._step: Callable[[], object] | None = None

    def run(self, prompts: Sequence[Sequence[int]]) -> Iterator[tuple[int, list[int]]]:
        """Index and tokens of each answer, its end included if it has one, as they end."""
        for ended in self.feed(deque(enumerate(prompts))):
            yield from ended

    @torch.no_grad()
    def feed(self, waiting: deque[tuple[Key, Sequence[int]]]) -> Iterator[list[tuple[Key, list[int]]]]:
        """Keys and tokens of the answers that ended, after every few steps, until none is left to be written.

        `waiting` are prompts with their keys, to which another thread may append.
        """
        free = list(range(len(self._all)))[::-1]
        writing: dict[int, Key] = {}  # by slot
        while waiting or writing:
            while waiting and len(free) >= (number := min(_AT_ONCE, len(waiting), len(self._all))):
                taken = [waiting.popleft() for _ in range(number)]
                slots = [free.pop() for _ in taken]
                self._read(slots, [prompt for _, prompt in taken])
                writing |= zip(slots, (key for key, _ in taken), strict=True)
            for _ in range(_STEPS):
                self._advance()
            counts, lengths = torch.stack((self._counts, self._lengths)).tolist()
            ended = []
            for slot in sorted(writing):
                if lengths[slot] or counts[slot] >= self._sampling.new_tokens:
                    length = lengths[slot] or self._sampling.new_tokens
                    ended.append((writing.pop(slot), self._written[slot, :length].tolist()))
                    free.append(slot)
            yield ended

    def _read(self, slots: list[int], prompts: list[Sequence[int]]) -> None:
        """Prompts into slots, and the first token of each answer."""
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)
        longest = int(lengths.max())
        if longest + self._sampling.new_tokens > self.room:
            raise ValueError(f"a prompt of {longest} tokens and its answer have no room in {self.room}")
        ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=self._device)
        read = self._model.base_model(input_ids=ids, use_cache=True)  # nothing looks at what is behind a prompt's end
        where = torch.tensor(slots, device=self._device)
        self._cache.fill(where, read.past_key_values.layers, lengths)
        last = read.last_hidden_state[torch.arange(len(prompts), device=self._device), lengths - 1]
        drawn = self._draw(last)
        self._counts[where] = 0
        self._lengths[where] = 0
        self._keep(where, drawn)

    def _advance(self) -> None:
        if self._step is None:
            self._step = self._captured() if self._device.type == "cuda" else self._one
        self._step()

    def _captured(self) -> Callable[[], object]:
        """A step as a graph. What warms it up are steps too."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._one()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._one()
        _logger.info("a step of %d answers is a CUDA graph", len(self._all))
        return graph.replay

    def _one(self) -> None:
        """A token more in every slot; those that are free or full write over their last place."""
        lengths = self._cache.lengths
        read = self._model.base_model(
            input_ids=self._last,
            attention_mask=self._mask,
            position_ids=lengths[:, None],
            past_key_values=self._cache,
            use_cache=True,
            lengths=lengths + 1,
        )
        lengths.add_(1).clamp_(max=self.room - 1)
        self._keep(self._all, self._draw(read.last_hidden_state[:, 0]))

    def _keep(self, slots: torch.Tensor, drawn: torch.Tensor) -> None:
        """The next token of each of `slots`, (slots, 1)."""
        counts, lengths, token = self._counts[slots], self._lengths[slots], drawn[:, 0]
        self._written[slots, counts.clamp(max=self._sampling.new_tokens)] = token  # the last place is of no answer
        ended = torch.isin(token, self._ends) & (lengths == 0) & (counts < self._sampling.new_tokens)
        self._lengths[slots] = torch.where(ended, counts + 1, lengths)
        self._counts[slots] = counts + 1
        self._last[slots] = drawn

    def _draw(self, hidden: torch.Tensor) -> torch.Tensor:
        """A token for each row of (rows, hidden size): (rows, 1)."""
        logits = self._model.get_output_embeddings()(hidden).float()
        if not self._sampling.temperature:
            return logits.argmax(-1, keepdim=True)
        chances = torch.softmax(logits / self._sampling.temperature, -1)
        if self._sampling.top_p < 1:
            ordered, order = chances.sort(descending=True)
            ordered = ordered.masked_fill(ordered.cumsum(-1) - ordered > self._sampling.top_p, 0.0)
            chances = torch.zeros_like(chances).scatter_(1, order, ordered)
        return (chances / torch.empty_like(chances).exponential_()).argmax(-1, keepdim=True)


def _head_size(config: Any) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def _affordable(config: Any, like: torch.Tensor, room: int) -> int:
    """Slots that there is memory for."""
    if like.device.type != "cuda":
        return 1 << 30
    heads = 2 * config.num_hidden_layers * config.num_key_value_heads
    free, _ = torch.cuda.mem_get_info(like.device)
    return max(1, int(_SHARE * free) // (heads * _head_size(config) * like.element_size() * room))
