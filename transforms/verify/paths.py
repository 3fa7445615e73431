"""The way of a call through forward: the operators that it calls and the kernels that it launches, in order.

Iterations of a loop that go the same way count once, so ways of inputs of different lengths can be compared. Copies in
new memory do not count: they change no value, and `contiguous` makes none where axes have one element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .plan import Iteration, Launch, LoopRun, Plan
from .plan.launch_plan import Clone, Operator, Step

Way = tuple[Any, ...]  # names of steps, and for each loop its line and the ways of its iterations


def path(plan: Plan) -> list[str]:
    """The names of all steps but copies in new memory."""
    return [name for name in map(_name, plan.steps) if name]


def way(plan: Plan) -> Way:
    return _within([*map(_name, plan.steps)], plan.whole, len(plan.steps))


def counts(plan: Plan) -> Iterator[tuple[int, int]]:
    """The line and the number of iterations of each run of a loop in which a step was made."""
    waiting, steps = [*plan.whole.loops], [*map(_name, plan.steps)]
    while waiting:
        loop = waiting.pop()
        if _has_steps(loop, steps):
            yield loop.line, len(loop.iterations)
            waiting += [inner for each in loop.iterations for inner in each.loops]


def _within(steps: list[str], iteration: Iteration, end: int) -> Way:
    found: list[Any] = []
    at = iteration.start
    for loop in (each for each in iteration.loops if _has_steps(each, steps)):
        starts = [each.start for each in loop.iterations]
        ends = [*starts[1:], loop.end]
        ways = {_within(steps, each, stop) for each, stop in zip(loop.iterations, ends, strict=True)}
        found += [*steps[at : starts[0]], (loop.line, frozenset(ways))]
        at = loop.end
    return tuple(each for each in (*found, *steps[at:end]) if each)


def _has_steps(loop: LoopRun, steps: list[str]) -> bool:
    return bool(loop.iterations) and any(steps[at] for at in range(loop.iterations[0].start, loop.end))


def _name(step: Step) -> str:
    """The name of a step; "" for a copy in new memory."""
    match step:
        case Launch():
            return f"launch {step.kernel}"
        case Operator():
            return step.name
    return "" if isinstance(step, Clone) else type(step).__name__.lower()
