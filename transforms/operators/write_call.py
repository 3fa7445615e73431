"""Write one call of PyTorch as a call of functions of `library`, with the operands as the module writes them."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.schema import parse_python
from kernelquarry.transforms.slice.traced_graph import Node

from .calls import RENAMED, TABLE, Given, NotWritten, is_view, parameters_of

OWN = "_own_"  # prefix of functions of the library, until the file's names have given way to theirs
SETS = "__setitem__"
_MOST_AXES = 6  # of a tensor whose elements are set
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Tuple)
_OF_OPERATORS = ("infix", "prefix", "index", "attribute")


class _Int(int):
    """A number that is written as the module's expression for it."""

    source: str

    def __repr__(self) -> str:
        return self.source

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return self.source


class _Float(float):
    """The same for a number with a fraction."""

    source: str

    __repr__ = __str__ = _Int.__repr__
    __format__ = _Int.__format__


def write_call(graph: Sequence[Node], place: int, expression: ast.AST, functions: dict[str, None]) -> ast.expr:
    """The call of a node, whose expression in the module has these operands; adds to the functions that it calls.

    Raises:
        NotWritten: the library lacks the call.
    """
    return Writer(graph, functions).write(graph[place], expression)


def write_set(
    graph: Sequence[Node], node: Node, target: ast.Subscript, value: ast.expr, functions: dict[str, None]
) -> ast.expr:
    """The call of a function that sets the elements of a tensor.

    Raises:
        NotWritten: the tensor is the module's state, or an index is a tensor and no mask.
    """
    arguments: Sequence[Any] = node.args
    changed, index, set_to = arguments
    if not isinstance(set_to, dict) or "node" not in changed or "unknown" in set_to:
        raise NotWritten("elements that differ between calls")
    if graph[changed["node"]].kind in ("parameter", "buffer") or len(node.shapes[0]) > _MOST_AXES:
        raise NotWritten("state that is set")
    is_tensor = "node" in set_to
    if is_tensor and node.dtype == "bool" != graph[set_to["node"]].dtype:
        raise NotWritten("numbers that become booleans")
    writer = Writer(graph, functions)
    if is_view(replace(node, name="getitem")):
        return parsed(writer.call("assign" if is_tensor else "fill", f"{text_of(target)}, {text_of(value)}"))
    mask = graph[index["node"]] if "node" in index else None
    if mask is None or mask.dtype != "bool" or is_tensor:
        raise NotWritten("elements that are set by an index of tensors")
    rank = len(node.shapes[0]) - len(mask.shapes[0])
    wide = text_of(target.slice) + ".unsqueeze(-1)" * rank
    return parsed(writer.call("fill_where", f"{text_of(target.value)}, {wide}, {text_of(value)}"))


