"""Compare the call that a file itself makes, which may be too large to run, with the calls that were verified.

The module is constructed without values, and the host code evaluated on the shapes of the inputs. No kernel runs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from kernelquarry.filters.language.parsed_source import parsed
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.executor.program import MAX_GRID, exceeds_grid
from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource
from kernelquarry.pipeline.sandbox.jobs.outline import OUTLINE, OutlineRequest
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Workload

from .larger_calls import iterations, new_argument, other_iterations
from .plan import Launch, Plan, PlannedCall, Planner, Raised, TooLong, Unsupported
from .plan.edits import Edits
from .plan.planner import Shaped
from .source_constants import constant_value, integers

_SHOWN = 80  # characters of an expression


Side = tuple[ast.expr | ast.stmt, bool]  # a condition, and its truth value


@dataclass(frozen=True, slots=True)
class GivenCall:
    """The host code in a call of the file itself."""

    fails: str = ""  # why the call cannot run
    untried: str = ""  # a way that it goes, and no verified call went
    note: str = ""  # a number that a kernel gets, where verified calls gave smaller ones; or that there is no plan
    is_planned: bool = True
    forced: bool = False  # it goes a way that was verified with its conditions forced


@dataclass(frozen=True, slots=True)
class OtherText:
    """Judges of the candidate's text with forced conditions: `holds` if it is right on a verified call, too."""

    call: PlannedCall  # the verified one
    holds: Callable[[str], bool]
    verify: Callable[[str], Sequence[Planner]]  # verifies the text; planners of the verified calls, none if it fails
    # Runs smaller calls that go such sides; their planners, none if there are no such calls. Raises: Rejected.
    run_smaller: Callable[[Sequence[Side]], Sequence[Planner]]


_UNPLANNED = GivenCall(note="its host code could not be evaluated at the sizes of get_inputs()", is_planned=False)


def plan_given(
    code: str,
    init_args: str,
    call: Workload,
    tried: Sequence[Planner],
    other: OtherText,
    sandbox: Sandbox,
    limits: Limits,
) -> GivenCall:
    """Plan the call of a file. A note says where it has no plan.

    Args:
        code: text of the candidate.
        tried: planners of this text, which have planned the verified calls and no others.
        other: runs texts in which conditions are forced.
    """
    module = ModuleSource(code, CANDIDATE_ENTRY_POINT, init_args)
    requests = (OutlineRequest(module, with_values) for with_values in (False, True))
    replies = (sandbox.run(Job(OUTLINE, request, {}, limits)).reply for request in requests)
    reply = next((each for each in replies if each is not None), None)
    if reply is None:
        return _UNPLANNED
    own = PlannedCall(call.args, call.kwargs, call.tensors)
    plan = None
    try:
        planner = Planner(tried[0].evaluator.source, reply.snapshot)
        with suppress(TooLong):  # conditions before the limit are known
            plan = planner.plan(own)
    except Raised as raised:
        return GivenCall(fails=str(raised))
    except (Unsupported, MalformedReply):
        return _UNPLANNED
    untried, is_new = list(_untried(planner, tried)), not _launched(planner) <= _launched(*tried)
    again = _verified_so(code, untried, planner, tried, other) if untried and is_new and plan else ()
    known = (*tried, *again)
    found = _UNPLANNED
    if plan is not None:
        note = next(_larger_numbers(plan, known, integers(code)), "")
        found = GivenCall(_too_large(plan), note=note, forced=bool(again))
    if untried and not again and (is_new or not _is_tried_otherwise(code, untried, planner, tried[0], own, other)):
        again = tuple(other.run_smaller(untried)) if plan else ()
        if not again or _beyond(planner, (*tried, *again), untried, integers(code)):
            return replace(found, untried=f"line {untried[0][0].lineno}: no verified call had {_says(*untried[0])}")
        known = (*tried, *again)
    if plan is not None and (looped := other_iterations(plan, _iterations(known))):
        return replace(found, untried=looped)
    if again:
        return replace(found, note=f"{_says(*untried[0])}, as in the call of the file, was verified at smaller sizes")
    return replace(found, note=found.note or next(_new_numbers(planner, tried), ""))


