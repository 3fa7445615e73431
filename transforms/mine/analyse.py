"""Finds out what a definition uses: one walk over its syntax tree, with Python's rules of scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from . import facts, tree_sitter_nodes
from .expression_names import WRAPPERS, Chain, plain_names
from .tree_sitter_nodes import CLASS, COMPREHENSIONS, DECORATED, FUNCTION, IMPORTS, text
from .usage import Annotation, DefinitionUsage, Kind, Part, Reference, Usage

_LOG_METHODS = frozenset(
    """
    critical debug error exception info info_once log success trace warn warn_once warning warning_once
    """.split()
)
_LOG_FUNCTIONS = re.compile(r"print\w*|\w*warn\w*|\w*deprecate\w*")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_FLAGS = frozenset({"identifier", "not_operator", "boolean_operator", "parenthesized_expression", "true", "false"})

# Nodes whose names their text tells where that is plain (`names`): their handlers see the others only.
_EXPRESSIONS = frozenset(
    """
    argument_list assert_statement attribute await binary_operator boolean_operator call comparison_operator
    conditional_expression dictionary dictionary_splat expression_list generic_type identifier list list_splat
    not_operator pair parenthesized_expression raise_statement return_statement set slice subscript tuple type
    type_parameter unary_operator
    """.split()
)

_GLOBAL = re.compile(rb"[\n:;]\s*global[\s\\]")


@dataclass(eq=False, slots=True)
class _Scope:
    kind: str  # "function", "class" or "comprehension"
    outer: _Scope | None
    bound: set[str]
    globals: set[str] = field(default_factory=set)
    _local: set[str] | None = None

    @property
    def local(self) -> set[str]:
        """Names that are not global in there, once all is known that it binds. What a class binds is left out."""
        if self._local is None:
            around = self.outer.local if self.outer is not None else set[str]()
            self._local = around if self.kind == "class" else (around | self.bound) - self.globals
        return self._local


def analyse(definition: Node) -> DefinitionUsage:
    """What one module-level statement uses and binds.

    Raises:
        RecursionError: the statement is nested too deeply.
    """
    analyser = _Analyser(definition.text or b"", definition.start_byte)
    analyser.visit(definition)
    return analyser.finish()


class _Analyser:
    """Walks over a definition once. Which names are local is told at the end, when all that binds them was seen."""

    def __init__(self, source: bytes, offset: int) -> None:
        self._source, self._offset = source, offset  # the definition's text, and where its file has it
        self._may_decide = any(word in source for word in facts.WORDS)
        self._may_wrap = any(word in source for word in WRAPPERS)
        self._has_globals = b"global" in source and _GLOBAL.search(source) is not None
        self.result = DefinitionUsage()
        self._usage = self.result.usage  # of the piece that is being visited
        self._scope: _Scope | None = None
        self._deferred = 0  # depth of function bodies
        # Names that are global unless the scope or one around it binds them, and where to note those that are.
        self._mentions: list[tuple[list[Reference], _Scope | None, Reference]] = []
        self._decorators: list[tuple[Usage, Part]] = []

    def finish(self) -> DefinitionUsage:
        for references, scope, reference in self._mentions:
            if scope is None or reference.name not in scope.local:
                references.append(reference)
        for usage, part in self._decorators:
            if not part.usage.references:
                usage.parts.remove(part)
        return self.result

    def visit(self, node: Node) -> None:
        kind = node.type
        if kind in _EXPRESSIONS and self._read(node.start_byte, node.end_byte):
            return
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node)
        else:
            self.visit_all(node.named_children)

    def visit_all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.visit(node)

    def _apart(self, nodes: Sequence[Node]) -> Usage:
        """What some nodes use, kept apart from the rest."""
        outer, self._usage = self._usage, Usage()
        self.visit_all(nodes)
        found, self._usage = self._usage, outer
        return found

    # names

    def _read(self, start: int, end: int) -> bool:
        """Note the names of an expression by its text alone; False if that takes more."""
        offset = self._offset
        names = plain_names(self._source[start - offset : end - offset])
        if names is None:
            return False
        self._usage.attributes.update(names.attributes)
        self._mention(names.used, start)
        return True

    def _mention(self, chains: Iterable[tuple[Chain, int]], start: int) -> None:
        usage, scope, eager = self._usage, self._scope, self._deferred == 0
        bound = scope.bound if scope is not None else ()
        for (name, attributes, ends, _), place in chains:
            if name not in bound:
                reference = Reference(name, attributes, start + place, ends, eager)
                self._mentions.append((usage.references, scope, reference))
            elif scope is not None and scope.kind == "class":
                usage.attributes.add(name)

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
            scope.bound.add(name)  # a class has it from here on, a function everywhere
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
        self._mention([(Chain(name, tuple(attributes), ends), 0)], start)

    def attribute(self, node: Node) -> None:
        parts: list[Node] = []
        while node.type == "attribute":
            parts.append(tree_sitter_nodes.field(node, "attribute"))
            node = tree_sitter_nodes.field(node, "object")
        if node.type == "identifier":
            self._refer([node, *reversed(parts)])
        else:
            self._usage.attributes.update(map(text, parts))
            self.visit(node)

    def string(self, node: Node) -> None:
        if self._source[node.start_byte - self._offset] not in b"'\"":  # without a prefix it is text alone
            self.visit_all([child for child in node.named_children if child.type == "interpolation"])

    def keyword_argument(self, node: Node) -> None:
        self.visit(tree_sitter_nodes.field(node, "value"))

    def named_expression(self, node: Node) -> None:
        self.visit(tree_sitter_nodes.field(node, "value"))
        self._store(tree_sitter_nodes.field(node, "name"))

    def comprehension(self, node: Node) -> None:
        clauses = [child for child in node.named_children if child.type == "for_in_clause"]
        self.visit(tree_sitter_nodes.field(clauses[0], "right"))  # the first iterable belongs to the outer scope
        bound = {
            text(name)
            for clause in clauses
            for name in tree_sitter_nodes.targets(tree_sitter_nodes.field(clause, "left"))
        }
        self.result.locals |= bound
        self._enter("comprehension", bound)
        for child in node.named_children:
            if child.type != "for_in_clause":
                self.visit(child)
            elif child != clauses[0]:
                self.visit(tree_sitter_nodes.field(child, "right"))
        self._leave()

    def call(self, node: Node) -> None:
        function, given = tree_sitter_nodes.field(node, "function"), tree_sitter_nodes.field(node, "arguments")
        name = tree_sitter_nodes.dotted(function) if self._may_wrap else None
        arguments = tree_sitter_nodes.statements(given) if name is not None else []
        if (
            name is not None
            and name[-1].encode() in WRAPPERS
            and len(arguments) == 1
            and arguments[0].type == "identifier"
        ):
            self._replaceable(Kind.WRAPPER, node, arguments[0])
        else:
            self.decidable(node)

    def decidable(self, node: Node) -> None:
        """A comparison, call or conditional whose value is certain may be replaced by it."""
        instead: Node | str | None = None
        if node.type == "conditional_expression":
            value, condition, otherwise = tree_sitter_nodes.statements(node)
            decided = facts.truth(condition)
            if decided is not None:
                instead = value if decided else otherwise
        elif self._may_decide:
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
            self._store(tree_sitter_nodes.field(node, "name"))
        parameters = tree_sitter_nodes.child(node, "parameters")
        bound = self._parameters(parameters) if parameters is not None else set()
        returns = tree_sitter_nodes.child(node, "return_type")
        if returns is not None and parameters is not None:
            self._annotate(returns, parameters.end_byte, returns.end_byte)
        body = tree_sitter_nodes.field(node, "body")
        scope = self._enter("function", bound | _type_parameters(node))
        if node.type == FUNCTION and self._has_globals:
            scope.globals = _global(body)
        self.result.locals |= scope.bound
        self._deferred += 1
        self.visit(body)
        self._deferred -= 1
        self._leave()

    def _parameters(self, node: Node) -> set[str]:
        """Names of the parameters; defaults are visited, annotations noted."""
        bound: set[str] = set()
        for parameter in node.named_children:
            if parameter.type == "identifier":
                bound.add(text(parameter))
                continue
            annotation, default = (tree_sitter_nodes.child(parameter, name) for name in ("type", "value"))
            if default is not None:
                self.visit(default)
            name = parameter if annotation is None and default is None else parameter.named_children[0]
            bound |= {text(identifier) for identifier in tree_sitter_nodes.targets(name)}
            if annotation is not None and default is not None:
                self._annotate(annotation, name.end_byte, default.start_byte, "=")
            elif annotation is not None:
                self._annotate(annotation, name.end_byte, annotation.end_byte)
        return bound

    def class_(self, node: Node) -> None:
        self._store(tree_sitter_nodes.field(node, "name"))
        superclasses = tree_sitter_nodes.child(node, "superclasses")
        if superclasses is not None:
            self.visit(superclasses)
        self._enter("class", _type_parameters(node))
        for statement in tree_sitter_nodes.statements(tree_sitter_nodes.field(node, "body")):
            if tree_sitter_nodes.undecorated(statement).type == FUNCTION:
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
        self.visit(tree_sitter_nodes.undecorated(node))

    # statements

    def assignment(self, node: Node) -> None:
        left, right, annotation = (
            tree_sitter_nodes.child(node, "left"),
            tree_sitter_nodes.child(node, "right"),
            tree_sitter_nodes.child(node, "type"),
        )
        if annotation is None and left is not None and right is not None and left.type == "attribute":
            if right.type == "assignment" or not self._read(left.start_byte, right.end_byte):
                self.visit_all([left, right])
            return
        if right is not None:
            self.visit(right)
        if left is not None:
            if annotation is not None:
                if right is not None and self._scope is not None and self._scope.kind == "function":
                    self._annotate(annotation, left.end_byte, annotation.end_byte)
                else:  # it declares something: a field of a dataclass, a local without a value
                    self._annotate(annotation, annotation.start_byte, annotation.end_byte, "object")
            self._target(left)

    def augmented_assignment(self, node: Node) -> None:
        self.visit(tree_sitter_nodes.field(node, "right"))
        self.visit(tree_sitter_nodes.field(node, "left"))
        self._target(tree_sitter_nodes.field(node, "left"))

    def for_statement(self, node: Node) -> None:
        for child in node.named_children:
            if child == tree_sitter_nodes.field(node, "left"):
                self._target(child)
            else:
                self.visit(child)

    def if_statement(self, node: Node) -> None:
        """Branches are parts where flags or certainties decide about them."""
        conditions: list[Node] = []
        for clause in (node, *node.children_by_field_name("alternative")):
            condition = tree_sitter_nodes.child(clause, "condition")
            if condition is not None:
                conditions.append(condition)
            pieces = [condition] if condition is not None else []
            pieces.append(tree_sitter_nodes.field(clause, "body" if clause.type == "else_clause" else "consequence"))
            if any(map(self._may_be_certain, conditions)):
                self._usage.parts.append(Part(Kind.BRANCH, clause, self._apart(pieces), conditions=tuple(conditions)))
            else:
                self.visit_all(pieces)

    def _may_be_certain(self, condition: Node) -> bool:
        return condition.type in _FLAGS or (self._may_decide and facts.truth(condition) is not None)

    def as_pattern(self, node: Node) -> None:
        self.visit(node.named_children[0])
        self._target(node.named_children[-1])

    def case_clause(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "case_pattern":
                for identifier in tree_sitter_nodes.captures(child):
                    self._store(identifier)
                for inner in tree_sitter_nodes.walk(child):
                    if inner.type == "dotted_name" and (inner.named_child_count > 1 or _is_class_of(inner)):
                        self._refer(inner.named_children)
            else:
                self.visit(child)

    def expression_statement(self, node: Node) -> None:
        call = node.named_children[0]
        if call.type == "assignment":
            self.assignment(call)
            return
        function = tree_sitter_nodes.child(call, "function") if call.type == "call" else None
        name = tree_sitter_nodes.dotted(function) if function is not None else None
        if name is not None and _is_log(name):
            self._usage.parts.append(Part(Kind.LOG, node, self._apart([call])))
        else:
            self.visit_all(node.named_children)

    def import_(self, node: Node) -> None:
        self._usage.imports.append(node)
        for identifier in tree_sitter_nodes.imported_identifiers(node):
            self._store(identifier)

    def delete_statement(self, node: Node) -> None:
        self.visit_all(node.named_children)
        if self._scope is not None and self._scope.kind == "function":
            for identifier in tree_sitter_nodes.targets(node.named_children[0]):
                self._store(identifier)

    def global_(self, node: Node) -> None:
        self.result.stores.extend(child for child in node.named_children if child.type == "identifier")

    def type_alias(self, node: Node) -> None:
        self._deferred += 1
        self.visit(tree_sitter_nodes.field(node, "right"))
        self._deferred -= 1

    def nothing(self, node: Node) -> None:
        """Holds no identifiers, or such as are no references."""


def _is_log(name: tuple[str, ...]) -> bool:
    return name[-1] in _LOG_METHODS if len(name) > 1 else bool(_LOG_FUNCTIONS.fullmatch(name[0]))


def _quoted_names(node: Node) -> Iterator[str]:
    for inner in tree_sitter_nodes.walk(node):
        if inner.type == "string_content":
            yield from _NAME.findall(text(inner))


def _global(body: Node) -> set[str]:
    """Names of the `global` statements of a function, nested functions apart."""
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
    parameters = tree_sitter_nodes.child(node, "type_parameters")
    if parameters is None:
        return set()
    return {text(inner) for inner in tree_sitter_nodes.walk(parameters) if inner.type == "identifier"}


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
