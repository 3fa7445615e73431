"""Find the einops calls in a definition and replace them in its source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from kernelquarry.pipeline.schema.parse_python import parse_expression
from kernelquarry.transforms.mine import tree_sitter_nodes as ts
from kernelquarry.transforms.mine.analyse import analyse
from kernelquarry.transforms.mine.usage import Reference, Usage

from .pattern import DEFINED, FUNCTIONS, Unsupported

_SIMPLE = frozenset(("attribute", "call", "identifier", "parenthesized_expression", "subscript"))


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of `FUNCTIONS`, or a use of one of `DEFINED`."""

    function: str
    node: Node  # the call; for `DEFINED`, the name alone
    operands: tuple[Node, ...]  # all positional arguments
    arguments: dict[str, Node]  # by parameter
    lengths: dict[str, Node]  # by axis

    def literal(self, parameter: str) -> str:
        return literal(self.arguments[parameter])


def literal(node: Node) -> str:
    """Value of a string literal. Raises: Unsupported: the node is not one."""
    try:
        value = ast.literal_eval(f"({ts.text(node)})")
    except (ValueError, SyntaxError):
        value = None
    if not isinstance(value, str):
        raise Unsupported(f"{ts.text(node)} in place of a pattern or reduction")
    return value


class Source:
    """Source of a definition, with its einops calls.

    Args:
        names: global name in the source -> the part of einops that it stands for.

    Raises:
        Unsupported: the source uses einops in another way than by calls of supported functions.
    """

    def __init__(self, code: str, names: Mapping[str, str]) -> None:
        self._bytes = code.encode()
        self._root = ts.parse(self._bytes)
        self._names = names
        calls = [self._call(reference) for reference in self._references()]
        self._calls = sorted(calls, key=lambda call: call.node.start_byte)

    def replaced(self, replace: Callable[[Call], str]) -> str:
        return self._between(0, len(self._bytes), replace)

    def text(self, node: Node, replace: Callable[[Call], str]) -> str:
        """Source of a node with its calls replaced."""
        return self._between(node.start_byte, node.end_byte, replace)

    def operand(self, node: Node, replace: Callable[[Call], str]) -> str:
        """Source of a tensor argument, to which `.method()` can be appended. Lists of tensors are stacked."""
        if node.type in ("generator_expression", "list_splat", "tuple"):
            raise Unsupported("a list of tensors")
        text = self.text(node, replace)
        if _is_list(node):
            return f"torch.stack({text})"
        try:
            parse_expression(text)
        except SyntaxError:  # lines that only the call's parentheses join
            return f"({text})"
        return text if node.type in _SIMPLE else f"({text})"

    def _between(self, start: int, end: int, replace: Callable[[Call], str]) -> str:
        parts: list[str] = []
        for call in self._calls:
            if start <= call.node.start_byte and call.node.end_byte <= end:
                parts += [self._bytes[start : call.node.start_byte].decode(), replace(call)]
                start = call.node.end_byte
        return "".join([*parts, self._bytes[start:end].decode()])

    def _references(self) -> Iterator[Reference]:
        for statement in ts.statements(self._root):
            for usage in _all(analyse(statement).usage):
                if any(b"einops" in (node.text or b"") for node in usage.imports):
                    raise Unsupported("an import inside of a function")
                if any(reference.name in self._names for note in usage.annotations for reference in note.references):
                    raise Unsupported("an annotation")
                yield from (reference for reference in usage.references if reference.name in self._names)

    def _call(self, reference: Reference) -> Call:
        function = ".".join((self._names[reference.name], *reference.attributes))
        node = self._root.descendant_for_byte_range(reference.start, reference.start + reference.ends[-1])
        if node is not None and function in DEFINED:
            return Call(function, node, (), {}, {})
        parent = node.parent if node is not None else None
        if function not in FUNCTIONS or parent is None or ts.child(parent, "function") != node:
            raise Unsupported(f"{function}, not called")
        return _with_arguments(function, parent)


def _is_list(node: Node) -> bool:
    """True if the node is a list, or a name last bound to a list in its function."""
    if node.type in ("list", "list_comprehension"):
        return True
    if node.type == "call":
        return ts.text(ts.field(node, "function")) == "list"
    function = node
    while function.type != "function_definition" and function.parent is not None:
        function = function.parent
    if node.type != "identifier" or function.type != "function_definition":
        return False
    bound = [value for name, value in _assigned(function) if name == node.text and value.end_byte <= node.start_byte]
    return bool(bound) and bound[-1].type != "identifier" and _is_list(bound[-1])


def _assigned(node: Node) -> Iterator[tuple[bytes | None, Node]]:
    """(target, value) of each assignment inside the node."""
    for child in node.named_children:
        value = ts.child(child, "right") if child.type == "assignment" else None
        if value is not None:
            yield ts.field(child, "left").text, value
        if child.type not in ts.EXPRESSIONS:
            yield from _assigned(child)


def _all(usage: Usage) -> Iterator[Usage]:
    yield usage
    for part in usage.parts:
        yield from _all(part.usage)


def _with_arguments(function: str, node: Node) -> Call:
    positional: list[Node] = []
    named: dict[str, Node] = {}
    for argument in ts.statements(ts.field(node, "arguments")):
        if argument.type == "keyword_argument":
            named[ts.text(ts.field(argument, "name"))] = ts.field(argument, "value")
        elif argument.type in ("dictionary_splat", "list_splat"):
            raise Unsupported(f"{function} with {ts.text(argument)}")
        else:
            positional.append(argument)
    parameters = FUNCTIONS[function]
    arguments = dict(zip(parameters, positional, strict=False))
    arguments |= {name: named.pop(name) for name in parameters if name in named}
    if parameters and (len(positional) > len(parameters) or len(arguments) < len(parameters)):
        raise Unsupported(f"{function} with {len(positional)} arguments")
    return Call(function, node, tuple(positional), arguments, named)