def _verified_so(
    code: str, untried: Sequence[Side], planner: Planner, tried: Sequence[Planner], other: OtherText
) -> tuple[Planner, ...]:
    """Planners of the text with these sides if it is verified, and the file's own call is like its calls; else none."""
    if any(len(planner.evaluator.sides[node]) > 1 for node, _ in untried):
        return ()  # the own call goes both ways
    forced = _with_sides(code, untried, _shift)
    again = tuple(other.verify(forced)) if forced else ()
    return again if again and not _beyond(planner, (*tried, *again), untried, integers(code)) else ()


def _is_tried_otherwise(
    code: str, untried: Sequence[Side], planner: Planner, tried: Planner, own: PlannedCall, other: OtherText
) -> bool:
    """True if these sides change options of launches alone, or a verified call is right on them, too."""
    ratio = max(_ratio(own.inputs, other.call.inputs), _state(planner) / max(1, _state(tried)))
    return _sets_options(code, untried, planner, own) or _holds_so(code, untried, tried, other, ratio)


def _beyond(planner: Planner, known: Sequence[Planner], forced: Sequence[Side], numbers: Sequence[int]) -> bool:
    """True if the file's own call has more beyond the verified ones than the sizes and these sides.

    That is another kernel, flag, number or count of iterations than any, or a size beyond another number of the text.
    """
    conditions = [node for node, _ in forced]
    others = [number for number in numbers if number not in _limits(planner, conditions)]
    (plan,) = planner.plans.values()
    return bool(
        _launched(planner) - _launched(*known)
        or new_argument(plan.launch_log(), _log(known))
        or other_iterations(plan, _iterations(known))
        or next(_larger_numbers(plan, known, others), "")
        or next(_new_numbers(planner, known, conditions), "")
    )


def _limits(planner: Planner, conditions: Sequence[ast.AST]) -> set[float | None]:
    """The constants that occur in these conditions alone, or in a constant of the file that they alone name."""
    nodes, constants = planner.evaluator.source.nodes, planner.evaluator.definitions.constants
    inside = _within(conditions)
    read = {each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    names = {each.id for each in inside if isinstance(each, ast.Name)} - {each.id for each in read - inside}
    inside |= _within([constants[name] for name in names if name in constants])
    return set(map(constant_value, inside)) - {constant_value(each) for each in nodes if each not in inside}


def _within(nodes: Sequence[ast.AST]) -> set[ast.AST]:
    return {inner for node in nodes for inner in ast.walk(node)}


def _iterations(planners: Sequence[Planner]) -> dict[int, set[int]]:
    return iterations(plan for each in planners for plan in each.plans.values())


def _log(planners: Sequence[Planner]) -> list[str]:
    return [launch for each in planners for plan in each.plans.values() for launch in plan.launch_log()]


def _launched(*planners: Planner) -> set[str]:
    """The kernels that the planned calls launch."""
    return {launch.kernel for each in planners for plan in each.plans.values() for launch in plan.launches}


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
    changed = _with_sides(code, [(node, not side) for node, side in untried], _choose, _set_quotient)
    return bool(changed) and _launches_same(changed, planner, own) is True


def _with_sides(
    code: str,
    sides: Sequence[Side],
    force: Callable[[Edits, ast.Call, bool], None],
    force_quotient: Callable[[Edits, ast.BinOp, bool], None] | None = None,
) -> str:
    """The text in which these conditions have these values, and nothing else differs; "" if one cannot be forced.

    Args:
        force: edits a `min` or `max` of two numbers, of which the first is to be chosen if the flag is true.
        force_quotient: edits a quotient that is rounded down, which is to be above 0 if the flag is true.
    """
    edits = Edits(code)
    for node, side in sides:
        if isinstance(node, ast.Call) and _choice(node) and len(node.args) == 2:
            force(edits, node, side)
        elif isinstance(node, ast.BinOp) and force_quotient is not None:
            force_quotient(edits, node, side)
        elif isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Name | ast.Attribute):
            edits.wrap(node, "((", ") is not None)" if side else ") is None)")
        else:
            return ""
    return edits.apply()


