"""What one definition uses: every name that it looks up in its module's globals, with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from . import syntax
from .syntax import CLASS, COMPREHENSIONS, DECORATED, FUNCTION, IMPORTS, text

_LOG_METHODS = frozenset(
    """
    critical debug error exception info info_once log success trace warn warn_once warning warning_once
    """.split()  # noqa: SIM905
)
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Reference:
    """One occurrence of `name.attribute. ...` whose `name` is not local to the definition."""

    name: str
    attributes: tuple[str, ...]
    start: int
    ends: tuple[int, ...]  # end byte of the name, then of each attribute
    eager: bool  # looked up when the definition is executed, not when it is called


@dataclass(frozen=True, slots=True)
class Annotation:
    """A type annotation, which may be taken away where its names are not at hand."""

    start: int  # of ": T" or "-> T"
    type: Node
    end: int
    required: bool  # `x: T` in a class or without a value: it can be replaced, not removed
    references: tuple[Reference, ...]
    quoted: frozenset[str]  # names inside of strings


@dataclass(frozen=True, slots=True)
class Optional:
    """A decorator or a log statement: dropped where what it uses is not at hand."""

    node: Node
    references: tuple[Reference, ...]


@dataclass(slots=True)
class Usage:
    """All that `analyse` found out about one definition."""

    references: list[Reference] = field(default_factory=list)
    stores: list[Node] = field(default_factory=list)  # identifiers that bind module-level names
    locals: set[str] = field(default_factory=set)  # every name bound in any inner scope
    annotations: list[Annotation] = field(default_factory=list)
    optional: list[Optional] = field(default_factory=list)
    imports: list[Node] = field(default_factory=list)  # import statements inside the definition


@dataclass(slots=True)
class _Scope:
    kind: str  # "function", "class" or "comprehension"
    bound: set[str]
    globals: set[str] = field(default_factory=set)


def analyse(definition: Node) -> Usage:
    """Names used by one module-level statement.

    Raises:
        RecursionError: the statement is nested too deeply.
    """
    analyser = _Analyser()
    analyser.visit(definition)
    return analyser.usage


class _Analyser:
    def __init__(self) -> None:
        self.usage = Usage()
        self._scopes: list[_Scope] = []
        self._sink = self.usage.references
        self._deferred = 0  # depth of function bodies

    def visit(self, node: Node) -> None:
        handler = _HANDLERS.get(node.type)
        if handler is not None:
            handler(self, node)
        else:
            for child in node.named_children:
                self.visit(child)

    def _is_local(self, name: str) -> bool:
        innermost = True  # class scopes are seen from their own statements only
        for scope in reversed(self._scopes):
            if name in scope.globals:
                return False
            if name in scope.bound and (scope.kind != "class" or innermost):
                return True
            innermost = innermost and scope.kind == "comprehension"
        return False

    def _refer(self, parts: list[Node]) -> None:
        name = text(parts[0])
        if not self._is_local(name):
            self._sink.append(
                Reference(
                    name,
                    tuple(text(part) for part in parts[1:]),
                    parts[0].start_byte,
                    tuple(part.end_byte for part in parts),
                    eager=self._deferred == 0,
                )
            )

    def _store(self, identifier: Node) -> None:
        name = text(identifier)
        scope = next((scope for scope in reversed(self._scopes) if scope.kind != "comprehension"), None)
        if scope is None or name in scope.globals:
            self.usage.stores.append(identifier)
        else:
            scope.bound.add(name)  # already there in a function; class bodies bind as they run
            self.usage.locals.add(name)

    def _target(self, node: Node) -> None:
        if node.type == "identifier":
            self._store(node)
        elif node.type in ("attribute", "subscript"):
            self.visit(node)
        else:
            for child in node.named_children:
                self._target(child)

    def _collect(self, nodes: list[Node]) -> tuple[Reference, ...]:
        """The references of a part that may be dropped, kept apart from the others."""
        outer, self._sink = self._sink, []
        for node in nodes:
            self.visit(node)
        found, self._sink = self._sink, outer
        return tuple(found)

    # expressions

    def identifier(self, node: Node) -> None:
        self._refer([node])

    def attribute(self, node: Node) -> None:
        parts: list[Node] = []
        while node.type == "attribute":
            parts.append(syntax.field(node, "attribute"))
            node = syntax.field(node, "object")
        if node.type == "identifier":
            self._refer([node, *reversed(parts)])
        else:
            self.visit(node)

    def keyword_argument(self, node: Node) -> None:
        self.visit(syntax.field(node, "value"))

    def named_expression(self, node: Node) -> None:
        self.visit(syntax.field(node, "value"))
        self._store(syntax.field(node, "name"))

    def comprehension(self, node: Node) -> None:
        clauses = [child for child in node.named_children if child.type == "for_in_clause"]
        self.visit(syntax.field(clauses[0], "right"))  # the first iterable belongs to the outer scope
        bound = {text(name) for clause in clauses for name in syntax.targets(syntax.field(clause, "left"))}
        self.usage.locals |= bound
        self._scopes.append(_Scope("comprehension", bound))
        for child in node.named_children:
            if child.type == "for_in_clause":
                self._target_references(syntax.field(child, "left"))
                if child != clauses[0]:
                    self.visit(syntax.field(child, "right"))
            else:
                self.visit(child)
        self._scopes.pop()

    def _target_references(self, node: Node) -> None:
        if node.type in ("attribute", "subscript"):
            self.visit(node)
        elif node.type != "identifier":
            for child in node.named_children:
                self._target_references(child)

    # functions and classes

    def function(self, node: Node) -> None:
        if node.type == FUNCTION:
            self._store(syntax.field(node, "name"))
        parameters = node.child_by_field_name("parameters")
        bound = self._parameters(parameters) if parameters is not None else set()
        returns = node.child_by_field_name("return_type")
        if returns is not None:
            arrow = next(child for child in node.children if child.type == "->")
            before = parameters.end_byte if parameters is not None else arrow.start_byte
            self._annotate(before, returns, required=False)
        body = syntax.field(node, "body")
        scope = _Scope("function", bound)
        if node.type == FUNCTION:
            declared = _declarations(body)
            scope.globals = declared["global_statement"]
            names = {text(name) for name in syntax.bindings(body.named_children)}
            scope.bound |= names - scope.globals - declared["nonlocal_statement"]
        scope.bound |= _type_parameters(node)
        self.usage.locals |= scope.bound
        self._scopes.append(scope)
        self._deferred += 1
        self.visit(body)
        self._deferred -= 1
        self._scopes.pop()

    def _parameters(self, node: Node) -> set[str]:
        """Names of the parameters; defaults are visited, annotations noted."""
        bound: set[str] = set()
        for parameter in node.named_children:
            kind = parameter.type
            if kind in ("default_parameter", "typed_default_parameter"):
                name = syntax.field(parameter, "name")
                self.visit(syntax.field(parameter, "value"))
            elif kind == "typed_parameter":
                name = parameter.named_children[0]
            else:
                name = parameter
            bound |= {text(identifier) for identifier in syntax.targets(name)}
            annotation = parameter.child_by_field_name("type")
            if annotation is not None:
                self._annotate(name.end_byte, annotation, required=False)
        return bound

    def _annotate(self, start: int, node: Node, required: bool) -> None:
        references = self._collect(node.named_children)
        quoted = frozenset() if b"Literal[" in (node.text or b"") else frozenset(_quoted_names(node))
        self.usage.annotations.append(Annotation(start, node, node.end_byte, required, references, quoted))

    def class_(self, node: Node) -> None:
        self._store(syntax.field(node, "name"))
        superclasses = node.child_by_field_name("superclasses")
        if superclasses is not None:
            self.visit(superclasses)
        self._scopes.append(_Scope("class", _type_parameters(node)))
        self.visit(syntax.field(node, "body"))
        self._scopes.pop()

    def decorated(self, node: Node) -> None:
        for decorator in node.children:
            if decorator.type == "decorator":
                references = self._collect(decorator.named_children)
                if references:
                    self.usage.optional.append(Optional(decorator, references))
        self.visit(syntax.undecorated(node))

    # statements

    def assignment(self, node: Node) -> None:
        left, right, annotation = (node.child_by_field_name(name) for name in ("left", "right", "type"))
        assert left is not None
        if right is not None:
            self.visit(right)
        if annotation is not None:
            in_function = bool(self._scopes) and self._scopes[-1].kind == "function"
            self._annotate(left.end_byte, annotation, required=right is None or not in_function)
        self._target(left)

    def augmented_assignment(self, node: Node) -> None:
        self.visit(syntax.field(node, "right"))
        self.visit(syntax.field(node, "left"))
        self._target(syntax.field(node, "left"))

    def for_statement(self, node: Node) -> None:
        for child in node.named_children:
            if child == syntax.field(node, "left"):
                self._target(child)
            else:
                self.visit(child)

    def as_pattern(self, node: Node) -> None:
        self.visit(node.named_children[0])
        self._target(node.named_children[-1])

    def case_clause(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "case_pattern":
                for identifier in syntax.captures(child):
                    self._store(identifier)
                for inner in syntax.walk(child):
                    if inner.type == "dotted_name" and (inner.named_child_count > 1 or _is_class_of(inner)):
                        self._refer(inner.named_children)
            else:
                self.visit(child)

    def expression_statement(self, node: Node) -> None:
        """A call of a logger or of `print` for its own sake is optional."""
        call = node.named_children[0]
        function = call.child_by_field_name("function") if call.type == "call" else None
        name = syntax.dotted(function) if function is not None else None
        if name is None or not (name == ("print",) or (len(name) > 1 and name[-1] in _LOG_METHODS)):
            for child in node.named_children:
                self.visit(child)
            return
        references = self._collect([call])
        self.usage.optional.append(Optional(node, references))

    def import_(self, node: Node) -> None:
        self.usage.imports.append(node)
        for identifier in syntax.imported_identifiers(node):
            self._store(identifier)

    def global_(self, node: Node) -> None:
        self.usage.stores.extend(child for child in node.named_children if child.type == "identifier")

    def type_alias(self, node: Node) -> None:
        self._deferred += 1
        self.visit(syntax.field(node, "right"))
        self._deferred -= 1

    def nothing(self, node: Node) -> None:
        """Holds identifiers that are no references."""


def _quoted_names(node: Node) -> Iterator[str]:
    for inner in syntax.walk(node):
        if inner.type == "string_content":
            yield from _NAME.findall(text(inner))


def _declarations(body: Node) -> dict[str, set[str]]:
    """Names of the `global` and `nonlocal` statements of a function, nested functions apart."""
    found: dict[str, set[str]] = {"global_statement": set(), "nonlocal_statement": set()}
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type in found:
            found[node.type] |= {text(child) for child in node.named_children}
        elif node.type not in (FUNCTION, CLASS, "lambda"):
            stack.extend(node.named_children)
    return found


def _type_parameters(node: Node) -> set[str]:
    parameters = node.child_by_field_name("type_parameters")
    if parameters is None:
        return set()
    return {text(inner) for inner in syntax.walk(parameters) if inner.type == "identifier"}


def _is_class_of(name: Node) -> bool:
    return name.parent is not None and name.parent.type == "class_pattern" and name.parent.named_children[0] == name


_HANDLERS: dict[str, Callable[[_Analyser, Node], None]] = {
    "identifier": _Analyser.identifier,
    "attribute": _Analyser.attribute,
    "keyword_argument": _Analyser.keyword_argument,
    "named_expression": _Analyser.named_expression,
    **{kind: _Analyser.comprehension for kind in COMPREHENSIONS},
    FUNCTION: _Analyser.function,
    "lambda": _Analyser.function,
    CLASS: _Analyser.class_,
    DECORATED: _Analyser.decorated,
    "assignment": _Analyser.assignment,
    "augmented_assignment": _Analyser.augmented_assignment,
    "for_statement": _Analyser.for_statement,
    "as_pattern": _Analyser.as_pattern,
    "case_clause": _Analyser.case_clause,
    "expression_statement": _Analyser.expression_statement,
    **{kind: _Analyser.import_ for kind in IMPORTS},
    "future_import_statement": _Analyser.nothing,
    "global_statement": _Analyser.global_,
    "nonlocal_statement": _Analyser.nothing,
    "type_alias_statement": _Analyser.type_alias,
}
