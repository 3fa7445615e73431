"""Batched decoding for small models: one cache with slots, each of which gets a new prompt when its answer ends.

Transformers' generation loop is bound by Python for small models, its static cache attends to the whole allocation,
and its continuous batching is slower still. Here a step on a GPU replays one CUDA graph, and attention reads only
written tokens.
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
_PREFILL_BATCH = 32  # prompts
_STEPS = 16  # between checks for answers that have ended
_HALVINGS = 16  # of the interval that the least probability of a nucleus is in
_MEMORY_SHARE = 0.7  # of the GPU's free memory, for the cache

Key = TypeVar("Key")  # identifies a prompt and its answer


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters. A temperature of 0 is greedy decoding."""

    temperature: float
    top_p: float
    new_tokens: int  # limit of an answer


class _SlotCache:
    """A key-value cache for transformers' layers, in which each slot has a length of its own."""

    def __init__(self, config: Any, like: torch.Tensor, slots: int, room: int) -> None:
        shape = (config.num_hidden_layers, slots, config.num_key_value_heads, room, _head_size(config))
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)
        self.lengths = torch.zeros(slots, dtype=torch.int64, device=like.device)  # tokens in each slot
        self._all = torch.arange(slots, device=like.device)

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append one token to each slot, (slots, kv heads, 1, size). Returns the whole cache of the layer."""
        self.keys[layer][self._all, :, self.lengths] = keys[:, :, 0]
        self.values[layer][self._all, :, self.lengths] = values[:, :, 0]
        return self.keys[layer], self.values[layer]

    def fill(self, slots: torch.Tensor, layers: Sequence[Any], lengths: torch.Tensor) -> None:
        """Copy the layer caches of a prefill, (prompts, kv heads, longest prompt, size), into `slots`."""
        for layer, prefill in enumerate(layers):
            self.keys[layer][slots, :, : prefill.keys.shape[2]] = prefill.keys
            self.values[layer][slots, :, : prefill.values.shape[2]] = prefill.values
        self.lengths[slots] = lengths


class Decoder:
    """A decoder for a transformers model with full attention in all layers. Its weights may change in place."""

    def __init__(self, model: Any, ends: Collection[int], slots: int, room: int, sampling: Sampling) -> None:
        """`ends`: tokens that end an answer; `slots`: answers written at the same time, fewer if GPU memory is short;
        `room`: tokens of the longest prompt and its answer."""
        register()
        model.set_attn_implementation(VARLEN)
        like = model.get_input_embeddings().weight
        slots = min(slots, _slots_in_memory(model.config, like, room))
        self._model, self._sampling, self.room, self._device = model, sampling, room, like.device
        self._cache = _SlotCache(model.config, like, slots, room)
        self._all = torch.arange(slots, device=like.device)
        self._ends = torch.tensor(sorted(set(ends)), device=like.device)
        self._written = torch.zeros(slots, sampling.new_tokens + 1, dtype=torch.int64, device=like.device)
        self._counts = torch.zeros(slots, dtype=torch.int64, device=like.device)  # tokens written
        self._lengths = torch.zeros(slots, dtype=torch.int64, device=like.device)  # of answers that ended, else 0
        self._last = torch.zeros(slots, 1, dtype=torch.int64, device=like.device)
        self._mask = torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=like.device)  # keeps transformers from making one
        self._step: Callable[[], object] | None = None

    def run(self, prompts: Sequence[Sequence[int]]) -> Iterator[tuple[int, list[int]]]:
        """Yield the index and tokens of each answer when it ends; the tokens include the end token, if any."""
        for ended in self.feed(deque(enumerate(prompts))):
            yield from ended

    @torch.no_grad()
    def feed(self, waiting: deque[tuple[Key, Sequence[int]]]) -> Iterator[list[tuple[Key, list[int]]]]:
        """Yield keys and tokens of the answers that ended, every few steps, until all are written.

        `waiting`: keys and prompts. Another thread may append to it.
        """
        free = list(range(len(self._all)))[::-1]
        writing: dict[int, Key] = {}  # by slot
        while waiting or writing:
            while waiting and len(free) >= (number := min(_PREFILL_BATCH, len(waiting), len(self._all))):
                batch = [waiting.popleft() for _ in range(number)]
                slots = [free.pop() for _ in batch]
                self._prefill(slots, [prompt for _, prompt in batch])
                writing |= zip(slots, (key for key, _ in batch), strict=True)
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

    def _prefill(self, slots: list[int], prompts: list[Sequence[int]]) -> None:
        """Read prompts into slots, and draw the first token of each answer."""
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)
        longest = int(lengths.max())
        if longest + self._sampling.new_tokens > self.room:
            raise ValueError(f"a prompt of {longest} tokens and its answer have no room in {self.room}")
        ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=self._device)
        # No mask is needed: attention is causal, and nothing reads the padding behind a prompt's end.
        output = self._model.base_model(input_ids=ids, use_cache=True)
        places = torch.tensor(slots, device=self._device)
        self._cache.fill(places, output.past_key_values.layers, lengths)
        last = output.last_hidden_state[torch.arange(len(prompts), device=self._device), lengths - 1]
        drawn = self._draw(last)
        self._counts[places] = 0
        self._lengths[places] = 0
        self._store(places, drawn)

    def _advance(self) -> None:
        if self._step is None:
            self._step = self._capture() if self._device.type == "cuda" else self._decode_step
        self._step()

    def _capture(self) -> Callable[[], object]:
        """Capture a step as a CUDA graph, after three warm-up steps, which count."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._decode_step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._decode_step()
        _logger.info("captured a step of %d answers as a CUDA graph", len(self._all))
        return graph.replay

    def _decode_step(self) -> None:
        """Append a token to every slot. Free and full slots overwrite their last position."""
        lengths = self._cache.lengths
        output = self._model.base_model(
            input_ids=self._last,
            attention_mask=self._mask,
            position_ids=lengths[:, None],
            past_key_values=self._cache,
            use_cache=True,
            lengths=lengths + 1,
        )
        lengths.add_(1).clamp_(max=self.room - 1)
        self._store(self._all, self._draw(output.last_hidden_state[:, 0]))

    def _store(self, slots: torch.Tensor, drawn: torch.Tensor) -> None:
        """Append the drawn tokens, (slots, 1), to the answers in `slots`."""
        counts, lengths, token = self._counts[slots], self._lengths[slots], drawn[:, 0]
        self._written[slots, counts.clamp(max=self._sampling.new_tokens)] = token  # the last position is discarded
        ended = torch.isin(token, self._ends) & (lengths == 0) & (counts < self._sampling.new_tokens)
        self._lengths[slots] = torch.where(ended, counts + 1, lengths)
        self._counts[slots] = counts + 1
        self._last[slots] = drawn

    def _draw(self, hidden: torch.Tensor) -> torch.Tensor:
        """Draw a token for each row of (rows, hidden size). Returns (rows, 1)."""
        logits = self._model.get_output_embeddings()(hidden).float()
        if not self._sampling.temperature:
            return logits.argmax(-1, keepdim=True)
        probabilities = torch.softmax(logits / self._sampling.temperature, -1)
        if self._sampling.top_p < 1:
            least = least_probability(probabilities, self._sampling.top_p)
            probabilities = probabilities.where(probabilities >= least, 0.0)
        # Dividing by exponential noise samples by the probabilities, without the GPU wait of multinomial.
        return (probabilities / torch.empty_like(probabilities).exponential_()).argmax(-1, keepdim=True)


def least_probability(probabilities: torch.Tensor, top_p: float) -> torch.Tensor:
    """The probability of the last token of each nucleus, (rows, 1), within 2^-16 of the largest one's.

    Halving an interval reads (rows, tokens) a few times; sorting 150,000 tokens a row would take longer than the model.
    """
    high = probabilities.amax(-1, keepdim=True)
    low = torch.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mass = probabilities.where(probabilities >= middle, 0.0).sum(-1, keepdim=True)
        is_enough = mass >= top_p
        low, high = torch.where(is_enough, middle, low), torch.where(is_enough, high, middle)
    return low


def _head_size(config: Any) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def _slots_in_memory(config: Any, like: torch.Tensor, room: int) -> int:
    """Number of slots that fit in the GPU's free memory; without a GPU, no limit."""
    if like.device.type != "cuda":
        return 1 << 30
    heads = 2 * config.num_hidden_layers * config.num_key_value_heads
    free, _ = torch.cuda.mem_get_info(like.device)
    return max(1, int(_MEMORY_SHARE * free) // (heads * _head_size(config) * like.element_size() * room))
