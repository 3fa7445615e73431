"""What the text of a module says about its parameters, read from the syntax tree; nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_DEPTH = 8  # calls through which a parameter is followed
_ITERATES = frozenset({"len", "zip", "enumerate", "list", "tuple", "sum", "reversed", "sorted", "max", "min", "map"})
_JOINS = frozenset({"cat", "concat", "stack", "ModuleList"})
_NUMBERS = frozenset({"range", "int", "float", "sqrt", "log", "log2"})
_AXIS = re.compile(r"\([^)]*\)|[A-Za-z_]\w*|\d+")


@dataclass(slots=True)
class Usage:
    """How a function, and the functions that it passes the parameter on to, use one parameter."""

    sequence: bool = False  # iterated, counted, joined, or unpacked
    indexed: bool = False  # by a variable: a sequence, or a tensor with an index
    items: int = 0  # how many items it is unpacked into, or the largest index and one
    nested: bool = False  # its items are sequences too
    called: bool = False
    number: bool = False
    attributes: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)  # strings that it is subscripted by: a dict
    tables: set[str] = field(default_factory=set)  # names that are subscripted by it
    strings: list[str] = field(default_factory=list)  # string literals that it is compared with
    bounds: list[int] = field(default_factory=list)  # numbers over 2 that it is compared with
    ranks: list[int] = field(default_factory=list)  # of a tensor, in order of appearance

    def absorb(self, other: Usage) -> None:
        self.sequence |= other.sequence
        self.indexed |= other.indexed
        self.items = max(self.items, other.items)
        self.nested |= other.nested
        self.called |= other.called
        self.number |= other.number
        self.attributes |= other.attributes
        self.keys += [k for k in other.keys if k not in self.keys]
        self.tables |= other.tables
        self.strings += [s for s in other.strings if s not in self.strings]
        self.bounds += [n for n in other.bounds if n not in self.bounds]
        self.ranks += [r for r in other.ranks if r not in self.ranks]


class Source:
    """The functions and classes of one file, by name."""

    def __init__(self, code: str) -> None:
        tree = ast.parse(code)
        self.classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self.functions = {node.name: node for node in tree.body if isinstance(node, Function)}
        self._usages: dict[tuple[int, str], Usage] = {}
        self.examples = _examples(tree)

    def method(self, class_name: str, name: str) -> Function | None:
        """The method as the class or its first base in this file defines it."""
        seen: set[str] = set()
        queue = [class_name]
        while queue:
            current = queue.pop(0)
            if current in seen or current not in self.classes:
                continue
            seen.add(current)
            node = self.classes[current]
            for item in node.body:
                if isinstance(item, Function) and item.name == name:
                    return item
            queue += [base.id for base in node.bases if isinstance(base, ast.Name)]
        return None

    def defaults(self, function: Function) -> dict[str, str]:
        """Parameter name -> source text of its default."""
        positional = [*function.args.posonlyargs, *function.args.args]
        tail = positional[len(positional) - len(function.args.defaults) :]
        texts = {arg.arg: ast.unparse(value) for arg, value in zip(tail, function.args.defaults, strict=True)}
        for arg, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            if value is not None:
                texts[arg.arg] = ast.unparse(value)
        return texts

    def documented(self, class_name: str, parameter: str) -> str:
        """The type that the class's docstring, in numpy's or Google's style, gives a parameter; "" if none."""
        node = self.classes.get(class_name)
        functions = [f for f in (node, self.method(class_name, "__init__")) if f is not None]
        for text in (ast.get_docstring(f) or "" for f in functions):
            if match := re.search(rf"^\s*{parameter} ?(?::|\() ?([\w\[\], ()|.]+)", text, re.MULTILINE):
                return match[1].partition(", default")[0].replace(" or ", "|").replace("(", "[").replace(")", "]")
        return ""

    def usage(self, class_name: str, method: str, parameter: str) -> Usage:
        function = self.method(class_name, method)
        if function is None:
            return Usage()
        return self._usage(class_name, function, parameter, _DEPTH)

    def _usage(self, class_name: str, function: Function, parameter: str, depth: int) -> Usage:
        key = (id(function), parameter)
        if key not in self._usages:
            self._usages[key] = Usage()  # a recursive call adds nothing
            finder = _Finder(self, class_name, parameter, depth)
            finder.follow(function.body)
            self._usages[key] = finder.usage
        return self._usages[key]

    def callee(self, class_name: str, call: ast.Call) -> tuple[str, Function, bool] | None:
        """The class, function and whether `self` comes first, if this file defines what is called."""
        match call.func:
            case ast.Name(name) if name in self.functions:
                return class_name, self.functions[name], False
            case ast.Name(name) if name in self.classes:
                constructor = self.method(name, "__init__")
                return (name, constructor, True) if constructor else None
            case ast.Attribute(ast.Name("self"), name):
                method = self.method(class_name, name)
                return (class_name, method, True) if method else None
            case ast.Attribute(ast.Call(ast.Name("super")), name):
                for base in self.classes[class_name].bases if class_name in self.classes else ():
                    if isinstance(base, ast.Name) and (method := self.method(base.id, name)):
                        return base.id, method, True
        return None


