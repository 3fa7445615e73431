"""Find calls of `forward` that run, and other sizes at which the same call runs."""

from __future__ import annotations

import heapq
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from ..lib import pytree
from .guarded_call import Failure, TooSlow, Unfit, attempt, cpu_time_cap
from .guess import MAX_ELEMENTS, SIZES, Guess, draw
from .repairs import NOT_ABOUT_SIZES, in_unit_range, repairs, up_to_multiple

MAX_CALLS = 48  # for one construction; of 780 modules with a call, none needed more than 38 to find it
MAX_CALLS_AGAIN = 24  # after a search for another construction of the module failed; none needed more than 17
_MAX_COST = 90.0  # calls with large inputs count as several
_CALL_ELEMENTS = 20_000  # input elements that cost as much as one call
_MAX_REPAIRS = 24  # of one failure
_MAX_REJECTED = 3  # guesses that run but are no task
_MAX_REPEATED = 6  # repaired failures with the same message, if it is not about sizes
_SLOW_S = 2.0  # of CPU time, for one call
_LONG_S = 1.0  # of CPU time, after which a search ends; most searches take a fiftieth
# Costs in the best-first search: of each start after the first, of a repair, of each better-ranked repair of the same
# failure, and of each earlier failure with the same message; bonus for a failure that got further than all before.
_START, _REPAIR, _RANK, _REPEAT, _PROGRESS = 0.3, 0.1, 0.06, 0.1, 0.3
_MORE = (5, 2)  # added to sizes outside the tables for the second and third workload
_SMALLER = (
    {"H": 6, "W": 10, "T": 4, "L": 12},
    {"H": 4, "W": 6, "T": 3, "L": 8},
    {"H": 3, "W": 5, "T": 2, "L": 4},  # for modules with one contraction for each step
)


class Caller:
    """Calls one module under `no_grad` with tensors drawn from specs."""

    def __init__(self, module: nn.Module, file: str) -> None:
        self.module, self.file = module, file

    def call(self, guess: Guess) -> tuple[Any, Failure | None]:
        return self.call_with(guess, draw(guess.specs(), 0))

    def call_with(self, guess: Guess, tensors: Sequence[Tensor]) -> tuple[Any, Failure | None]:
        """(result, failure); one of them is None.

        Raises:
            Unfit: the call takes too long.
        """
        args = pytree.fill(guess.tree(), tensors)
        try:
            with cpu_time_cap(_SLOW_S), torch.no_grad():
                return attempt(lambda: self.module(*args), self.file)
        except TooSlow as slow:
            raise Unfit("too_big", f"one forward {slow}") from slow


def search(
    caller: Caller,
    starts: Iterable[Guess],
    optional: Mapping[str, int],
    accept: Callable[[Guess], Guess],
    max_calls: int = MAX_CALLS,
) -> Guess | Failure:
    """Best-first search: cheap guesses come before long chains of repairs.

    Args:
        starts: first guesses, best first.
        optional: name -> index of the parameters that default to None.
        accept: called with each guess that runs; returns the guess to use in its place, or raises `Unfit`.
        max_calls: fewer if their inputs are large.

    Returns:
        The first accepted guess, or the failure that got furthest.

    Raises:
        Unfit: some guesses run, but none is accepted.
    """
    queue = _Queue()
    queue.add(starts, 0.0, _START)
    seen: set[Any] = set()
    rejected: list[Unfit] = []
    furthest: Failure | None = None
    repeated: Counter[str] = Counter()
    end = time.process_time() + _LONG_S
    budget = _MAX_COST
    while queue and len(seen) < max_calls and budget > 0:
        if len(rejected) == _MAX_REJECTED or time.process_time() > end:
            break
        cost, guess = queue.pop()
        guess = next((g for g in (guess, *smaller(guess)) if g.elements <= MAX_ELEMENTS), guess)
        if guess.key() in seen or guess.elements > MAX_ELEMENTS:
            continue
        seen.add(guess.key())
        budget -= 1 + guess.elements / _CALL_ELEMENTS
        _, failure = caller.call(guess)
        if failure is None:
            try:
                return accept(guess)
            except Unfit as unfit:
                rejected.append(unfit)
                if unfit.reason == "not_finite":  # a logarithm or a root of normal numbers
                    queue.add(in_unit_range(guess), cost + _REPAIR, _RANK)
                continue
        kind = re.sub(r"\d+", "#", f"{failure.line} {failure}")
        advanced = furthest is None or failure.line > furthest.line
        furthest = failure if advanced else furthest
        repeated[kind] += 1
        if repeated[kind] > _MAX_REPEATED and failure.kind in NOT_ABOUT_SIZES:
            continue
        cost += _REPAIR + _REPEAT * repeated[kind] - (_PROGRESS if advanced else 0)
        queue.add(islice(repairs(guess, failure, optional), _MAX_REPAIRS), cost, _RANK)
    if rejected:
        raise rejected[0]
    return furthest or Failure("ValueError", "no guess at the inputs", 0, (), ())


