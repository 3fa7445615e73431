"""The way of a call through forward: the operators that it calls and the kernels that it launches, in order.

Iterations of a loop that go the same way count once, so ways of inputs of different lengths can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .plan import Iteration, Launch, LoopRun, Plan

Way = tuple[Any, ...]  # names of steps, and for each loop its line and the ways of its iterations


def path(plan: Plan) -> list[str]:
    """The names of all steps."""
    return [f"launch {each.kernel}" if isinstance(each, Launch) else _name(each) for each in plan.steps]


def way(plan: Plan) -> Way:
    steps = path(plan)
    return _within(steps, plan.whole, len(steps))


def counts(plan: Plan) -> Iterator[tuple[int, int]]:
    """The line and the number of iterations of each run of a loop in which a step was made."""
    waiting = [*plan.whole.loops]
    while waiting:
        loop = waiting.pop()
        if _has_steps(loop):
            yield loop.line, len(loop.iterations)
            waiting += [inner for each in loop.iterations for inner in each.loops]


def _within(steps: list[str], iteration: Iteration, end: int) -> Way:
    found: list[Any] = []
    at = iteration.start
    for loop in filter(_has_steps, iteration.loops):
        starts = [each.start for each in loop.iterations]
        ends = [*starts[1:], loop.end]
        ways = {_within(steps, each, stop) for each, stop in zip(loop.iterations, ends, strict=True)}
        found += [*steps[at : starts[0]], (loop.line, frozenset(ways))]
        at = loop.end
    return (*found, *steps[at:end])


def _has_steps(loop: LoopRun) -> bool:
    return bool(loop.iterations) and loop.iterations[0].start < loop.end


def _name(step: Any) -> str:
    return getattr(step, "name", type(step).__name__.lower())
