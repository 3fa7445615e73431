"""Compare the call that a file itself makes, which may be too large to run, with the calls that were verified.

The module is constructed without values, and the host code evaluated on the shapes of the inputs. No kernel runs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from kernelquarry.filters.lint.parsed_source import Source
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.executor.program import MAX_GRID, exceeds_grid
from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource
from kernelquarry.pipeline.sandbox.jobs.outline import OUTLINE, OutlineRequest
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Workload

from .plan import Launch, Plan, PlannedCall, Planner, Raised, TooLong, Unsupported
from .plan.edits import Edits
from .plan.planner import Shaped
from .source_constants import constant_value, integers

_SHOWN = 80  # characters of an expression


@dataclass(frozen=True, slots=True)
class GivenCall:
    """The host code in a call of the file itself."""

    fails: str = ""  # why the call cannot run
    untried: str = ""  # a way that it goes, and no verified call went
    note: str = ""  # a number that a kernel gets, where verified calls gave smaller ones; or that there is no plan
    is_planned: bool = True


@dataclass(frozen=True, slots=True)
class SmallCall:
    """A verified call; `holds` runs another text on it, and is true if it is right, too."""

    call: PlannedCall
    holds: Callable[[str], bool]


Side = tuple[ast.expr | ast.stmt, bool]  # a condition, and its truth value
_UNPLANNED = GivenCall(note="its host code could not be evaluated at the sizes of get_inputs()", is_planned=False)


def plan_given(
    code: str,
    init_args: str,
    call: Workload,
    tried: Sequence[Planner],
    small: SmallCall,
    sandbox: Sandbox,
    limits: Limits,
) -> GivenCall:
    """Plan the call of a file. A note says where it has no plan.

    Args:
        code: text of the candidate.
        tried: planners of this text, which have planned the verified calls and no others.
        small: a verified call that can run with another text.
    """
    module = ModuleSource(code, CANDIDATE_ENTRY_POINT, init_args)
    requests = (OutlineRequest(module, with_values) for with_values in (False, True))
    replies = (sandbox.run(Job(OUTLINE, request, {}, limits)).reply for request in requests)
    reply = next((each for each in replies if each is not None), None)
    if reply is None:
        return _UNPLANNED
    own = PlannedCall(call.args, call.kwargs, call.tensors)
    found = _UNPLANNED
    try:
        planner = Planner(tried[0].evaluator.source, reply.snapshot)
        with suppress(TooLong):  # conditions before the limit are known
            plan = planner.plan(own)
            found = GivenCall(_too_large(plan), note=next(_larger_numbers(plan, tried, integers(code)), ""))
    except Raised as raised:
        return GivenCall(fails=str(raised))
    except (Unsupported, MalformedReply):
        return _UNPLANNED
    untried = list(_untried(planner, tried))
    if untried and not _launched(planner) - set[str]().union(*map(_launched, tried)):
        ratio = max(_ratio(own.inputs, small.call.inputs), _state(planner) / max(1, _state(tried[0])))
        if _sets_options(code, untried, planner, own) or _holds_so(code, untried, tried[0], small, ratio):
            untried = []
    if untried:
        return replace(found, untried=_described(*untried[0]))
    return replace(found, note=found.note or next(_new_numbers(planner, tried), ""))


def _launched(planner: Planner) -> set[str]:
    """The kernels that the planned calls launch."""
    return {launch.kernel for plan in planner.plans.values() for launch in plan.launches}


def _larger_numbers(plan: Plan, tried: Sequence[Planner], numbers: Sequence[int]) -> Iterator[str]:
    """Integers that a launch gets, between which and those of verified calls lies a number of the text."""
    largest: dict[tuple[str, str], int] = {}
    for launch in (launch for planner in tried for each in planner.plans.values() for launch in each.launches):
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
        if exceeds_grid(launch.grid):
            return f"{launch.kernel} is launched with the grid {list(launch.grid)}; a GPU takes {list(MAX_GRID)}"
    return ""


def _ratio(inputs: Sequence[Shaped], others: Sequence[Shaped]) -> float:
    count, other = (sum(math.prod(each.shape) for each in tensors) for tensors in (inputs, others))
    return count / max(1, other)


def _state(planner: Planner) -> int:
    """Bytes of the module."""
    sizes: list[int] = planner.snapshot["storages"]
    return sum(sizes)


def _sets_options(code: str, untried: Sequence[Side], planner: Planner, own: PlannedCall) -> bool:
    """True if the file's own call would launch the same on the tried sides, but for options such as `num_warps`."""
    edits = Edits(code)
    for node, side in untried:
        if isinstance(node, ast.Call) and _choice(node) and len(node.args) == 2:
            edits.replace([node], f"({ast.unparse(node.args[1 if side else 0])})")
        elif isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Name | ast.Attribute):
            edits.wrap(node, "((", ") and False)" if side else ") or True)")
        else:
            return False
    return _launches_same(edits.apply(), planner, own) is True