class _Queue:
    """Guesses, cheapest first. Each iterator of guesses is only evaluated as far as its guesses are popped."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Guess, Iterator[tuple[float, Guess]]]] = []
        self._iterators = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, guesses: Iterable[Guess], cost: float, step: float) -> None:
        """Add guesses, of which the first has the cost and each later one costs `step` more."""
        self._iterators += 1
        self._push(self._iterators, ((cost + step * rank, guess) for rank, guess in enumerate(guesses)))

    def pop(self) -> tuple[float, Guess]:
        """(cost, guess) of the cheapest guess; of equals, the one that was added first."""
        cost, number, guess, later = heapq.heappop(self._heap)
        self._push(number, later)
        return cost, guess

    def _push(self, number: int, guesses: Iterator[tuple[float, Guess]]) -> None:
        if (first := next(guesses, None)) is not None:
            heapq.heappush(self._heap, (first[0], number, first[1], guesses))


def smaller(guess: Guess) -> Iterator[Guess]:
    """The same call with smaller and smaller sizes, each of at most the size it has now."""
    sizes = dict(guess.sizes)
    for table in _SMALLER:
        changes = {s: size for s, size in table.items() if s in guess.symbols() and sizes[s] > size}
        if changes:
            yield guess.resized(changes)


def variations(guess: Guess, runs: Callable[[Guess], bool]) -> list[Guess]:
    """The same call at other sizes: each symbol takes its size from the next table, or a similar one, if that runs."""
    varied: list[Guess] = []
    fixed: set[str] = set()
    for number, table in enumerate(SIZES[1:]):
        sizes = {s: size for s, size in guess.sizes if s in guess.symbols() and s not in fixed}
        wanted = {s: table.get(s, size + _MORE[number] if size > 1 else size) for s, size in sizes.items()}
        candidate = guess.resized(wanted)
        if wanted and not runs(candidate):
            candidate = _one_by_one(guess, runs, wanted, fixed, [dict(g.sizes) for g in varied])
        if candidate.specs() not in [g.specs() for g in (guess, *varied)]:
            varied.append(candidate)
    return varied


def _one_by_one(
    guess: Guess,
    runs: Callable[[Guess], bool],
    wanted: Mapping[str, int],
    fixed: set[str],
    before: Sequence[Mapping[str, int]],
) -> Guess:
    """Resize each symbol to the first size near the wanted one at which the call runs.

    Symbols without such a size are added to `fixed`.
    """
    current = guess
    for symbol, size in wanted.items():
        now = dict(guess.sizes)[symbol]
        taken = {now, *(sizes[symbol] for sizes in before)}
        near = [size, 2 * now, 3 * now]
        if symbol[0] not in "BC":  # a batch is mostly free, channels are mostly fixed
            multiples = (up_to_multiple(size, factor) for factor in (2, 4, 8))
            near[1:1] = [*multiples, now - 1, now - 2, now + now // 2, *_squares(now)]
        for other in dict.fromkeys(n for n in near if n > 0 and n not in taken):
            changed = current.resized({symbol: other})
            if runs(changed):
                current = changed
                break
        else:
            fixed.add(symbol)
    return current


def _squares(size: int) -> list[int]:
    """The next two squares if the size is a square: tokens of an image. Plus one if it is one more: a class token."""
    root = isqrt(size)
    more = size - root * root
    return [(root + step) ** 2 + more for step in (1, 2)] if more < 2 else []