class Writer:
    """The tools of handlers: texts of operands, and what is known of these."""

    def __init__(self, graph: Sequence[Node], functions: dict[str, None]) -> None:
        self.graph, self.functions = list(graph), functions
        self._texts: dict[int, str] = {}
        self._given = Given({})
        self._sources: Mapping[str, ast.expr] = {}
        self.device = ""

    def write(self, node: Node, expression: ast.AST) -> ast.expr:
        key = f"{node.kind}:{node.operator}" if node.kind in _OF_OPERATORS else node.operator
        handler = TABLE.get(key)
        if handler is None:
            raise NotWritten(f"{node.kind} {node.name}")
        self._sources = sources = operands(expression, node)
        self._given = Given(self._arguments(node, sources))
        self.device = self.source("device")
        if not self.device and node.held:
            self.device = f"{node.held[0]}.device"
        text = handler(self, node)
        if node.kind in ("function", "method") and (unread := self._given.unread):
            raise NotWritten(f"{min(unread)} of {node.operator}")
        return parsed(text)

    def _arguments(self, node: Node, sources: Mapping[str, ast.expr]) -> dict[str, Any]:
        """Arguments by the names of parameters, each as the module writes it."""
        names = parameters_of(node)
        if len(node.args) > len(names) and names[-1][0] != "*":
            raise NotWritten(f"arguments of {node.operator}")
        found: dict[str, Any] = {}
        for index, arg in enumerate(node.args):
            if names[min(index, len(names) - 1)][0] == "*":
                rest = node.args[index:]
                single = len(rest) == 1 and isinstance(rest[0], dict) and ("tuple" in rest[0] or "list" in rest[0])
                found[names[-1][1:]] = rest[0] if single else {"tuple": rest}
                if not single and len(rest) == 1 and (source := sources.get(names[-1][1:])) is not None:
                    sources = {**sources, names[-1][1:]: ast.Tuple([source], ast.Load())}
                break
            found[names[index]] = arg
        for key, value in node.kwargs.items():
            found[key if key in names else RENAMED.get(key, key)] = value
        given = {key: value for key, value in found.items() if value != {"value": None}}
        return {key: self._sourced(value, sources.get(key)) for key, value in given.items()}

    def _sourced(self, tree: Any, source: ast.expr | None) -> Any:
        """An argument whose tensors and numbers are written as the module does."""
        if isinstance(source, ast.Starred):
            raise NotWritten("arguments that are spread")
        match tree:
            case {"node": place}:
                if source is None:
                    raise NotWritten("a tensor that the module does not name")
                self._texts[len(self.graph)] = text_of(source)
                self.graph.append(self.graph[place])
                return {"node": len(self.graph) - 1}
            case _ if source is None:
                return tree
            case {"tuple": list(items)} | {"list": list(items)}:
                if isinstance(source, ast.Tuple | ast.List) and len(source.elts) == len(items):
                    found = [self._sourced(item, each) for item, each in zip(items, source.elts, strict=True)]
                    return {"list": found}
                if len(items) == 1 and _is_literal(source):  # `x.flip(1)`
                    return {"list": items}
                text = text_of(source)
                return {"list": [self._sourced(t, parsed(f"{text}[{i}]")) for i, t in enumerate(items)], "text": text}
            case {"value": int() | float() as value} if not isinstance(value, bool) and not _is_literal(source):
                return {"value": _number(value, text_of(source))}
            case {"sizes": [first, *_]} | {"numbers": [first, *_]}:
                return {"value": _number(first, text_of(source))}
        return tree

    # What handlers use

    def call(self, function: str, arguments: str) -> str:
        self.functions.setdefault(function)
        return f"{OWN}{function}({arguments})"

    def given(self, _: Node) -> Given:
        return self._given

    def source(self, name: str) -> str:
        """The module's expression for an argument; "" if there is none."""
        return ast.unparse(self._sources[name]) if name in self._sources else ""

    def node(self, tree: Any) -> Node:
        if self.is_tensor(tree):
            return self.graph[tree["node"]]
        raise NotWritten("a number in place of a tensor")

    def is_tensor(self, tree: Any) -> bool:
        return isinstance(tree, dict) and "node" in tree

    def tensor(self, tree: Any, dtype: str = "float32") -> str:
        """The text of a tensor of a dtype ("": any)."""
        if dtype and self.node(tree).dtype != dtype:
            raise NotWritten(f"a tensor of {self.node(tree).dtype}")
        return self._texts[tree["node"]]

    def rank(self, tree: Any) -> int:
        return len(self.node(tree).shapes[0])

    def constant(self, tree: Any, default: Any = None) -> Any:
        """The value of a constant, which is written as the module does. Raises: NotWritten: it is none."""
        match tree:
            case None:
                return default
            case {"value": value}:
                return value
            case {"tuple": list(items)} | {"list": list(items)}:
                return tuple(map(self.constant, items))
            case {"code": str(code)} if code.startswith("float("):
                return float(code[7:-2])
        raise NotWritten(f"an argument {str(tree)[:40]}")

    def number(self, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotWritten(f"a number {value!r}")
        return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)


