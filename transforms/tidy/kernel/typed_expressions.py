"""Rewrite the expressions of a kernel in plain Triton, together with their types."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..refusals import NotTidied
from ..syntax.algebra import polynomial, render
from ..syntax.ast_tools import keywords_of, names_in
from . import forms, matmul
from .iteration_space import Axis
from .mathematics import MATHEMATICS
from .triton_functions import call, parsed, translate
from .value_types import CONDITION, Value, combined, element, literal

_REDUCTIONS = frozenset(
    "tl.sum tl.max tl.min tl.reduce tl.argmax tl.argmin tl.xor_sum tl.reduce_or nan_max nan_min any_true arg_max "
    "arg_min".split()
)
_SCANS = ("tl.cumsum", "tl.cumprod", "tl.associative_scan", "tl.sort", "tl.flip")
_ROUNDING = {"floor_divide": ast.FloorDiv(), "floor_remainder": ast.Mod()}


Typed = tuple[ast.expr, Value]  # an expression in plain Triton, and its type


class Expressions:
    """The meaning of a kernel's expressions: its axes, the dtypes of its parameters, and the types of names so far."""

    def __init__(self, types: Mapping[str, str], axes: Sequence[Axis], is_matmul: bool) -> None:
        self.axes = {axis.prefix: axis for axis in axes}
        self.types = types
        self.is_matmul = is_matmul
        self.copies: dict[str, ast.expr] = {}  # names that are replaced by their values
        self.limits: dict[str, str] = {}  # part of an index -> its upper bound
        self.loads: dict[str, ast.Call] = {}
        self.values = {name: Value(dtype="int32") for name, kind in types.items() if kind.startswith("i")}
        for axis in self.axes.values():
            over = frozenset() if axis.prefix == "z" and is_matmul else frozenset({axis.prefix})
            self.values[axis.index] = Value(over, "int32")
            self.values[axis.mask] = Value(over, "int1")
            self.values[f"{axis.prefix}offset"] = Value(dtype="int32")

    @property
    def outer(self) -> int:
        """The number of axes of which each program has one index, and that are no dimensions of blocks."""
        return 0 if self.is_matmul else max(0, len(self.axes) - 2)

    @property
    def reduced(self) -> frozenset[str]:
        return frozenset(prefix for prefix, axis in self.axes.items() if axis.is_reduced)

    @property
    def single(self) -> frozenset[str]:
        """Axes of size 1 that are dimensions of blocks nevertheless."""
        return frozenset(p for p, axis in self.axes.items() if axis.size == 1 and axis.shape and not axis.is_reduced)

    def expression(self, node: ast.expr) -> Typed:
        """Rewrite an expression.

        Raises:
            NotTidied: it has an unknown form.
        """
        if (known := literal(node)) is not None:
            return node, known
        match node:
            case ast.Name(name):
                return self._name(name)
            case ast.BinOp(left=left, op=op, right=right):
                new, known = self._binary(left, op, right)
                is_integer = known.dtype in ("int32", "int64")
                return (self.index(new) if forms.is_index(new) and is_integer else new), known
            case ast.UnaryOp(op=op, operand=operand):
                new, known = self.expression(operand)
                return ast.UnaryOp(op, new), known
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                (a, known_a), (b, known_b) = self.expression(left), self.expression(right)
                if self._is_certain(a, op, b):
                    return ast.Constant(True), CONDITION
                return forms.compared(a, op, b), combined([known_a, known_b], "int1")
            case ast.IfExp():
                return self._by_dtype(node)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(value, index)
            case ast.Attribute(value=ast.Name("tl")) | ast.Constant():
                return node, Value()
            case ast.Tuple(elts=items) | ast.List(elts=items):
                pairs = [self.expression(item) for item in items]
                return type(node)([new for new, _ in pairs], ast.Load()), combined([known for _, known in pairs], "")
            case ast.Call():
                return self._call(node)
        raise NotTidied(f"expression {ast.unparse(node)[:120]}")

    def _name(self, name: str) -> Typed:
        for axis in self.axes.values():
            if name == axis.numel and axis.size is not None:
                return ast.Constant(axis.size), Value(dtype="int32", literal=True)
        if name.endswith("_base") and (prefix := name.removesuffix("base")) in self.axes:
            return parsed(f"{prefix}index - {prefix}offset"), Value(frozenset({prefix}), "int32")
        if name in self.copies:
            copied = self.copies[name]
            return copied, literal(copied) or self.values.get(ast.unparse(copied), self.values[name])
        return ast.Name(name, ast.Load()), self.values.get(name, Value())

    def _binary(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Typed:
        if isinstance(op, ast.BitAnd):
            return self._conjunction(ast.BinOp(left, op, right))
        if isinstance(op, ast.Add) and (chosen := forms.extreme(left, right)) is not None:
            return self._extreme(*chosen)
        (a, known_a), (b, known_b) = self.expression(left), self.expression(right)
        known = combined([known_a, known_b])
        if isinstance(op, ast.Div) and not known.is_float:
            return self._ratio(left, right)
        if isinstance(op, ast.FloorDiv) and isinstance(b, ast.Constant) and b.value == 1:
            return a, known
        if known.is_float and isinstance(op, ast.Mult) and forms.is_one(a):
            return b, known_b
        if known.is_float and isinstance(op, ast.Mult | ast.Div) and forms.is_one(b):
            return a, known_a
        if known.literal and isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv) and not known.is_float:
            value = polynomial(ast.BinOp(a, op, b))
            if value.constant is not None:
                return ast.Constant(value.constant), known
        return ast.BinOp(a, op, b), known

    def _ratio(self, left: ast.expr, right: ast.expr) -> Typed:
        """A correctly rounded ratio of integers.

        A GPU's fast division gives less than 1 for 33 / 33, and the ratio may be rounded down to an index.
        """
        floats = [self._cast(side, parsed("tl.float32")) for side in (left, right)]
        return call("tl.div_rn", *(new for new, _ in floats)), combined([known for _, known in floats], "float32")

    def _extreme(self, function: str, left: ast.expr, right: ast.expr) -> Typed:
        (a, known_a), (b, known_b) = self.expression(left), self.expression(right)
        if function == "tl.maximum" and isinstance(a, ast.Constant) and a.value == 1 and not known_b.axes:
            return b, known_b  # a size, which is at least 1
        return call(function, a, b), combined([known_a, known_b])

    def _by_dtype(self, node: ast.IfExp) -> Typed:
        """The branch of `f(x) if x.dtype is tl.float32 else g(x)` that the known dtype selects."""
        match node.test:
            case ast.Compare(left=ast.Attribute(value=tested, attr="dtype"), comparators=[dtype]):
                known = self.expression(tested)[1]
                if known.dtype:
                    return self.expression(node.body if ast.unparse(dtype) == f"tl.{known.dtype}" else node.orelse)
        raise NotTidied(f"choice {ast.unparse(node)[:120]}")

    def _subscript(self, value: ast.expr, index: ast.expr) -> Typed:
        new, known = self.expression(value)
        if self.is_matmul or not isinstance(new, ast.Call | ast.Name) or known.literal:
            return new, known
        if self.outer:
            assert isinstance(index, ast.Tuple)
            index = ast.Tuple(index.elts[self.outer :], ast.Load())
        return ast.Subscript(new, index, ast.Load()), known

    # Calls

    def _call(self, node: ast.Call) -> Typed:
        function = ast.unparse(node.func).replace("triton.language.", "tl.")  # its prefix where it rounds as eager
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self._cast(node.func.value, node.args[0])
        if function.endswith(").broadcast_to"):  # "tl.full(...).broadcast_to(XBLOCK, 1)"
            return self.expression(node.func.value)  # type: ignore[attr-defined]
        handler = {
            "tl.load": self._load, "tl.full": self._full, "tl.zeros": self._full, "tl.where": self._where,
            "tl.broadcast_to": self._dropped_shape, "tl.reshape": self._dropped_shape, "tl.trans": self._dropped_shape,
        }.get(function)  # fmt: skip
        if handler is not None:
            return handler(node)
        pairs = [self.expression(argument) for argument in node.args]
        args, known = [new for new, _ in pairs], [value for _, value in pairs]
        if function == "tl.associative_scan" and (scan := forms.known_scan(node)) is not None:
            function, args, known = scan, [args[0].elts[0], args[1]], known[:1]  # type: ignore[attr-defined]
        replaced = translate(function, args, keywords_of(node), combined(known).dtype)
        if replaced is not None:
            if not isinstance(replaced, ast.Call):
                return replaced, combined(known, "int1") if isinstance(replaced, ast.Compare) else known[0]
            function, keywords = ast.unparse(replaced.func), replaced.keywords
            if (operator := _ROUNDING.get(function)) is not None and forms.is_natural(args[0]):
                return ast.BinOp(args[0], operator, args[1]), combined(known)
            if function in ("tl.reduce", "tl.sum"):
                known = known[:1]
            args = list(replaced.args)
            if function in ("tl.maximum", "tl.minimum") and combined(known).is_float:
                args = [forms.plain_float(arg) for arg in args]
        else:
            keywords = [ast.keyword(keyword.arg, self.expression(keyword.value)[0]) for keyword in node.keywords]
        return self._result(function, args, keywords, known)

    def _result(self, function: str, args: list[ast.expr], keywords: list[ast.keyword], known: list[Value]) -> Typed:
        if self.outer and function in (*_REDUCTIONS, *_SCANS):
            args = [_moved(arg, len(self.axes) - 1, self.outer) for arg in args]
        if function in _REDUCTIONS:
            args[0] = self._spread(args[0], known[0])
            if function in ("arg_max", "arg_min"):
                args[1] = self._spread(args[1], known[1])
            dtype = "int1" if function == "any_true" else known[0].dtype
            result = Value((known[0].axes - self.reduced) | self.single, dtype)
        elif function in _SCANS:
            args[0] = self._spread(args[0], known[0])
            result = Value(known[0].axes | self.reduced, known[0].dtype)
        elif function == "tl.dot":
            result = Value(frozenset("xy"), "float32")
        elif function in MATHEMATICS or function.startswith(("tl.", "libdevice.", "arg_", "floor_", "sort_")):
            result = combined(known)
        elif function.startswith("_triton_helper_fn"):
            result = Value(combined(known).axes)
        elif function == "float":
            result = Value(dtype="float32", literal=True)
        else:
            raise NotTidied(f"call of {function}")
        return ast.Call(parsed(function), args, keywords), result

    def _cast(self, value: ast.expr, dtype: ast.expr) -> Typed:
        new, known = self.expression(value)
        if isinstance(dtype, ast.Attribute) and dtype.attr == "dtype":  # "x.to(y.dtype)"
            like, of = self.expression(dtype.value)
            dtype = parsed(f"tl.{of.dtype}") if of.dtype else ast.Attribute(like, "dtype", ast.Load())
        wanted = ast.unparse(dtype).removeprefix("tl.")
        if known.literal:
            return forms.cast_literal(new, wanted), Value(dtype=wanted, literal=True)
        if known.dtype == wanted:
            return new, known
        return ast.Call(ast.Attribute(new, "to", ast.Load()), [dtype], []), Value(known.axes, wanted)

    def _full(self, node: ast.Call) -> Typed:
        shape, *rest = node.args
        filling = rest[0] if len(rest) == 2 else ast.Constant(0)
        if not isinstance(shape, ast.List):  # "tl.full(x.shape, 0.0, x.dtype)"
            like = rest[-1].value if isinstance(rest[-1], ast.Attribute) else None
            known = self.expression(like)[1] if like is not None else Value()
            if known.dtype.startswith(("int", "uint")) and literal(filling) is not None:
                filling = forms.cast_literal(filling, known.dtype)
            return filling, literal(filling) or Value()
        dtype = ast.unparse(node.args[-1]).removeprefix("tl.")
        blocks = [ast.unparse(size) for size in shape.elts[self.outer :]]
        over = frozenset(prefix for prefix, axis in self.axes.items() if axis.block_name in blocks)
        if not over and literal(filling) is not None:
            number = forms.cast_literal(filling, dtype)
            is_single = dtype == "float32" and "*fp64" not in self.types.values()
            return forms.short_float(number) if is_single else number, Value(dtype=dtype, literal=True)
        sizes: list[ast.expr] = [ast.Name(block, ast.Load()) if block != "1" else ast.Constant(1) for block in blocks]
        listed = ast.Tuple(sizes, ast.Load())
        typed = parsed(f"tl.{dtype}")
        if isinstance(filling, ast.Constant) and filling.value == 0:
            return call("tl.zeros", listed, typed), Value(over, dtype)
        return call("tl.full", listed, filling, typed), Value(over, dtype)

    def _dropped_shape(self, node: ast.Call) -> Typed:
        return self.expression(node.args[0])  # Triton broadcasts by itself

    def _where(self, node: ast.Call) -> Typed:
        condition, *branches = node.args
        (a, known_a), (b, known_b) = (self.expression(branch) for branch in branches)
        masks = self._masks(condition)
        if masks is None:
            test, known_test = self.expression(condition)
            if isinstance(test, ast.Constant):
                return (a, known_a) if test.value else (b, known_b)
            a, b = forms.chosen(a, test, 1), forms.chosen(b, test, 2)
            if ast.unparse(a) == ast.unparse(b) or self._is_padded(a, b, [ast.unparse(test)]):
                return a, known_a
            return self._selected(test, a, b, known_test.axes, combined([known_a, known_b]))
        # Only the mask of a reduced axis matters: elements over the end of another axis are never stored.
        needed = [name for name in masks if any(axis.mask == name and axis.is_reduced for axis in self.axes.values())]
        if not needed or self._is_padded(a, b, needed):
            return a, known_a
        over = frozenset(prefix for prefix in self.axes if self.axes[prefix].mask in needed)
        return self._selected(parsed(" & ".join(needed)), a, b, over, combined([known_a, known_b]))

    def _selected(self, test: ast.expr, a: ast.expr, b: ast.expr, over: frozenset[str], known: Value) -> Typed:
        """`tl.where` with a test over these axes; `known` is the type of its branches."""
        if known.is_float:
            a, b = forms.plain_float(a), forms.plain_float(b)
        return call("tl.where", test, a, b), Value(known.axes | over, known.dtype)

    def _is_padded(self, value: ast.expr, other: ast.expr, masks: Sequence[str]) -> bool:
        """True if `value` was loaded under these masks with `other` outside."""
        load = self.loads.get(ast.unparse(value))
        keywords = keywords_of(load) if load is not None else {}
        if "other" not in keywords or literal(other) is None:
            return False
        covered = set(ast.unparse(keywords["mask"]).split(" & ")) >= set(masks)
        return covered and forms.number(keywords["other"]) == forms.number(other)

    # Memory

    def _load(self, node: ast.Call) -> Typed:
        pointer, where, keywords = self.access(node.args[0], node.args[1:2], is_load=True)
        other = keywords_of(node).get("other")
        if other is not None and keywords:
            keywords.append(ast.keyword("other", self.expression(other)[0]))
        base = node.args[0].left if isinstance(node.args[0], ast.BinOp) else node.args[0]
        loaded = Value(where.axes, element(self.types[ast.unparse(base)]))
        return ast.Call(parsed("tl.load"), [pointer], keywords), loaded

    def access(
        self, pointer: ast.expr, masks: Sequence[ast.expr], is_load: bool = False
    ) -> tuple[ast.expr, Value, list[ast.keyword]]:
        """A pointer broadcast to the shape of its mask, its type, and its mask as a keyword."""
        match pointer:
            case ast.BinOp(left=ast.Name() as base, op=ast.Add(), right=offset):
                new, known = self.expression(offset)
            case _:
                raise NotTidied(f"address {ast.unparse(pointer)[:120]}")
        new = self.index(new)
        mask, over = self._conjunction(masks[0], known.axes if is_load else None) if masks else (None, Value())
        if not over.axes <= known.axes:
            known = Value(known.axes | over.axes, known.dtype)
            new = self.broadcast(new, known.axes)
        keywords = [] if mask is None or isinstance(mask, ast.Constant) else [ast.keyword("mask", mask)]
        if isinstance(new, ast.Constant) and new.value == 0:
            return base, known, keywords
        return ast.BinOp(base, ast.Add(), new), known, keywords

    def _is_certain(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
        """True if a comparison is a bounds check of a part of an index, which always holds."""
        match left, op, right:
            case _, ast.GtE(), ast.Constant(value=0):
                return forms.is_natural(left) and isinstance(left, ast.Name)
            case ast.Name(name), ast.Lt(), _:
                return self.limits.get(name) == ast.unparse(right)
        return False

    def is_plain_integer(self, node: ast.expr) -> bool:
        """True if the expression is arithmetic of 32-bit integers."""
        is_int32 = (self.values.get(name, Value()).dtype == "int32" for name in names_in(node))
        return forms.is_index(node) and all(is_int32)

    def index(self, node: ast.expr) -> ast.expr:
        """An index expression as a readable sum of products."""
        return render(polynomial(node), lambda atom: atom.startswith("ks") or atom.endswith("numel"))

    def _masks(self, node: ast.expr) -> list[str] | None:
        """The names of the block masks that `node` joins; None if it joins other conditions too."""
        names = {axis.mask for axis in self.axes.values()}
        parts = forms.conjuncts(node)
        if all(isinstance(part, ast.Name) and part.id in names for part in parts):
            return [part.id for part in parts if isinstance(part, ast.Name) and self._is_needed(part.id)]
        return None

    def _is_needed(self, mask: str) -> bool:
        axis = next(axis for axis in self.axes.values() if axis.mask == mask)
        return axis.masked and not (axis.prefix == "z" and self.is_matmul)

    def _conjunction(self, node: ast.expr, address: frozenset[str] | None = None) -> Typed:
        """Rewrite `a & b & ...` without block masks that are always true, in the order of the axes.

        For a load, `address` has the axes that the address varies over. A mask along another axis protects nothing and
        goes: elements over the end of that axis are never stored. The mask of a reduced axis stays, as it also selects
        the elements that are reduced.
        """
        names = {axis.mask: axis for axis in self.axes.values()}
        parts: list[Typed] = []
        for part in forms.conjuncts(node):
            axis = names.get(ast.unparse(part))
            protects = axis is None or address is None or axis.is_reduced or axis.prefix in address
            if axis is not None and not (protects and self._is_needed(axis.mask)):
                continue
            if isinstance(part, ast.Constant) and part.value in (None, True):
                continue
            new, known = self.expression(part)
            if not (isinstance(new, ast.Constant) and new.value is True):
                parts.append((new, known))
        if not parts:
            return ast.Constant(True), CONDITION
        order = list(names)
        ordered = sorted(parts, key=lambda part: order.index(text) if (text := ast.unparse(part[0])) in names else -1)
        joined = ordered[0][0]
        for part, _ in ordered[1:]:
            joined = ast.BinOp(joined, ast.BitAnd(), part)
        return joined, combined([known for _, known in parts])

    # Shapes

    def _spread(self, node: ast.expr, known: Value) -> ast.expr:
        """Broadcast `node` to the reduced axis, as a reduction requires."""
        if isinstance(node, ast.Tuple) or self.reduced <= known.axes:
            return node
        return self.broadcast(node, known.axes | self.reduced)

    def broadcast(self, node: ast.expr, over: frozenset[str], dtype: str = "int32") -> ast.expr:
        """Broadcast `node` to a block over these axes; `dtype` is that of a plain number."""
        # The dimensions of a block, in order.
        axes = [axis for axis in self.axes.values() if axis.shape or len(self.axes) == 1 or axis.block != 1]
        sizes = [axis.block_name if axis.prefix in over else "1" for axis in axes]
        shape = matmul.shape(over) if self.is_matmul else f"({', '.join(sizes)},)"
        if isinstance(node, ast.Constant):
            return call("tl.full", shape, node, f"tl.{dtype}")
        return call("tl.broadcast_to", node, shape)


def _moved(argument: ast.expr, last: int, by: int) -> ast.expr:
    """The number of the last dimension of a block, which has `by` fewer dimensions; any other argument as it is."""
    is_last = isinstance(argument, ast.Constant) and argument.value == last
    return ast.Constant(last - by) if is_last else argument
