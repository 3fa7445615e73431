"""Find the names that a definition uses and binds: one walk over its syntax tree, by Python's scope rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from . import facts
from . import tree_sitter_nodes as ts
from .tree_sitter_nodes import CLASS, COMPREHENSIONS, DECORATED, FUNCTION, IMPORTS, text
from .usage import Annotation, DefinitionUsage, Kind, Part, Reference, Usage

_LOG_METHODS = frozenset(
    """
    critical debug error exception info info_once log success trace warn warn_once warning warning_once
    """.split()
)
_LOG_FUNCTIONS = re.compile(r"print\w*|\w*warn\w*|\w*deprecate\w*")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_WRAPPERS = frozenset({"compile", "script"})  # functions whose result may be replaced by their one argument
_FLAGS = frozenset({"identifier", "not_operator", "boolean_operator", "parenthesized_expression", "true", "false"})


@dataclass(eq=False, slots=True)
class _Scope:
    kind: str  # "function", "class" or "comprehension"
    outer: _Scope | None
    bound: set[str]
    globals: set[str] = field(default_factory=set)
    _local: set[str] | None = None

    @property
    def local(self) -> set[str]:
        """Names that are not global in this scope; read it after the walk. Names bound by a class are left out."""
        if self._local is None:
            enclosing = self.outer.local if self.outer is not None else set[str]()
            self._local = enclosing if self.kind == "class" else (enclosing | self.bound) - self.globals
        return self._local


def analyse(definition: Node) -> DefinitionUsage:
    """List the names that one module-level statement uses and binds.

    Raises:
        RecursionError: the statement is nested too deeply.
    """
    analyser = _Analyser()
    analyser.visit(definition)
    return analyser.finish()


class _Analyser:
    """Visitor of one definition. `finish` separates local from global names, after all bindings have been seen."""

    def __init__(self) -> None:
        self.result = DefinitionUsage()
        self._usage = self.result.usage  # of the piece that is being visited
        self._scope: _Scope | None = None
        self._deferred = 0  # depth of function bodies
        # References that are global unless their scope or an enclosing one binds the name, each with its target list.
        self._candidates: list[tuple[list[Reference], _Scope | None, Reference]] = []
        self._decorators: list[tuple[Usage, Part]] = []

    def finish(self) -> DefinitionUsage:
        """Add the global references to their usages and drop decorators without any."""
        for references, scope, reference in self._candidates:
            if scope is None or reference.name not in scope.local:
                references.append(reference)
        for usage, part in self._decorators:
            if not part.usage.references:
                usage.parts.remove(part)
        return self.result

    def visit(self, node: Node) -> None:
        """Call the handlers of the outermost nodes that have one. Operators nest deeply, so this does not recurse."""
        stack = [node]
        while stack:
            current = stack.pop()
            handler = _HANDLERS.get(current.type)
            if handler is not None:
                handler(self, current)
            else:
                stack.extend(reversed(current.named_children))

    def visit_all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.visit(node)

    def _apart(self, nodes: Sequence[Node]) -> Usage:
        """Visit nodes and collect their usage separately from the current one."""
        outer, self._usage = self._usage, Usage()
        self.visit_all(nodes)
        separate, self._usage = self._usage, outer
        return separate

    # names

    def _enter(self, kind: str, bound: set[str]) -> _Scope:
        self._scope = _Scope(kind, self._scope, bound)
        return self._scope

    def _leave(self) -> None:
        assert self._scope is not None
        self._scope = self._scope.outer

    def _store(self, identifier: Node) -> None:
        name = text(identifier)
        scope = self._scope
        while scope is not None and scope.kind == "comprehension":
            scope = scope.outer
        if scope is None or name in scope.globals:
            self.result.stores.append(identifier)
        else:
            scope.bound.add(name)  # a class binds it from here on, a function in its whole body
            self.result.locals.add(name)

    def _target(self, node: Node) -> None:
        if node.type == "identifier":
            self._store(node)
        elif node.type in ("attribute", "subscript"):
            self.visit(node)
        else:
            for child in node.named_children:
                self._target(child)

    def _annotate(self, node: Node, start: int, end: int, without: str = "") -> None:
        inner, written = self._apart([node]), node.text or b""
        has_names = (b"'" in written or b'"' in written) and b"Literal[" not in written
        quoted = frozenset(_quoted_names(node) if has_names else ())
        self._usage.annotations.append(Annotation(start, end, without, inner.references, quoted))

    # expressions

    def identifier(self, node: Node) -> None:
        self._refer([node])

    def _refer(self, parts: list[Node]) -> None:
        name, *attributes = map(text, parts)
        start = parts[0].start_byte
        ends = tuple(part.end_byte - start for part in parts)
        self._usage.attributes.update(attributes)
        scope = self._scope
        if scope is None or name not in scope.bound:
            reference = Reference(name, tuple(attributes), start, ends, eager=self._deferred == 0)
            self._candidates.append((self._usage.references, scope, reference))
        elif scope.kind == "class":
            self._usage.attributes.add(name)

    def attribute(self, node: Node) -> None:
        parts: list[Node] = []
        while node.type == "attribute":
            parts.append(ts.field(node, "attribute"))
            node = ts.field(node, "object")
        if node.type == "identifier":
            self._refer([node, *reversed(parts)])
        else:
            self._usage.attributes.update(map(text, parts))
            self.visit(node)

    def string(self, node: Node) -> None:
        self.visit_all([child for child in node.named_children if child.type == "interpolation"])

    def keyword_argument(self, node: Node) -> None:
        self.visit(ts.field(node, "value"))

    def named_expression(self, node: Node) -> None:
        self.visit(ts.field(node, "value"))
        self._store(ts.field(node, "name"))

    def comprehension(self, node: Node) -> None:
        clauses = [child for child in node.named_children if child.type == "for_in_clause"]
        self.visit(ts.field(clauses[0], "right"))  # the first iterable belongs to the outer scope
        bound = {text(name) for clause in clauses for name in ts.targets(ts.field(clause, "left"))}
        self.result.locals |= bound
        self._enter("comprehension", bound)
        for child in node.named_children:
            if child.type != "for_in_clause":
                self.visit(child)
            elif child != clauses[0]:
                self.visit(ts.field(child, "right"))
        self._leave()

    def call(self, node: Node) -> None:
        function, given = ts.field(node, "function"), ts.field(node, "arguments")
        name = ts.dotted(function)
        arguments = ts.statements(given) if name is not None and name[-1] in _WRAPPERS else []
        if len(arguments) == 1 and arguments[0].type == "identifier":
            self._replaceable(Kind.WRAPPER, node, arguments[0])
        else:
            self.decidable(node)

    def decidable(self, node: Node) -> None:
        """Note a comparison, call or conditional expression that may be replaced by its certain value."""
        instead: Node | str | None = None
        if node.type == "conditional_expression":
            value, condition, otherwise = ts.statements(node)
            decided = facts.truth(condition)
            if decided is not None:
                instead = value if decided else otherwise
        else:
            decided = facts.truth(node)
            instead = None if decided is None else str(decided)
            if instead is None and node.type == "call":
                instead = facts.environment_default(node)
        if instead is None:
            self.visit_all(node.named_children)
        else:
            self._replaceable(Kind.FOLD, node, instead)

    def _replaceable(self, kind: Kind, node: Node, instead: Node | str) -> None:
        fallback = Usage() if isinstance(instead, str) else self._apart([instead])
        self._usage.parts.append(Part(kind, node, self._apart(node.named_children), instead, fallback))

    # functions and classes

    def function(self, node: Node) -> None:
        if node.type == FUNCTION:
            self._store(ts.field(node, "name"))
        parameters = ts.child(node, "parameters")
        bound = self._parameters(parameters) if parameters is not None else set()
        returns = ts.child(node, "return_type")
        if returns is not None and parameters is not None:
            self._annotate(returns, parameters.end_byte, returns.end_byte)
        body = ts.field(node, "body")
        scope = self._enter("function", bound | _type_parameters(node))
        if node.type == FUNCTION and b"global" in (body.text or b""):
            scope.globals = _global(body)
        self.result.locals |= scope.bound
        self._deferred += 1
        self.visit(body)
        self._deferred -= 1
        self._leave()

    def _parameters(self, node: Node) -> set[str]:
        """Visit the defaults, note the annotations and return the names of the parameters."""
        bound: set[str] = set()
        for parameter in node.named_children:
            if parameter.type == "identifier":
                bound.add(text(parameter))
                continue
            annotation, default = (ts.child(parameter, name) for name in ("type", "value"))
            if default is not None:
                self.visit(default)
            name = parameter if annotation is None and default is None else parameter.named_children[0]
            bound |= {text(identifier) for identifier in ts.targets(name)}
            if annotation is not None and default is not None:
                self._annotate(annotation, name.end_byte, default.start_byte, "=")
            elif annotation is not None:
                self._annotate(annotation, name.end_byte, annotation.end_byte)
        return bound

    def class_(self, node: Node) -> None:
        self._store(ts.field(node, "name"))
        superclasses = ts.child(node, "superclasses")
        if superclasses is not None:
            self.visit(superclasses)
        self._enter("class", _type_parameters(node))
        for statement in ts.statements(ts.field(node, "body")):
            if ts.undecorated(statement).type == FUNCTION:
                self._usage.parts.append(Part(Kind.METHOD, statement, self._apart([statement])))
            else:
                self.visit(statement)
        self._leave()

    def decorated(self, node: Node) -> None:
        for decorator in node.named_children:
            if decorator.type == "decorator":
                part = Part(Kind.DECORATOR, decorator, self._apart(decorator.named_children))
                self._usage.parts.append(part)
                self._decorators.append((self._usage, part))
        self.visit(ts.undecorated(node))

    # statements

    def assignment(self, node: Node) -> None:
        left, right, annotation = (
            ts.child(node, "left"),
            ts.child(node, "right"),
            ts.child(node, "type"),
        )
        if annotation is None and left is not None and right is not None and left.type == "attribute":
            self.visit_all([left, right])
            return
        if right is not None:
            self.visit(right)
        if left is not None:
            if annotation is not None:
                if right is not None and self._scope is not None and self._scope.kind == "function":
                    self._annotate(annotation, left.end_byte, annotation.end_byte)
                else:  # the annotation declares a dataclass field or a local without a value: it cannot go entirely
                    self._annotate(annotation, annotation.start_byte, annotation.end_byte, "object")
            self._target(left)

    def augmented_assignment(self, node: Node) -> None:
        self.visit(ts.field(node, "right"))
        self.visit(ts.field(node, "left"))
        self._target(ts.field(node, "left"))

    def for_statement(self, node: Node) -> None:
        for child in node.named_children:
            if child == ts.field(node, "left"):
                self._target(child)
            else:
                self.visit(child)

    def if_statement(self, node: Node) -> None:
        """Note each branch as a part if flags or certain conditions decide whether it runs."""
        conditions: list[Node] = []
        for clause in (node, *node.children_by_field_name("alternative")):
            condition = ts.child(clause, "condition")
            if condition is not None:
                conditions.append(condition)
            pieces = [condition] if condition is not None else []
            pieces.append(ts.field(clause, "body" if clause.type == "else_clause" else "consequence"))
            if any(map(self._may_be_certain, conditions)):
                self._usage.parts.append(Part(Kind.BRANCH, clause, self._apart(pieces), conditions=tuple(conditions)))
            else:
                self.visit_all(pieces)

    def _may_be_certain(self, condition: Node) -> bool:
        return condition.type in _FLAGS or facts.truth(condition) is not None

    def as_pattern(self, node: Node) -> None:
        self.visit(node.named_children[0])
        self._target(node.named_children[-1])

    def case_clause(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "case_pattern":
                for identifier in ts.captures(child):
                    self._store(identifier)
                for inner in ts.walk(child):
                    if inner.type == "dotted_name" and (inner.named_child_count > 1 or _is_class_of(inner)):
                        self._refer(inner.named_children)
            else:
                self.visit(child)

    def expression_statement(self, node: Node) -> None:
        call = node.named_children[0]
        if call.type == "assignment":
            self.assignment(call)
            return
        function = ts.child(call, "function") if call.type == "call" else None
        name = ts.dotted(function) if function is not None else None
        if name is not None and _is_log(name):
            self._usage.parts.append(Part(Kind.LOG, node, self._apart([call])))
        else:
            self.visit_all(node.named_children)

    def import_(self, node: Node) -> None:
        self._usage.imports.append(node)
        for identifier in ts.imported_identifiers(node):
            self._store(identifier)

    def delete_statement(self, node: Node) -> None:
        self.visit_all(node.named_children)
        if self._scope is not None and self._scope.kind == "function":
            for identifier in ts.targets(node.named_children[0]):
                self._store(identifier)

    def global_(self, node: Node) -> None:
        self.result.stores.extend(child for child in node.named_children if child.type == "identifier")

    def type_alias(self, node: Node) -> None:
        self._deferred += 1
        self.visit(ts.field(node, "right"))
        self._deferred -= 1

    def nothing(self, node: Node) -> None:
        """Skip a node without references."""


def _is_log(name: tuple[str, ...]) -> bool:
    return name[-1] in _LOG_METHODS if len(name) > 1 else bool(_LOG_FUNCTIONS.fullmatch(name[0]))


def _quoted_names(node: Node) -> Iterator[str]:
    for inner in ts.walk(node):
        if inner.type == "string_content":
            yield from _NAME.findall(text(inner))


def _global(body: Node) -> set[str]:
    """Names of the `global` statements of a function, without those of nested functions."""
    found: set[str] = set()
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type == "global_statement":
            found |= {text(child) for child in node.named_children}
        elif node.type not in (FUNCTION, CLASS, "lambda"):
            stack.extend(node.named_children)
    return found


def _type_parameters(node: Node) -> set[str]:
    parameters = ts.child(node, "type_parameters")
    if parameters is None:
        return set()
    return {text(inner) for inner in ts.walk(parameters) if inner.type == "identifier"}


def _is_class_of(name: Node) -> bool:
    return name.parent is not None and name.parent.type == "class_pattern" and name.parent.named_children[0] == name


_HANDLERS: dict[str, Callable[[_Analyser, Node], None]] = {
    "identifier": _Analyser.identifier,
    "attribute": _Analyser.attribute,
    "string": _Analyser.string,
    **{kind: _Analyser.nothing for kind in ("comment", "false", "float", "integer", "none", "true")},
    "keyword_argument": _Analyser.keyword_argument,
    "named_expression": _Analyser.named_expression,
    **{kind: _Analyser.comprehension for kind in COMPREHENSIONS},
    "call": _Analyser.call,
    "comparison_operator": _Analyser.decidable,
    "conditional_expression": _Analyser.decidable,
    FUNCTION: _Analyser.function,
    "lambda": _Analyser.function,
    CLASS: _Analyser.class_,
    DECORATED: _Analyser.decorated,
    "assignment": _Analyser.assignment,
    "augmented_assignment": _Analyser.augmented_assignment,
    "for_statement": _Analyser.for_statement,
    "if_statement": _Analyser.if_statement,
    "as_pattern": _Analyser.as_pattern,
    "case_clause": _Analyser.case_clause,
    "expression_statement": _Analyser.expression_statement,
    **{kind: _Analyser.import_ for kind in IMPORTS},
    "future_import_statement": _Analyser.nothing,
    "delete_statement": _Analyser.delete_statement,
    "global_statement": _Analyser.global_,
    "nonlocal_statement": _Analyser.nothing,
    "type_alias_statement": _Analyser.type_alias,
}