def _choose(edits: Edits, node: ast.Call, first: bool) -> None:
    edits.wrap(node, "", f"[{0 if first else 1}]")
    edits.replace([node.func], "")


def _set_quotient(edits: Edits, node: ast.BinOp, is_positive: bool) -> None:
    edits.wrap(node, *(("max(1, ", ")") if is_positive else ("(0 * (", "))")))


def _shift(edits: Edits, node: ast.Call, _first: bool = True) -> None:
    """Half of what `min` gave stands for a lower limit, and twice of what `max` gave for a higher one."""
    edits.wrap(node, *(("((", " + 1) // 2)") if _choice(node) == "min" else ("(2 * ", ")")))


def _choice(node: ast.Call) -> str:
    """`min` or `max` if the call is written so, else ""."""
    name = ast.unparse(node.func)
    return name if name in ("min", "max") else ""


def _launches_same(changed: str, planner: Planner, call: PlannedCall) -> bool | None:
    """True if another text launches the same in a call, options such as `num_warps` aside; None without a plan."""
    try:
        other = Planner(parsed(changed), planner.snapshot).plan(call)
        return _without_options(other) == _without_options(planner.plan(call))
    except (Raised, Unsupported, MalformedReply, SyntaxError):
        return None


def _without_options(plan: Plan) -> Plan:
    steps = (replace(step, options={}) if isinstance(step, Launch) else step for step in plan.steps)
    return replace(plan, steps=tuple(steps))


def _holds_so(code: str, untried: Sequence[Side], tried: Planner, other: OtherText, ratio: float) -> bool:
    """True if the verified call is right on these sides, too.

    Where a condition compares with a constant, the constant is made smaller everywhere, by the ratio of the two calls'
    sizes, so that what depends on it follows; other conditions are forced. Other values stand for what `min` and `max`
    gave, such as the limit of a grid whose programs loop.

    Args:
        ratio: size of the file's own call over that of the verified one.
    """
    edits, constants = Edits(code), set[str]()
    for node, side in untried:
        if isinstance(node, ast.Call) and _choice(node):
            _shift(edits, node)
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
    return _launches_same(forced, tried, other.call) is False and other.holds(forced)


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


def _new_numbers(planner: Planner, tried: Sequence[Planner], but: Sequence[ast.AST] = ()) -> Iterator[str]:
    """Numbers that were the same in all verified calls, though their parts were not, and are others now.

    Args:
        tried: planners of this text, or of texts whose lines are the same.
        but: conditions that are left out.
    """
    known: dict[tuple[int, str], set[int | float]] = {}
    for each in tried:
        for node, values in each.evaluator.numbers.items():
            known.setdefault(_place(node), set()).update(values)
    for node, values in planner.evaluator.numbers.items():
        before = known.get(_place(node), set())
        varied = (len(known.get(_place(part), ())) > 1 for part in ast.walk(node) if part is not node)
        if node not in but and len(before) == 1 and not values <= before and any(varied):
            assert isinstance(node, ast.expr)
            text, new = ast.unparse(node)[:_SHOWN], min(values - before)
            yield f"line {node.lineno}: {text} is {new} in the call of the file, and was {min(before)} in verified ones"


def _place(node: ast.AST) -> tuple[int, str]:
    return getattr(node, "lineno", 0), ast.unparse(node)


def _says(node: ast.expr | ast.stmt, side: bool) -> str:
    text = ast.unparse(node)[:_SHOWN]
    if isinstance(node, ast.Call):
        return f"{text} choose {'the first' if side else 'another'} number"
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return f"{text} {'above 0' if side else 'equal to 0'}"
    return f"{text} {str(side).lower()}"
