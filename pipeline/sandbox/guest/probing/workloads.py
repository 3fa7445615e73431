"""Finds calls of `forward` that run, and other sizes at which the same call runs."""

from __future__ import annotations

import heapq
import inspect
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from .. import trees
from .guess import LAYOUTS, MAX_ELEMENTS, SIZES, Arg, Guess, PlainArg, SizeArg, TensorArg, draw
from .layers import Evidence, evidence
from .names import snake
from .repairs import lists, repairs
from .source import Usage
from .trial import Failure, Unfit, attempt

_TRIALS = 90  # calls for one construction
_SLOW_S = 4.0  # of CPU time, for one call
_REPAIR, _ALTERNATIVE, _START, _PROGRESS = 0.1, 0.06, 0.5, 0.3  # costs in the search

_TOKENS = r"(^|_)(input_ids|ids?|idx|index|indices|tokens?|token_ids|labels?|edge_index|classes|class_labels|words|text|position_ids)$"
_MASK = r"mask"
_TIME = r"^(t|time|times|timesteps?|noise_levels?|sigmas?|step|steps|log_snr|gamma)$"
_LENGTHS = r"(^|_)(len|lens|lengths?)$"
_HEIGHT = {"h": "H", "height": "H", "w": "W", "width": "W"}
_FLAG = r"^(return|is|use|need|with|do|train|training|deterministic|verbose|inverse|reverse)(_|$)"


@dataclass(frozen=True, slots=True)
class ForwardParameter:
    name: str
    required: bool
    usage: Usage
    annotation: str = ""
    default: Any = None


def forward_parameters(module: nn.Module, usage: Callable[[str], Usage]) -> list[ForwardParameter]:
    """Those that a positional call can fill.

    Raises:
        Unfit: there are none, or some are keyword-only and required.
    """
    signature = inspect.signature(module.forward)
    found = []
    for p in signature.parameters.values():
        annotation = p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", str(p.annotation))
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            required = p.default is p.empty
            found.append(ForwardParameter(p.name, required, usage(p.name), annotation, None if required else p.default))
        elif p.kind is p.VAR_POSITIONAL and not found:
            found.append(ForwardParameter(p.name, True, Usage()))
        elif p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            raise Unfit("no_workload", f"forward needs the keyword {p.name}")
    if not found:
        raise Unfit("no_workload", "forward takes no input")
    if not found[0].required:
        found[0] = replace(found[0], required=True)
    return found


class Caller:
    """Calls one module under `no_grad`, with tensors drawn from specs."""

    def __init__(self, module: nn.Module, file: str) -> None:
        self.module, self.file = module, file
        self.slowest_s = 0.0

    def call(self, guess: Guess, seed: int = 0) -> tuple[Any, Failure | None]:
        return self.call_with(guess, draw(guess.specs(), seed))

    def call_with(self, guess: Guess, tensors: Sequence[Tensor]) -> tuple[Any, Failure | None]:
        tree = guess.tree()
        start = time.process_time()
        with torch.no_grad():
            result = attempt(lambda: (self.module(*trees.fill(tree, tensors)),), self.file)
        self.slowest_s = max(self.slowest_s, time.process_time() - start)
        if self.slowest_s > _SLOW_S:
            raise Unfit("too_big", f"one forward took {self.slowest_s:.1f} s")
        returned, failure = result
        return (returned[0] if returned else None), failure


def search(caller: Caller, parameters: list[ForwardParameter], trials: int = _TRIALS) -> Guess | Failure:
    """Best-first: cheap guesses before long chains of repairs. The failure that got furthest, if nothing runs."""
    optional = {p.name: i for i, p in enumerate(parameters) if not p.required and p.default is None}
    heap: list[tuple[float, int, Guess]] = []
    count = 0
    for guess in _starts(caller.module, parameters):
        heapq.heappush(heap, (_START * count, count, guess))
        count += 1
    seen: set[Any] = set()
    furthest: Failure | None = None
    while heap and trials > 0:
        cost, _, guess = heapq.heappop(heap)
        key = guess.key()
        if key in seen or any(prod(spec.shape) > MAX_ELEMENTS for spec in guess.specs()):
            continue
        seen.add(key)
        trials -= 1
        _, failure = caller.call(guess)
        if failure is None:
            return guess
        advanced = furthest is None or failure.line > furthest.line
        furthest = failure if advanced else furthest
        for rank, repaired in enumerate(_first(repairs(guess, failure, optional), 24)):
            count += 1
            step = _REPAIR + _ALTERNATIVE * rank - (_PROGRESS if advanced else 0)
            heapq.heappush(heap, (cost + step, count, repaired))
    return furthest or Failure("ValueError", "no guess at the inputs", 0, (), ())


def _first(guesses: Iterator[Guess], count: int) -> Iterator[Guess]:
    for _, guess in zip(range(count), guesses, strict=False):
        yield guess


