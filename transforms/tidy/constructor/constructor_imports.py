"""Select the imports of a reference's constructor: torch and modules of the standard library that only compute.

A few uses of the standard library and of numpy become plain Python. If the constructor needs numpy nevertheless, numpy
stays with all its uses, as one use may take the result of another.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable

from kernelquarry.pipeline.schema.parse_python import parse_expression

from ..refusals import NeedsImport

_ALIASES = {f"numpy.{name}": f"math.{name}" for name in
            "pi e inf nan sqrt log log2 log10 exp prod ceil floor sin cos tan".split()}  # fmt: skip
_NUMPY_TYPES = ("numpy.ndarray", "numpy.generic", "numpy.number", "numpy.integer", "numpy.floating")
# Modules of the standard library that only compute or inspect code, from those that a mined module may import.
_STANDARD = frozenset(
    "abc bisect cmath collections colorsys contextlib copy dataclasses decimal difflib enum fractions functools "
    "hashlib heapq inspect itertools json keyword math numbers operator re statistics string struct textwrap types "
    "typing unicodedata warnings weakref".split()
)
# Functions of numpy that draw from a seed other than torch's or read files.
_BANNED_OF_NUMPY = ("numpy.random", "numpy.load", "numpy.loadtxt", "numpy.fromfile", "numpy.genfromtxt", "numpy.memmap")


class Imports:
    """The imports of a source, by the name that each binds."""

    def __init__(self, with_numpy: bool = False) -> None:
        self.with_numpy = with_numpy
        self._bound: dict[str, tuple[str, ast.stmt]] = {}  # name -> (full name, its import)

    def add(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.split(".")[0]
                self._bound[name] = (alias.name if alias.asname else name, ast.Import([alias]))
            elif node.module != "__future__":
                name = alias.asname or alias.name
                self._bound[name] = (f"{node.module}.{alias.name}", ast.ImportFrom(node.module, [alias], 0))

    def resolve(self, node: ast.expr) -> str:
        """The full name of an expression that is a path from an import, "math.sqrt"; "" for any other expression."""
        match node:
            case ast.Name(name) if name in self._bound:
                return self._bound[name][0]
            case ast.Attribute(value=value, attr=name) if prefix := self.resolve(value):
                return f"{prefix}.{name}"
        return ""

    def rewrite(self, node: ast.stmt) -> ast.stmt:
        """Rewrite uses of the standard library for which plain Python is enough."""
        return _PlainPython(self).visit(node)

    def needed(self, nodes: Iterable[ast.AST]) -> list[ast.stmt]:
        """The imports of names in these nodes, without `torch` and `torch.nn as nn`, which every file has.

        Raises:
            NeedsImport: a package may not be imported.
        """
        expressions = [child for node in nodes for child in ast.walk(node) if isinstance(child, ast.expr)]
        named = {child.id for child in expressions if isinstance(child, ast.Name)}
        allowed = ("torch", *_STANDARD, *(["numpy"] if self.with_numpy else []))
        found: dict[str, ast.stmt] = {}
        foreign = {name for name in map(self.resolve, expressions) if name in _BANNED_OF_NUMPY}
        for name in sorted(named & self._bound.keys()):
            full_name, statement = self._bound[name]
            if full_name.split(".")[0] not in allowed:
                foreign.add(full_name)
            found[ast.unparse(statement)] = statement
        if foreign:
            raise NeedsImport(", ".join(sorted(foreign)))
        present = ("import torch", "import torch.nn as nn", "from torch import nn")
        return [found[text] for text in sorted(found) if text not in present]


class _PlainPython(ast.NodeTransformer):
    def __init__(self, imports: Imports) -> None:
        self._imports = imports

    def _name(self, node: ast.expr) -> str:
        name = self._imports.resolve(node)
        return name if self._imports.with_numpy else _ALIASES.get(name, name)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.bases = [base for base in node.bases if self._name(base) not in ("abc.ABC", "typing.Protocol")]
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "metaclass"]
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list = [
            decorator
            for decorator in node.decorator_list
            if self._name(decorator) not in ("abc.abstractmethod", "functools.wraps", "typing.no_type_check")
        ]
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match self._name(node):
            case "math.pi" | "math.e" as name:
                return ast.Constant(getattr(math, name.removeprefix("math.")))
            case "math.inf":
                return parse_expression('float("inf")')
            case "math.nan":
                return parse_expression('float("nan")')
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        match self._name(node):
            case "collections.OrderedDict":
                return parse_expression("nn.modules.container.OrderedDict")
            case "math.pi":
                return ast.Constant(math.pi)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = self._name(node.func)
        if ast.unparse(node.func) == "isinstance" and not self._imports.with_numpy:
            node.args = [_WithoutTypes(self._imports).visit(argument) for argument in node.args]
        self.generic_visit(node)
        if name == "functools.partial":
            return _partial(node)
        if name == "inspect.isfunction":
            return parse_expression(f"isinstance({ast.unparse(node.args[0])}, type(lambda: None))")
        if name == "inspect.isclass":
            return parse_expression(f"isinstance({ast.unparse(node.args[0])}, type)")
        if name == "collections.OrderedDict":
            node.func = parse_expression("nn.modules.container.OrderedDict")
        if name.startswith("math.") and not node.keywords:
            if self._imports.resolve(node.func).startswith("numpy."):
                self._imports.add(ast.Import([ast.alias("math")]))
                node.func = parse_expression(name)
            return _number(name.removeprefix("math."), node)
        return node


class _WithoutTypes(ast.NodeTransformer):
    """Drop numpy's types from `isinstance(x, (int, np.integer))`: a file without numpy has no such `x`."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return parse_expression("()") if self._imports.resolve(node) in _NUMPY_TYPES else node

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        self.generic_visit(node)
        node.elts = [part for part in node.elts if not (isinstance(part, ast.Tuple) and not part.elts)]
        return node


def _number(function: str, node: ast.Call) -> ast.expr:
    """Evaluate a call of `math.*` on plain numbers; write any other call in plain Python."""
    known: Callable[..., float] | None = getattr(math, function, None)
    try:
        values = [ast.literal_eval(argument) for argument in node.args]
        if known is not None:
            return parse_expression(repr(known(*values)))
    except (ValueError, TypeError, OverflowError):
        pass
    template = {
        "sqrt": "({}) ** 0.5",
        "floor": "int(({}) // 1)",
        "ceil": "-int(-({}) // 1)",
        "pow": "float({}) ** ({})",
        "log": "torch.tensor({}, dtype=torch.float64).log().item()",
        "log2": "torch.tensor({}, dtype=torch.float64).log2().item()",
        "exp": "torch.tensor({}, dtype=torch.float64).exp().item()",
    }.get(function)
    if template is None or template.count("{}") != len(node.args):
        return node
    return parse_expression(template.format(*(ast.unparse(argument) for argument in node.args)))


def _partial(node: ast.Call) -> ast.expr:
    """`functools.partial(f, a, b=c)` as a lambda."""
    function, *first = map(ast.unparse, node.args)
    if not all(keyword.arg for keyword in node.keywords):
        return node
    bound = ", ".join(f"{keyword.arg!r}: {ast.unparse(keyword.value)}" for keyword in node.keywords)
    parts = [*first, "*args", f"**{{{bound}, **kwargs}}" if bound else "**kwargs"]
    return parse_expression(f"(lambda *args, **kwargs: {function}({', '.join(parts)}))")
