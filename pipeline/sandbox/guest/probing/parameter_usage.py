"""Find out from the syntax tree how a function uses one of its parameters. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .source_hints import Source

_ITERATES = frozenset({"len", "zip", "enumerate", "list", "tuple", "sum", "reversed", "sorted", "max", "min", "map"})
_JOINS = frozenset({"cat", "concat", "stack", "ModuleList"})
_NUMBERS = frozenset({"range", "int", "float", "sqrt", "log", "log2"})
_AXIS_METHODS = frozenset({"size", "transpose", "flatten", "unflatten"})


@dataclass(slots=True)
class Usage:
    """Uses of one parameter in a function, and in the functions that it is passed to."""

    sequence: bool = False  # iterated, counted, joined, or unpacked
    indexed: bool = False  # subscripted by a variable: a sequence or a tensor
    items: int = 0  # number of items that it is unpacked into, or its largest index plus one
    nested: bool = False  # its items are sequences too
    called: bool = False
    applied: bool = False  # kept by the constructor and called by another method
    number: bool = False
    attributes: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)  # strings that subscript it: a dict
    tables: set[str] = field(default_factory=set)  # names of dicts that it is looked up in
    strings: list[str] = field(default_factory=list)  # strings that it is compared with, and keys of such dicts
    bounds: list[int] = field(default_factory=list)  # numbers above 2 that it is compared with
    ranks: list[int] = field(default_factory=list)  # possible ranks of a tensor, in order of appearance
    axes: list[tuple[str, ...]] = field(default_factory=list)  # names that a tensor's shape is unpacked into
    least: int = 0  # lower bound of a tensor's rank
    parts: dict[str, Usage] = field(default_factory=dict)  # uses of its attributes and items

    def absorb(self, other: Usage) -> None:
        """Merge another usage into this one."""
        for name in ("sequence", "indexed", "nested", "called", "applied", "number", "items", "least"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        for name in ("attributes", "tables"):
            getattr(self, name).update(getattr(other, name))
        for name in ("keys", "strings", "bounds", "ranks", "axes"):
            setattr(self, name, list(dict.fromkeys([*getattr(self, name), *getattr(other, name)])))
        for name, part in other.parts.items():
            self.parts.setdefault(name, Usage()).absorb(part)


class UsageVisitor(ast.NodeVisitor):
    """Collects the uses of the expression with one path (`path_of`), in source order, until it is rebound."""

    def __init__(self, source: Source, class_name: str, parameter: str, depth: int, constructs: bool) -> None:
        self.source, self.class_name, self.parameter, self.depth = source, class_name, parameter, depth
        self.constructs = constructs  # follow attributes that the constructor assigns
        self.usage = Usage()
        self.rebound = False
        self.dicts: dict[str, ast.Dict] = {}  # local variables
        self._names = frozenset(parameter.partition("[")[0].split("."))  # in every use of the parameter

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt) or self._names <= self.source.names_in(node):
            super().visit(node)

    def follow(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(name)], value=ast.Dict() as table):
                    self.dicts[name] = table
            if self.rebound:
                return
            self.visit(statement)

    def is_parameter(self, node: ast.AST | None) -> bool:
        return not self.rebound and path_of(node) == self.parameter

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.keep(target, node.value)
            if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in target.elts):
                if self.is_parameter(node.value):
                    self.usage.sequence = True
                    self.usage.items = max(self.usage.items, len(target.elts))
                else:
                    self.add_rank(len(target.elts) - self.items_after_shape(node.value))
                    self.add_axes(target.elts[: len(target.elts) - self.items_after_shape(node.value)])
            if any(self.is_parameter(n) for n in ast.walk(target)):
                # `x = default(x, 3)` and `x = x or 3` do not rebind it
                self.rebound |= not isinstance(target, ast.Name | ast.Attribute) or self.changes(node.value)

    def keep(self, target: ast.expr, value: ast.expr) -> None:
        """Follow `self.x = x`."""
        match target, value:
            case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values):
                for one, other in zip(targets, values, strict=True):
                    self.keep(one, other)
            case ast.Attribute(ast.Name("self"), name), _ if self.constructs and self.depth:
                inside = value.args if isinstance(value, ast.Call) and not self.changes(value) else [value]
                inside = value.values if isinstance(value, ast.BoolOp) else inside
                if any(self.is_parameter(item) for item in inside):
                    self.usage.absorb(self.source.kept(self.class_name, name, self.depth - 1))

    def items_after_shape(self, value: ast.expr) -> int:
        """Number of items in the tuple `(*x.shape, …)` besides the parameter's shape; 99 if it holds no shape."""
        if self.is_shape(value):
            return 0
        items = value.elts if isinstance(value, ast.Tuple) else []
        shapes = sum(isinstance(item, ast.Starred) and self.is_shape(item.value) for item in items)
        return len(items) - 1 if shapes == 1 else 99

    def changes(self, value: ast.expr) -> bool:
        """False if an assignment of this value keeps the parameter, except for a default."""
        match value:
            case ast.Call(ast.Name("default" | "exists")) | ast.BoolOp():
                return False
            case ast.IfExp():
                return not (self.is_parameter(value.body) or self.is_parameter(value.orelse))
        return True

    def is_shape(self, node: ast.expr) -> bool:
        match node:
            case ast.Attribute(value, "shape") | ast.Call(ast.Attribute(value, "size"), []):
                return self.is_parameter(value)
        return False

    def add_rank(self, rank: int) -> None:
        if 1 <= rank <= 6 and rank not in self.usage.ranks:
            self.usage.ranks.append(rank)

    def add_axes(self, targets: Sequence[ast.expr]) -> None:
        """Add the axes of `b, n, _ = x.shape`; `_` becomes a name of its own."""
        names = [target.id if isinstance(target, ast.Name) else "_" for target in targets]
        found = tuple(name.strip("_").lower() or f"_{place}" for place, name in enumerate(names))
        if found and found not in self.usage.axes:
            self.usage.axes.append(found)

    def _visit_loop(self, node: ast.For | ast.comprehension) -> None:
        self.iterate(node.iter, node.target)
        self.generic_visit(node)

    visit_For = visit_comprehension = _visit_loop

    def iterate(self, iterated: ast.expr, target: ast.expr) -> None:
        """Add the uses in `for item in x`, also through enumerate and zip."""
        inside = list(_iterated(iterated))
        if any(self.is_parameter(node) for node in inside):
            self.usage.sequence = True
            names = target.elts if isinstance(target, ast.Tuple) else []
            if self.is_parameter(iterated) and names:
                self.usage.nested = True

    def visit_Starred(self, node: ast.Starred) -> None:
        self.usage.sequence |= self.is_parameter(node.value)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self.is_parameter(node.value):
            match node.slice:
                case ast.Constant(str() as key) if key != "tensor":  # the key in an argument tree's leaves
                    self.usage.keys += [key] if key not in self.usage.keys else []
                case ast.Constant(int() as index):
                    self.usage.items = max(self.usage.items, index + 1)
                case ast.UnaryOp(ast.USub(), ast.Constant(int() as index)):
                    self.usage.items = max(self.usage.items, index)
                case ast.Slice(upper=ast.Constant(int() as index)):
                    self.usage.items = max(self.usage.items, index)
                case ast.Name() | ast.BinOp():
                    self.usage.indexed = True
                case ast.Tuple(elements) if not any(isinstance(e, ast.Constant) and e.value is ... for e in elements):
                    self.add_rank(sum(not (isinstance(e, ast.Constant) and e.value is None) for e in elements))
        elif self.is_parameter(node.slice):
            self.look_up(node.value)
        elif isinstance(node.value, ast.Subscript) and self.is_parameter(node.value.value):
            self.usage.nested = True
        elif self.is_shape(node.value):
            match node.slice:
                case ast.Constant(int() as axis) | ast.Slice(lower=ast.Constant(int() as axis)):
                    self.usage.least = max(self.usage.least, axis + 1)
        self.generic_visit(node)

    def look_up(self, table: ast.expr) -> None:
        """Add the dict that the parameter is a key of: a name of the file, or the dict's literal keys."""
        match self.dicts.get(table.id, table) if isinstance(table, ast.Name) else table:
            case ast.Name(name):
                self.usage.tables.add(name)
            case ast.Dict(keys=keys):
                texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
                self.usage.strings += [text for text in texts[:3] if text not in self.usage.strings]

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self.is_parameter(node.value):
            self.usage.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not isinstance(node.op, ast.Add | ast.Mult):  # lists support these two
            self.usage.number |= self.is_parameter(node.left) or self.is_parameter(node.right)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if self.is_parameter(node.left):
            for operand in node.comparators:
                for item in operand.elts if isinstance(operand, ast.List | ast.Tuple | ast.Set) else [operand]:
                    match item:
                        case ast.Constant(str() as text) if text and text not in self.usage.strings:
                            self.usage.strings.append(text)
                        case ast.Constant(int() as number) if not isinstance(number, bool) and number > 2:
                            self.usage.bounds.append(number)
            self.usage.number |= any(isinstance(op, ast.Lt | ast.Gt | ast.LtE | ast.GtE) for op in node.ops)
        match node:
            case ast.Compare(ast.Call(ast.Name("len"), [value]), [ast.Eq()], [ast.Constant(int() as count)]) if (
                self.is_parameter(value)
            ):
                self.usage.items = max(self.usage.items, count)
            # assert x.dim() == 4, len(x.shape) == 4, x.ndim == 4
            case (
                ast.Compare(ast.Call(ast.Attribute(value, "dim"), []), [ast.Eq()], [ast.Constant(int() as rank)])
                | ast.Compare(ast.Attribute(value, "ndim"), [ast.Eq()], [ast.Constant(int() as rank)])
                | ast.Compare(
                    ast.Call(ast.Name("len"), [ast.Attribute(value, "shape")]),
                    [ast.Eq()],
                    [ast.Constant(int() as rank)],
                )
            ):
                if self.is_parameter(value):
                    self.add_rank(rank)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        if self.is_parameter(node.func):
            self.usage.called = True
        if name == "get" and isinstance(node.func, ast.Attribute) and self.is_parameter(first):
            self.look_up(node.func.value)
        if isinstance(node.func, ast.Name) and name in _ITERATES:
            self.usage.sequence |= any(self.is_parameter(arg) for arg in node.args)
        if name in _JOINS:
            self.usage.sequence |= self.is_parameter(first)
        if name in _NUMBERS:
            self.usage.number |= any(self.is_parameter(arg) for arg in node.args)
        if name == "einsum":
            self.einsum(node)
        if name in _AXIS_METHODS and isinstance(node.func, ast.Attribute) and self.is_parameter(node.func.value):
            axes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
            self.usage.least = max(self.usage.least, *(axis + 1 for axis in axes), 0)
        if isinstance(node.func, ast.Attribute) and name == "permute":
            added = self.added(node.func.value)
            if added is not None:
                self.add_rank((len(node.args) if len(node.args) > 1 else len(getattr(first, "elts", ()))) - added)
        self.pass_on(node)
        self.generic_visit(node)

    def added(self, node: ast.expr) -> int | None:
        """Number of dimensions that methods add to the parameter: 1 for `x.unflatten(1, (2, 3))`; None for others."""
        if self.is_parameter(node):
            return 0
        match node:
            case ast.Call(ast.Attribute(value, "unflatten"), [_, ast.Tuple(sizes)]):
                more = len(sizes) - 1
            case ast.Call(ast.Attribute(value, "unsqueeze")):
                more = 1
            case ast.Call(ast.Attribute(value, "squeeze"), [ast.Tuple(axes)]):
                more = -len(axes)
            case ast.Call(ast.Attribute(value, "squeeze"), [_]):
                more = -1
            case _:
                return None
        before = self.added(value)
        return None if before is None else before + more

    def einsum(self, node: ast.Call) -> None:
        strings = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        tensors = [a for a in node.args if not isinstance(a, ast.Constant)]
        for text in strings[:1]:
            sides = text.split("->")[0].split(",")
            for tensor, side in zip(tensors, sides, strict=False):
                if self.is_parameter(tensor) and "..." not in side:
                    self.add_rank(len("".join(side.split())))

    def pass_on(self, node: ast.Call) -> None:
        """Follow the parameter into a callee of the same file."""
        if self.depth == 0 or not any(self.is_parameter(a) for a in (*node.args, *(k.value for k in node.keywords))):
            return
        callee = self.source.callee(self.class_name, node)
        if callee is None:
            return
        class_name, function, bound = callee
        names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][1 if bound else 0 :]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
        if static:
            names = [arg.arg for arg in function.args.args]
        passed = [n for n, a in zip(names, node.args, strict=False) if self.is_parameter(a)]
        passed += [k.arg for k in node.keywords if k.arg and self.is_parameter(k.value)]
        for parameter in passed:
            self.usage.absorb(self.source.followed(class_name, function, parameter, self.depth - 1))


def path_of(node: ast.AST | None) -> str:
    """The path of `x`, `self.x`, `x.a` or `x['a']`; "" for other expressions."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, name):
            return f"{path_of(value)}.{name}"
        case ast.Subscript(value, ast.Constant(str() as key)):
            return f"{path_of(value)}[{key!r}]"
    return ""


def _iterated(iterated: ast.expr) -> Iterator[ast.expr]:
    """The expressions that are iterated: `x` and `y` for `enumerate(zip(x, y))`, but not `x` for `range(x)`."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id in _ITERATES:
        for argument in iterated.args:
            yield from _iterated(argument)
    else:
        yield iterated