def _starts(module: nn.Module, parameters: list[ForwardParameter]) -> Iterator[Guess]:
    """Guesses to begin with, from the source's text and the module's layers."""
    found = list(evidence(module))
    features = next((e.features for e in found if e.features), SIZES[0]["C"])
    tokens = next((e.tokens for e in found if e.tokens), 0)
    sizes = tuple(sorted({**SIZES[0], "C": features}.items()))
    required = [p for p in parameters if p.required]
    first = required[0]
    numbers = {p.name for p in required[1:] if _is_number(p, required)}
    for layout in _layouts(first, found):
        args = tuple(_number(p) if p.name in numbers else _argument(p, layout, p is first, found, tokens) for p in required)
        guess = Guess(args, sizes)
        surely = [i for i, p in enumerate(required) if _is_list(p)]
        perhaps = [i for i, p in enumerate(required) if p.usage.indexed and i not in surely]
        if not surely:
            yield guess
        for index in (*surely, *perhaps)[:1]:
            arg = guess.args[index]
            if isinstance(arg, TensorArg):
                yield from _first(lists(guess, index, arg), 3)
        if surely:
            yield guess


def _layouts(first: ForwardParameter, found: list[Evidence]) -> Iterator[tuple[str, ...]]:
    by_layers = [layout for e in found for layout in e.layouts]
    ordered: list[tuple[str, ...]] = []
    for rank in first.usage.ranks:
        ordered += [layout for layout in by_layers if len(layout) == rank]
        ordered += LAYOUTS[rank][:2]
    if first.usage.ranks:
        by_layers = [layout for layout in by_layers if len(layout) in first.usage.ranks]
    else:
        ordered += by_layers[:1]
    ordered += by_layers
    ordered += [LAYOUTS[4][0], LAYOUTS[3][0], LAYOUTS[2][0], LAYOUTS[3][1], LAYOUTS[5][0], LAYOUTS[1][1], LAYOUTS[4][1]]
    return iter(dict.fromkeys(ordered))


def _argument(
    parameter: ForwardParameter, layout: tuple[str, ...], is_first: bool, found: list[Evidence], tokens: int
) -> Arg:
    name = snake(parameter.name)
    embeds = bool(found) and found[0].tokens > 0
    if re.search(_LENGTHS, name):
        return TensorArg(parameter.name, ("B",), "int64", 1, 8)
    if re.search(_TOKENS, name) or (is_first and embeds):
        return TensorArg(parameter.name, layout if is_first and len(layout) <= 2 else ("B", "L"), "int64", 0, tokens or 8)
    if re.search(_MASK, name):
        return TensorArg(parameter.name, ("B", "L"), "bool")
    if re.search(_TIME, name):
        return TensorArg(parameter.name, ("B",))
    if not is_first and parameter.usage.ranks:
        rank = parameter.usage.ranks[0]
        return TensorArg(parameter.name, layout if len(layout) == rank else LAYOUTS[rank][0])
    return TensorArg(parameter.name, layout)


def _number(parameter: ForwardParameter) -> Arg:
    name = snake(parameter.name)
    return SizeArg(_HEIGHT[name]) if name in _HEIGHT else PlainArg(True if re.search(_FLAG, name) else 2)


def _is_number(parameter: ForwardParameter, among: list[ForwardParameter]) -> bool:
    if re.match(r"(int|float|bool|str)\b", parameter.annotation):
        return True
    name = snake(parameter.name)
    pair = {snake(p.name) for p in among} & _HEIGHT.keys()
    return (name in _HEIGHT and len(pair) == 2) or re.search(_FLAG, name) is not None


def _is_list(parameter: ForwardParameter) -> bool:
    usage = parameter.usage
    return (usage.sequence and not usage.ranks) or re.match(r"(list|List|Sequence|tuple|Tuple)\[", parameter.annotation) is not None


def variations(caller: Caller, guess: Guess, count: int = 2) -> list[Guess]:
    """The same call at other sizes: each symbol takes the next table's size, or one near it, if that runs."""
    varied: list[Guess] = []
    stuck: set[str] = set()
    for table in SIZES[1 : 1 + count]:
        wanted = {s: table.get(s, dict(guess.sizes)[s]) for s in guess.symbols() if s not in stuck}
        candidate = guess.resized(wanted)
        if wanted and not _runs(caller, candidate):
            candidate = _one_by_one(caller, guess, wanted, stuck)
        if candidate.specs() not in [g.specs() for g in (guess, *varied)]:
            varied.append(candidate)
    return varied


def _one_by_one(caller: Caller, guess: Guess, wanted: dict[str, int], stuck: set[str]) -> Guess:
    current = guess
    for symbol, size in wanted.items():
        now = dict(guess.sizes)[symbol]
        others = [size, _up(size, 2), _up(size, 4), _up(size, 8), now - 1, now - 2, now + now // 2, 2 * now, 3 * now]
        for other in dict.fromkeys(n for n in others if n != now and n > 0):
            changed = current.resized({symbol: other})
            if _runs(caller, changed):
                current = changed
                break
        else:
            stuck.add(symbol)
    return current


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _runs(caller: Caller, guess: Guess) -> bool:
    if any(prod(spec.shape) > MAX_ELEMENTS for spec in guess.specs()):
        return False
    return caller.call(guess)[1] is None
