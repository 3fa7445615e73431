"""Module-level bindings of one file: the statements and imports that give each name its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

from . import facts
from . import tree_sitter_nodes as ts
from .analyse import analyse
from .tree_sitter_nodes import CLASS, DECORATED, FUNCTION, IMPORTS, text
from .usage import DefinitionUsage


class Import(NamedTuple):
    """One name bound by an import statement."""

    local: str  # the bound name
    level: int  # leading dots
    module: str  # "a.b" of `import a.b` and of `from a.b import c`
    name: str | None  # "c" of `from a.b import c`, "*" of a star import
    aliased: bool = True  # `import a.b` without `as` binds only "a"


@dataclass(slots=True, eq=False)
class Definition:
    """A module-level statement that binds names or mutates the value of a name."""

    path: str
    node: Node
    names: tuple[str, ...]
    kind: str  # node type of the statement, without its decorators
    order: int  # start byte in the file
    has_error: bool
    _usage: DefinitionUsage | None = None

    @property
    def usage(self) -> DefinitionUsage:
        if self._usage is None:
            self._usage = analyse(self.node)
        return self._usage

    @property
    def is_compound(self) -> bool:
        return self.kind in (FUNCTION, CLASS)

    @property
    def is_class(self) -> bool:
        return self.kind == CLASS


@dataclass(slots=True)
class FileIndex:
    path: str
    source: bytes
    bindings: dict[str, list[Definition | Import]] = field(default_factory=dict)
    stars: list[Import] = field(default_factory=list)
    modules: list[Import] = field(default_factory=list)  # `import a.b.c` without an alias
    mutations: dict[str, list[Definition]] = field(default_factory=dict)  # name -> statements that mutate its value
    unavailable: dict[str, str] = field(default_factory=dict)  # name -> package whose guarded import fails
    classes: list[Definition] = field(default_factory=list)
    has_error: bool = False

    def definitions(self, name: str) -> list[Definition]:
        """The statements that together give `name` its final value, in source order."""
        statements: list[Definition] = []
        for binding in reversed(self.bindings.get(name, [])):
            if isinstance(binding, Import):
                break
            statements.append(binding)
            if binding.is_compound:
                break
        return statements[::-1]


def build(path: str, source: bytes, root: Node, fails: Callable[[Import], str | None]) -> FileIndex:
    """Index a parsed file.

    Args:
        fails: returns the name of the unavailable package that an import needs, or None if the import works.
    """
    flattener = _Flattener(fails)
    index = FileIndex(path, source, unavailable=flattener.unavailable, has_error=root.has_error)
    for statement in flattener.flatten(ts.statements(root)):
        _add(index, statement)
    # Imports under `if TYPE_CHECKING` count if nothing else binds the name: lazily loading packages list their
    # exports there.
    bound = set(index.bindings)
    for statement in flattener.flatten(s for block in flattener.for_types for s in ts.statements(block)):
        if statement.type in IMPORTS and not bound & {item.local for item in imports(statement)}:
            _add(index, statement)
    return index


def _add(index: FileIndex, statement: Node) -> None:
    if statement.type in IMPORTS:
        for item in imports(statement):
            if item.name == "*":
                index.stars.append(item)
            else:
                index.bindings.setdefault(item.local, []).append(item)
                if not item.aliased:
                    index.modules.append(item)
        return
    names = tuple(dict.fromkeys(text(name) for name in _bound(statement)))
    kind = ts.undecorated(statement).type
    definition = Definition(index.path, statement, names, kind, statement.start_byte, statement.has_error)
    for name in names:
        index.bindings.setdefault(name, []).append(definition)
    for name in _mutated(statement):
        index.mutations.setdefault(name, []).append(definition)
    if kind == CLASS:
        index.classes.append(definition)


def _bound(statement: Node) -> Iterator[Node]:
    if statement.type in (FUNCTION, CLASS, DECORATED):
        yield ts.field(ts.undecorated(statement), "name")
    elif statement.type == "type_alias_statement":
        yield next(node for node in ts.walk(statement) if node.type == "identifier")
    else:
        yield from ts.bindings([statement])


def imports(statement: Node) -> list[Import]:
    """List the names that an import statement binds."""
    origin = ts.child(statement, "module_name")
    source = text(origin).replace(" ", "") if origin is not None else ""
    module = source.lstrip(".")
    level = len(source) - len(module)
    if any(child.type == "wildcard_import" for child in statement.named_children):
        return [Import("*", level, module, "*")]
    found = []
    for node in statement.children_by_field_name("name"):
        aliased = node.type == "aliased_import"
        name = text(ts.field(node, "name") if aliased else node)
        local = text(ts.field(node, "alias")) if aliased else name
        if origin is not None:
            found.append(Import(local, level, module, name))
        else:
            found.append(Import(local if aliased else name.partition(".")[0], 0, name, None, aliased))
    return found


def _mutated(statement: Node) -> set[str]:
    """Names whose value the statement mutates: `x[k] = v`, `x.a = v`, `x.append(v)`, `@x.register`."""
    roots: set[str] = set()
    if statement.type == DECORATED:
        for decorator in statement.named_children[:-1]:
            roots |= _called_on(decorator.named_children[0]) if decorator.type == "decorator" else set()
    elif statement.type == "expression_statement":
        inner = statement.named_children[0]
        if inner.type in ("assignment", "augmented_assignment"):
            roots |= _root(ts.field(inner, "left"))
        else:
            roots |= _called_on(inner)
    return roots


def _called_on(node: Node) -> set[str]:
    if node.type == "call":
        node = ts.field(node, "function")
    return _root(node) if node.type == "attribute" else set()


def _root(node: Node) -> set[str]:
    if node.type not in ("attribute", "subscript"):
        return set()
    while node.type in ("attribute", "subscript"):
        node = ts.field(node, "object" if node.type == "attribute" else "value")
    return {text(node)} if node.type == "identifier" else set()


class _Flattener:
    """Lists the statements that run when the file is imported, with `if` and `try` statements resolved.

    A branch with a failing import is skipped. A statement in a branch stands alone if no other branch binds its
    names; otherwise the whole conditional statement is kept.
    """

    def __init__(self, fails: Callable[[Import], str | None]) -> None:
        self._fails = fails
        self.unavailable: dict[str, str] = {}
        self.for_types: list[Node] = []  # statements under `if TYPE_CHECKING`

    def flatten(self, nodes: Iterable[Node]) -> Iterator[Node]:
        for node in nodes:
            if node.type == "try_statement":
                yield from self._try(node)
            elif node.type == "if_statement":
                yield from self._if(node)
            else:
                yield node

    def _try(self, node: Node) -> Iterator[Node]:
        body = ts.field(node, "body")
        clauses: dict[str, list[Node]] = {"except_clause": [], "else_clause": [], "finally_clause": []}
        for clause in node.named_children:
            if clause.type in clauses:
                clauses[clause.type].extend(child for child in clause.named_children if child.type == "block")
        handlers, otherwise, always = clauses.values()
        if self._missing(body):
            yield from (s for s in ts.statements(body) if s.type in IMPORTS and not self._missing_of(s))
            yield from self._merge(node, [*handlers, *always])
        elif any(statement.type in IMPORTS for statement in ts.statements(body)):
            yield from self._merge(node, [body, *otherwise, *always])
        else:
            yield from self._merge(node, [body, *handlers, *otherwise, *always])

    def _if(self, node: Node) -> Iterator[Node]:
        blocks = []
        for clause in (node, *node.children_by_field_name("alternative")):
            condition = ts.child(clause, "condition")
            block = ts.field(clause, "consequence" if condition is not None else "body")
            certain = facts.truth(condition) if condition is not None else None
            if condition is not None and "TYPE_CHECKING" in text(condition):
                self.for_types.append(block)
            elif certain is not False and (condition is None or "__main__" not in text(condition)):
                blocks.append(block)
            if certain:
                break
        yield from self._merge(node, [block for block in blocks if not self._missing(block)])

    def _missing(self, block: Node) -> bool:
        """True if an import of the block fails. Records the names that it would bind."""
        missing: dict[str, str] = {}
        for statement in ts.statements(block):
            if statement.type in IMPORTS:
                missing |= self._missing_of(statement)
        self.unavailable.update(missing)
        return bool(missing)

    def _missing_of(self, statement: Node) -> dict[str, str]:
        return {item.local: package for item in imports(statement) if (package := self._fails(item))}

    def _merge(self, node: Node, blocks: list[Node]) -> Iterator[Node]:
        bound = [{text(name) for name in ts.bindings(block.named_children)} for block in blocks]
        shared = {name for i, names in enumerate(bound) for other in bound[i + 1 :] for name in names & other}
        for block in blocks:
            yield from self.flatten(
                statement
                for statement in ts.statements(block)
                if not shared & {text(name) for name in ts.bindings([statement])}
            )
        if shared:
            yield node