class _Finder(ast.NodeVisitor):
    """Collects the uses of one name in source order, until it is bound to something else."""

    def __init__(self, source: Source, class_name: str, parameter: str, depth: int) -> None:
        self.source, self.class_name, self.parameter, self.depth = source, class_name, parameter, depth
        self.usage = Usage()
        self.rebound = False

    def follow(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.rebound:
                return
            self.visit(statement)

    def is_parameter(self, node: ast.AST | None) -> bool:
        return isinstance(node, ast.Name) and node.id == self.parameter and not self.rebound

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in target.elts):
                if self.is_parameter(node.value):
                    self.usage.sequence = True
                    self.usage.items = max(self.usage.items, len(target.elts))
                elif self.is_shape(node.value):
                    self.add_rank(len(target.elts))
            if any(isinstance(n, ast.Name) and n.id == self.parameter for n in ast.walk(target)):
                # `x = default(x, 3)` and `x = x or 3` leave it what it is
                self.rebound |= not isinstance(target, ast.Name) or self.changes(node.value)

    def changes(self, value: ast.expr) -> bool:
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
        if 1 <= rank <= 5 and rank not in self.usage.ranks:
            self.usage.ranks.append(rank)

    def visit_For(self, node: ast.For) -> None:
        self.iterate(node.iter, node.target)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.iterate(node.iter, node.target)
        self.generic_visit(node)

    def iterate(self, iterated: ast.expr, target: ast.expr) -> None:
        """`for item in x`, also through enumerate and zip."""
        inside = list(_through(iterated))
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
                case ast.Constant(str() as key) if key != "tensor":  # a tree's leaves have that one
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
        elif self.is_parameter(node.slice) and isinstance(node.value, ast.Name):
            self.usage.tables.add(node.value.id)
        elif isinstance(node.value, ast.Subscript) and self.is_parameter(node.value.value):
            self.usage.nested = True
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self.is_parameter(node.value):
            self.usage.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not isinstance(node.op, ast.Add | ast.Mult):  # lists know these two
            self.usage.number |= self.is_parameter(node.left) or self.is_parameter(node.right)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if self.is_parameter(node.left):
            for operand in node.comparators:
                for item in operand.elts if isinstance(operand, ast.List | ast.Tuple | ast.Set) else [operand]:
                    match item:
                        case ast.Constant(str() as text) if text not in self.usage.strings:
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
        if isinstance(node.func, ast.Name) and name in _ITERATES:
            self.usage.sequence |= any(self.is_parameter(arg) for arg in node.args)
        if name in _JOINS:
            self.usage.sequence |= self.is_parameter(first)
        if name in _NUMBERS:
            self.usage.number |= any(self.is_parameter(arg) for arg in node.args)
        if name == "einsum":
            self.einsum(node)
        if isinstance(node.func, ast.Attribute) and name == "permute":
            added = self.added(node.func.value)
            if added is not None:
                self.add_rank((len(node.args) if len(node.args) > 1 else len(getattr(first, "elts", ()))) - added)
        self.pass_on(node)
        self.generic_visit(node)

    def added(self, node: ast.expr) -> int | None:
        """How many dimensions methods give the parameter, 1 of `x.unflatten(1, (2, 3))`; None of another expression."""
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
        """Follows the parameter into a callee of the same file."""
        if self.depth == 0 or not any(self.is_parameter(a) for a in (*node.args, *(k.value for k in node.keywords))):
            return
        found = self.source.callee(self.class_name, node)
        if found is None:
            return
        class_name, function, bound = found
        names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][1 if bound else 0 :]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
        if static:
            names = [arg.arg for arg in function.args.args]
        passed = [n for n, a in zip(names, node.args, strict=False) if self.is_parameter(a)]
        passed += [k.arg for k in node.keywords if k.arg and self.is_parameter(k.value)]
        for parameter in passed:
            self.usage.absorb(self.source._usage(class_name, function, parameter, self.depth - 1))


def _examples(tree: ast.Module) -> dict[str, list[str]]:
    """Parameter name -> defaults that functions of the file give a parameter of this name."""
    found: dict[str, list[str]] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        tail = positional[len(positional) - len(arguments.defaults) :]
        pairs = [
            *zip(tail, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, value in pairs:
            texts = found.setdefault(argument.arg, [])
            if value is not None and (text := ast.unparse(value)) not in texts:
                texts.append(text)
    return found


def pattern_rank(side: str) -> int:
    """Number of axes of one side of a pattern: `"b (h p) w"` -> 3."""
    return len(_AXIS.findall(side))


def _through(iterated: ast.expr) -> Iterator[ast.expr]:
    """What is iterated: `x` of `enumerate(zip(x, y))`, but not of `range(x)`."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id in _ITERATES:
        for argument in iterated.args:
            yield from _through(argument)
    else:
        yield iterated
