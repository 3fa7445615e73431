"""Simplify a kernel's body in one pass, with every expression in plain Triton.

Copies and constants move to their uses. Broadcasts that Triton does by itself, casts to a value's own dtype and masks
that are always true go. Every element that is stored keeps its value.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from ..read.inductor_source import RawKernel
from ..refusals import NotTidied
from ..syntax.ast_tools import called, walk, with_body
from . import forms
from .iteration_space import Axis, is_matmul
from .passes import without_round_trips
from .triton_functions import call, parsed
from .typed_expressions import Expressions
from .value_types import Value

_ATOMICS = ("tl.atomic_add", "tl.atomic_max", "tl.atomic_min", "tl.atomic_xchg", "tl.atomic_or", "tl.atomic_and")
_INDEX = re.compile(r"([xyz]|r\d_)\d+")


class Simplifier(Expressions):
    """Simplifies the body of one kernel; `values` holds the types of its names afterwards."""

    def __init__(self, kernel: RawKernel, axes: Sequence[Axis], body: Sequence[ast.stmt]) -> None:
        super().__init__(kernel.types, axes, is_matmul(body))
        self.depth = 0  # of loops
        body = without_round_trips(body, kernel.types)
        names = [node for statement in body for node in walk(statement) if isinstance(node, ast.Name)]
        self.assigned = Counter(name.id for name in names if isinstance(name.ctx, ast.Store))
        self.body = self.statements(body)

    def is_one_integer(self, name: str) -> bool:
        """True for a name of one value, a 32-bit integer."""
        return self.is_set_once(name) and self.values.get(name, Value()).dtype == "int32"

    def is_set_once(self, name: str) -> bool:
        """True for a name of one value, within an iteration of the loop that it is in."""
        return self.assigned[name] <= 1 or _INDEX.fullmatch(name) is not None

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                return self._assign(name, value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                new, known = self.expression(value)
                if len(targets) == 1 and called(new) in ("tl.cumsum", "tl.cumprod"):
                    self.values[ast.unparse(targets[0])] = known
                    return [ast.Assign([targets[0]], new, lineno=0)]
                for target in targets:
                    self.values[ast.unparse(target)] = Value(known.axes)
                return [ast.Assign(node.targets, new, lineno=0)]
            case ast.For(iter=steps, body=inner):
                self.depth += 1
                loop = with_body(node, self.statements(inner))
                self.depth -= 1
                loop.iter = self.expression(steps)[0]
                return [loop]
            case ast.Expr(value=ast.Call(args=args) as value):
                return self._effect(called(value), args)
        raise NotTidied(f"statement {ast.unparse(node)[:120]}")

    def _assign(self, name: str, value: ast.expr) -> list[ast.stmt]:
        new, known = self.expression(value)
        self.values[name] = known if name not in self.values or not known.literal else self.values[name]
        # An index that Inductor calls "x0" or "r0_1" has the same value in every loop that assigns it.
        if _INDEX.fullmatch(name) and isinstance(new, ast.BinOp) and isinstance(new.op, ast.Mod):
            self.limits[name] = ast.unparse(new.right)
        if self.assigned[name] == 1 or _INDEX.fullmatch(name):
            if (isinstance(new, ast.Name) and (self.assigned[new.id] <= 1 or not self.depth)) or known.literal:
                self.copies[name] = new
                return []
            if (load := forms.loaded(new)) is not None:
                self.loads[name] = load
        if not isinstance(new, ast.Name | ast.Constant):
            ast.copy_location(new, value)  # its line identifies its source wherever it is inlined
        return [ast.Assign([ast.Name(name, ast.Store())], new, lineno=0)]

    def _effect(self, function: str, args: Sequence[ast.expr]) -> list[ast.stmt]:
        if function == "tl.store" or function in _ATOMICS:
            pointer, where, keywords = self.access(args[0], args[2:3])
            value, known = self.expression(args[1])
            if function in _ATOMICS and known.axes < where.axes:
                value = self.broadcast(value, where.axes, known.dtype)
            for axis in (self.axes[prefix] for prefix in sorted(known.axes - where.axes)):
                if axis.size != 1:
                    raise NotTidied(f"one address for a block of {axis.size} values")
                pointer = ast.BinOp(pointer, ast.Add(), ast.Name(axis.index, ast.Load()))
            return [ast.Expr(ast.Call(parsed(function), [pointer, value], keywords))]
        if function == "tl.debug_barrier":
            return [ast.Expr(call(function))]
        if function in ("tl.device_assert", "tl.static_assert"):
            return []
        raise NotTidied(f"call of {function}")