def _choice(node: ast.Call) -> str:
    """`min` or `max` if the call is written so, else ""."""
    name = ast.unparse(node.func)
    return name if name in ("min", "max") else ""


def _launches_same(changed: str, planner: Planner, call: PlannedCall) -> bool | None:
    """True if another text launches the same in a call, options such as `num_warps` aside; None without a plan."""
    try:
        other = Planner(Source(changed), planner.snapshot).plan(call)
        return _without_options(other) == _without_options(planner.plan(call))
    except (Raised, Unsupported, MalformedReply, SyntaxError):
        return None


def _without_options(plan: Plan) -> Plan:
    steps = (replace(step, options={}) if isinstance(step, Launch) else step for step in plan.steps)
    return replace(plan, steps=tuple(steps))


def _holds_so(code: str, untried: Sequence[Side], tried: Planner, small: SmallCall, ratio: float) -> bool:
    """True if the small call is right on these sides, too.

    Where a condition compares with a constant, the constant is made smaller everywhere, by the ratio of the two calls'
    sizes, so that what depends on it follows; other conditions are forced. Half of what `min` gave stands for a lower
    limit, such as that of a grid whose programs loop, and twice of what `max` gave for a higher one.

    Args:
        ratio: size of the file's own call over that of the small one.
    """
    edits, constants = Edits(code), set[str]()
    for node, side in untried:
        if isinstance(node, ast.Call) and (name := _choice(node)):
            edits.wrap(node, *(("((", " + 1) // 2)") if name == "min" else ("(2 * ", ")")))
        elif isinstance(node, ast.Compare) and (found := _constants(node, tried)):
            constants |= found
        elif isinstance(node, ast.expr) and not isinstance(node, ast.BinOp | ast.Call):
            edits.wrap(node, "((", ") or True)" if side else ") and False)")
        else:
            return False
    for each in tried.evaluator.source.nodes:
        value = constant_value(each)
        if isinstance(each, ast.expr) and value is not None and ast.unparse(each) in constants:
            edits.replace([each], str(max(1, int(value / ratio))))
    forced = edits.apply()
    return _launches_same(forced, tried, small.call) is False and small.holds(forced)


def _constants(node: ast.Compare, tried: Planner) -> set[str]:
    """The texts of the constants that a condition compares with, above 1, here or where the file sets them."""
    known = tried.evaluator.definitions.constants
    parts = [
        known.get(each.id, each) if isinstance(each, ast.Name) else each for each in (node.left, *node.comparators)
    ]
    return {ast.unparse(each) for each in parts if (constant_value(each) or 0) > 1}


def _untried(planner: Planner, tried: Sequence[Planner]) -> Iterator[Side]:
    """Conditions, and the side of each that no verified call took."""
    for node, sides in planner.evaluator.sides.items():
        known = set[bool]().union(*(each.evaluator.sides.get(node, ()) for each in tried))
        for side in sides - known:
            assert isinstance(node, ast.expr | ast.stmt)
            yield node, side


def _new_numbers(planner: Planner, tried: Sequence[Planner]) -> Iterator[str]:
    """Numbers that were the same in all verified calls, though their parts were not, and are others now."""
    for node, values in planner.evaluator.numbers.items():
        known = _numbers(node, tried)
        if len(known) == 1 and not values <= known and any(len(_numbers(each, tried)) > 1 for each in _parts(node)):
            assert isinstance(node, ast.expr)
            text, new = ast.unparse(node)[:_SHOWN], min(values - known)
            yield f"line {node.lineno}: {text} is {new} in the call of the file, and was {min(known)} in verified ones"


def _numbers(node: ast.AST, tried: Sequence[Planner]) -> set[int | float]:
    return set[int | float]().union(*(each.evaluator.numbers.get(node, ()) for each in tried))


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    return (each for each in ast.walk(node) if each is not node)


def _described(node: ast.expr | ast.stmt, side: bool) -> str:
    return f"line {node.lineno}: no verified call had {ast.unparse(node)[:_SHOWN]} {_says(node, side)}"


def _says(node: ast.expr | ast.stmt, side: bool) -> str:
    if isinstance(node, ast.Call):
        return f"choose {'the first' if side else 'another'} number"
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return "above 0" if side else "equal to 0"
    return str(side).lower()
