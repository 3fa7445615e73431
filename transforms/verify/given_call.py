"""Compare the call that a file itself makes, which may be too large to run, with the calls that were verified.

The module is constructed without values, and the host code evaluated on the shapes of the inputs. No kernel runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kernelquarry.filters.lint.parsed_source import Source
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.executor.program import MAX_GRID
from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource
from kernelquarry.pipeline.sandbox.jobs.outline import OUTLINE, OutlineRequest
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Workload

from .plan import Plan, PlannedCall, Planner, Raised, TooLong, Unsupported
from .plan.edits import Edits
from .source_constants import integers

_SHOWN = 80  # characters of an expression


@dataclass(frozen=True, slots=True)
class GivenCall:
    """The host code in a call of the file itself."""

    fails: str = ""  # why the call cannot run
    untried: str = ""  # a way that it goes, and no verified call went
    note: str = ""  # a number that a kernel gets, where verified calls gave smaller ones


_UNPLANNED = GivenCall(note="its host code could not be evaluated at the sizes of get_inputs()")


def plan_given(
    code: str,
    init_args: str,
    call: Workload,
    tried: Sequence[Planner],
    holds: Callable[[str], bool],
    sandbox: Sandbox,
    limits: Limits,
) -> GivenCall:
    """Plan the call of a file. A note says where it has no plan.

    Args:
        code: text of the candidate.
        tried: planners of this text, which have planned the verified calls and no others.
        holds: runs another text on a verified call; True if it is right, too.
    """
    module = ModuleSource(code, CANDIDATE_ENTRY_POINT, init_args)
    requests = (OutlineRequest(module, with_values) for with_values in (False, True))
    replies = (sandbox.run(Job(OUTLINE, request, {}, limits)).reply for request in requests)
    reply = next((each for each in replies if each is not None), None)
    if reply is None:
        return _UNPLANNED
    try:
        planner = Planner(tried[0].evaluator.source, reply.snapshot)
        plan = planner.plan(PlannedCall(call.args, call.kwargs, call.tensors))
    except Raised as raised:
        return GivenCall(fails=str(raised))
    except (TooLong, Unsupported, MalformedReply):
        return _UNPLANNED
    note = next(_larger_numbers(plan, tried, integers(code)), "")
    untried = list(_untried(planner, tried))
    if untried and _holds_so(code, untried, tried[0], holds):
        untried = []
    return GivenCall(_too_large(plan), _described(*untried[0]) if untried else "", note)


def _larger_numbers(plan: Plan, tried: Sequence[Planner], numbers: Sequence[int]) -> Iterator[str]:
    """Integers that a launch gets, between which and those of verified calls lies a number of the text."""
    largest: dict[tuple[str, str], int] = {}
    for launch in (launch for planner in tried for each in planner.plans for launch in each.launches):
        for name, value in launch.arguments.items():
            if type(value) is int:
                largest[launch.kernel, name] = max(value, largest.get((launch.kernel, name), value))
    for launch in plan.launches:
        for name, value in launch.arguments.items():
            before = largest.get((launch.kernel, name))
            between = [n for n in numbers if type(value) is int and before is not None and before <= n < value]
            if between:
                yield f"no call gave {launch.kernel} a {name} above {between[-1]}, a number of its file; its own does"


def _too_large(plan: Plan) -> str:
    for launch in plan.launches:
        if any(size > most for size, most in zip(launch.grid, MAX_GRID, strict=False)):
            return f"{launch.kernel} is launched with the grid {list(launch.grid)}; a GPU takes {list(MAX_GRID)}"
    return ""


def _holds_so(
    code: str, untried: Sequence[tuple[ast.expr, bool]], tried: Planner, holds: Callable[[str], bool]
) -> bool:
    """True if a verified call is right on these sides, too: with conditions that are forced to them.

    A number that `min` or `max` never chose is too large or too small for a call that can run. Half of what `min` gave
    stands for a lower limit, such as that of a grid whose programs loop, and twice of what `max` gave for a higher one.
    """
    edits = Edits(code)
    for node, side in untried:
        if isinstance(node, ast.BinOp):
            return False
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            edits.wrap(node, "((", ") or True)" if side else ") and False)")
        elif ast.unparse(node.func) == "min":
            edits.wrap(node, "((", " + 1) // 2)")
        else:
            edits.wrap(node, "(2 * ", ")")
    forced = edits.apply()
    try:
        other = Planner(Source(forced), tried.snapshot)
        differs = any(other.plan(call) != tried.plan(call) for call in tried.calls)
    except (Raised, Unsupported, MalformedReply):
        return False
    return differs and holds(forced)


def _untried(planner: Planner, tried: Sequence[Planner]) -> Iterator[tuple[ast.expr, bool]]:
    """Conditions, and the side of each that no verified call took."""
    for node, sides in planner.evaluator.sides.items():
        known = set[bool]().union(*(each.evaluator.sides.get(node, ()) for each in tried))
        for side in sides - known:
            assert isinstance(node, ast.expr)
            yield node, side


def _described(node: ast.expr, side: bool) -> str:
    return f"line {node.lineno}: no verified call had {ast.unparse(node)[:_SHOWN]} {_says(node, side)}"


def _says(node: ast.expr, side: bool) -> str:
    if isinstance(node, ast.Call) and len(node.args) > 1:
        return f"choose its {'first' if side else 'second'} argument"
    if isinstance(node, ast.BinOp):
        return "above 0" if side else "equal to 0"
    return str(side).lower()
