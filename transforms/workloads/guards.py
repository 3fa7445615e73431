"""Guards: conditions on the sizes of a call under which a candidate's kernels are correct.

A guard is a Python condition in integer arithmetic, such as `input0_2 <= 31` or `input1_0 == input0_0`. The name
`input0_1` is the size of axis 1 of the call's first tensor. A candidate with guards checks them in `forward`. Until
`tidy`, a guard may also contain sizes of the module, such as `state2_0` for axis 0 of the tensor of the third binding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from kernelquarry.pipeline.schema.parse_python import parse_expression
from kernelquarry.pipeline.schema.records import Workload

_SIZE = re.compile(r"(input|state)(\d{1,4})_(\d{1,4})")
_LONGEST = 500  # characters
_ALLOWED = (
    ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Load,
    ast.And, ast.Or, ast.Not, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip


def parse_guard(text: str, of_module: bool = False) -> ast.expr:
    """Parse a guard, with `of_module` also one about sizes of the module.

    Raises: ValueError: the text is no condition in integer arithmetic over sizes.
    """
    try:
        tree = parse_expression(text) if len(text) <= _LONGEST else None
    except (SyntaxError, RecursionError, MemoryError):
        tree = None
    if tree is None or not all(_is_allowed(node, of_module) for node in ast.walk(tree)):
        raise ValueError(f"no guard: {text[:80]!r}")
    return tree


def _is_allowed(node: ast.AST, of_module: bool) -> bool:
    match node:
        case ast.Name(name):
            place = size_at(name)
            return name in ("min", "max") if place is None else of_module or place[0] == "input"
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Call(func=ast.Name("min" | "max"), keywords=[]):
            return True
    return isinstance(node, _ALLOWED)


Place = tuple[str, int, int]  # "input" or "state", the index of the tensor, and its axis


def size_at(name: str) -> Place | None:
    """The place of a size with a name such as `input0_1`; None for other names."""
    match = _SIZE.fullmatch(name)
    return (match[1], int(match[2]), int(match[3])) if match else None


def same_sizes(guards: Iterable[ast.expr]) -> dict[Place, Place]:
    """Map each size of a call to the first size that the guards require it to equal."""
    found: dict[Place, Place] = {}
    for guard in guards:
        match guard:
            case ast.Compare(left=ast.Name(left), ops=[ast.Eq()], comparators=[ast.Name(right)]):
                if (place := size_at(left)) and (first := size_at(right)) and place[0] == "input":
                    found[place] = first
    return found


def hold(guards: Iterable[str], workload: Workload) -> bool:
    """True if all guards hold for a call. A guard that cannot be evaluated does not hold.

    Raises: ValueError: a text is no guard.
    """
    sizes = {
        f"input{tensor}_{axis}": size
        for tensor, spec in enumerate(workload.tensors)
        for axis, size in enumerate(spec.shape)
    }
    return all(_is_true(parse_guard(guard), sizes) for guard in guards)


def _is_true(condition: ast.expr, sizes: dict[str, int]) -> bool:
    code = compile(ast.Expression(condition), "<guard>", "eval")
    try:
        return bool(eval(code, {"__builtins__": {}, "min": min, "max": max}, dict(sizes)))
    except (ZeroDivisionError, NameError, TypeError):
        return False