def operands(expression: ast.AST, node: Node) -> dict[str, ast.expr]:
    """The operands of an expression by the names of parameters. Raises: NotWritten: it spreads them."""
    match expression:
        case ast.BinOp(left=left, right=right):
            return {"other": left, "x": right} if _is_turned(left, right, node) else {"x": left, "other": right}
        case ast.Compare(left=left, comparators=[right]):
            return {"x": left, "other": right}
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            return {"x": ast.Name(name, ast.Load()), "other": value}
        case ast.AugAssign(target=ast.Subscript() as target, value=value):
            return {"x": target, "other": value}
        case ast.UnaryOp(operand=operand):
            return {"x": operand}
        case ast.Subscript(value=value, slice=index):
            return {"x": value, "other": index}
        case ast.Attribute(value=value):
            return {"x": value}
        case ast.Call(func=ast.Name(id="sum" | "max" | "min" | "reduce")):
            raise NotWritten("a call that loops")
        case ast.Call(func=function, args=args, keywords=keywords):
            given = list(args)
            if isinstance(function, ast.Attribute) and len(given) + len(keywords) < _count(node):
                given.insert(0, function.value)
            if any(isinstance(arg, ast.Starred) for arg in given) or any(k.arg is None for k in keywords):
                raise NotWritten("arguments that are spread")
            return _by_name(given, keywords, parameters_of(node))
    raise NotWritten(f"a call in a {type(expression).__name__}")


def _is_turned(left: ast.expr, right: ast.expr, node: Node) -> bool:
    """True if the first operand of the call stands on the right: PyTorch calls `2 * x` as it calls `x * 2`."""
    is_first, is_second = (isinstance(arg, dict) and "node" in arg for arg in node.args)
    if not is_first or is_second or node.name not in ("+", "*"):
        return False
    scores = [_likeness(one, node) for one in (left, right)]
    if scores[0] == scores[1]:
        raise NotWritten("an operator whose tensor is on an unknown side")
    return scores[1] > scores[0]


def _likeness(source: ast.expr, node: Node) -> int:
    """How likely an operand is the tensor of an operator that has a number too."""
    match source:
        case ast.Name(id=name):
            return 3 if name in node.held else -2
        case _ if _is_literal(source):
            return -3
        case ast.Attribute(attr=name):
            return 3 if name in node.held else -1
    names = [each.id for each in ast.walk(source) if isinstance(each, ast.Name)]
    if any(name in node.held or name.startswith(OWN) for name in names):
        return 2
    return 1 if isinstance(source, ast.Call | ast.Subscript) else 0


def _count(node: Node) -> int:
    """The least number of arguments of a function that makes this node; a method has one less."""
    return 10**6 if node.kind == "method" else len(node.args) if node.kind in (*_OF_OPERATORS, "unknown") else 0


def _by_name(given: Sequence[ast.expr], keywords: Sequence[ast.keyword], names: Sequence[str]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for index, arg in enumerate(given):
        if names[min(index, len(names) - 1)][0] == "*":
            rest = list(given[index:])
            found[names[-1][1:]] = rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())
            break
        if index < len(names):
            found[names[index]] = arg
    for keyword in keywords:
        name = keyword.arg or ""
        found[name if name in names else RENAMED.get(name, name)] = keyword.value
    return found


def _number(value: float, source: str) -> _Int | _Float:
    number = _Int(value) if isinstance(value, int) else _Float(value)
    number.source = source
    return number


def _is_literal(source: ast.expr) -> bool:
    try:
        ast.literal_eval(source)
    except ValueError:
        return False
    return True


def text_of(source: ast.expr) -> str:
    """The source of an operand, in parentheses where it needs them."""
    text = ast.unparse(source)
    return text if isinstance(source, _ATOMS) else f"({text})"


def parsed(text: str) -> ast.expr:
    (statement,) = parse_python.parse(text).body
    assert isinstance(statement, ast.Expr)
    return statement.value
