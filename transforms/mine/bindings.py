"""The module-level bindings of one file: which statement or import gives each name its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

from . import facts, tree_sitter_nodes
from .analyse import analyse
from .tree_sitter_nodes import CLASS, DECORATED, FUNCTION, IMPORTS, text
from .usage import DefinitionUsage


class Import(NamedTuple):
    """One name of one import statement."""

    local: str  # the name that it binds
    level: int  # leading dots
    module: str  # "a.b" of `import a.b` and of `from a.b import c`
    name: str | None  # "c" of `from a.b import c`, "*" of a star import
    aliased: bool = True  # `import a.b` without `as` binds only "a"


@dataclass(slots=True, eq=False)
class Definition:
    """A module-level statement that binds names, or that changes the value of one."""

    path: str
    node: Node
    names: tuple[str, ...]
    kind: str  # of the statement, without its decorators
    order: int  # its place in the file
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
    mutations: dict[str, list[Definition]] = field(default_factory=dict)  # statements that change a name's value
    unavailable: dict[str, str] = field(default_factory=dict)  # name -> package whose guarded import fails
    classes: list[Definition] = field(default_factory=list)
    has_error: bool = False

    def definitions(self, name: str) -> list[Definition]:
        """The statements that together give `name` its final value, in source order."""
        found: list[Definition] = []
        for binding in reversed(self.bindings.get(name, [])):
            if isinstance(binding, Import):
                break
            found.append(binding)
            if binding.is_compound:
                break
        return found[::-1]


def build(path: str, source: bytes, root: Node, fails: Callable[[Import], str | None]) -> FileIndex:
    """Index a parsed file.

    Args:
        fails: the package that an import needs and that is not to be had, or None if the import works.
    """
    flattener = _Flattener(fails)
    index = FileIndex(path, source, unavailable=flattener.unavailable, has_error=root.has_error)
    for statement in flattener.flatten(tree_sitter_nodes.statements(root)):
        _add(index, statement)
    # What is imported for types only is at hand where nothing else has the name: packages that load lazily
    # list their exports there.
    bound = set(index.bindings)
    for statement in flattener.flatten(s for block in flattener.for_types for s in tree_sitter_nodes.statements(block)):
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
    kind = tree_sitter_nodes.undecorated(statement).type
    definition = Definition(index.path, statement, names, kind, statement.start_byte, statement.has_error)
    for name in names:
        index.bindings.setdefault(name, []).append(definition)
    for name in _mutated(statement):
        index.mutations.setdefault(name, []).append(definition)
    if kind == CLASS:
        index.classes.append(definition)


def _bound(statement: Node) -> Iterator[Node]:
    if statement.type in (FUNCTION, CLASS, DECORATED):
        yield tree_sitter_nodes.field(tree_sitter_nodes.undecorated(statement), "name")
    elif statement.type == "type_alias_statement":
        yield next(node for node in tree_sitter_nodes.walk(statement) if node.type == "identifier")
    else:
        yield from tree_sitter_nodes.bindings([statement])


def imports(statement: Node) -> list[Import]:
    """The names that an import statement binds."""
    origin = tree_sitter_nodes.child(statement, "module_name")
    if origin is None:
        return [_plain_import(name) for name in statement.children_by_field_name("name")]
    source = text(origin).replace(" ", "")
    module = source.lstrip(".")
    level = len(source) - len(module)
    if any(child.type == "wildcard_import" for child in statement.named_children):
        return [Import("*", level, module, "*")]
    found = []
    for name in statement.children_by_field_name("name"):
        aliased = name.type == "aliased_import"
        original = text(tree_sitter_nodes.field(name, "name")) if aliased else text(name)
        found.append(
            Import(text(tree_sitter_nodes.field(name, "alias")) if aliased else original, level, module, original)
        )
    return found


def _plain_import(name: Node) -> Import:
    if name.type == "aliased_import":
        return Import(
            text(tree_sitter_nodes.field(name, "alias")), 0, text(tree_sitter_nodes.field(name, "name")), None
        )
    module = text(name)
    return Import(module.partition(".")[0], 0, module, None, aliased=False)


def _mutated(statement: Node) -> set[str]:
    """Names whose value the statement changes: `x[k] = v`, `x.a = v`, `x.append(v)`, `@x.register`."""
    roots: set[str] = set()
    if statement.type == DECORATED:
        for decorator in statement.named_children[:-1]:
            roots |= _called_on(decorator.named_children[0]) if decorator.type == "decorator" else set()
    elif statement.type == "expression_statement":
        inner = statement.named_children[0]
        if inner.type in ("assignment", "augmented_assignment"):
            roots |= _root(tree_sitter_nodes.field(inner, "left"))
        else:
            roots |= _called_on(inner)
    return roots


def _called_on(node: Node) -> set[str]:
    if node.type == "call":
        node = tree_sitter_nodes.field(node, "function")
    return _root(node) if node.type == "attribute" else set()


def _root(node: Node) -> set[str]:
    if node.type not in ("attribute", "subscript"):
        return set()
    while node.type in ("attribute", "subscript"):
        node = tree_sitter_nodes.field(node, "object" if node.type == "attribute" else "value")
    return {text(node)} if node.type == "identifier" else set()


class _Flattener:
    """The statements that run when the file is imported, with `if` and `try` opened where it is clear how.

    A branch with an import that fails is not taken. A statement stands alone if no other branch binds
    its names; else the whole conditional stays together.
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
        body = tree_sitter_nodes.field(node, "body")
        clauses: dict[str, list[Node]] = {"except_clause": [], "else_clause": [], "finally_clause": []}
        for clause in node.named_children:
            if clause.type in clauses:
                clauses[clause.type].extend(child for child in clause.named_children if child.type == "block")
        handlers, otherwise, always = clauses.values()
        if self._missing(body):
            yield from (s for s in tree_sitter_nodes.statements(body) if s.type in IMPORTS and not self._missing_of(s))
            yield from self._merge(node, [*handlers, *always])
        elif any(statement.type in IMPORTS for statement in tree_sitter_nodes.statements(body)):
            yield from self._merge(node, [body, *otherwise, *always])
        else:
            yield from self._merge(node, [body, *handlers, *otherwise, *always])

    def _if(self, node: Node) -> Iterator[Node]:
        blocks = []
        for clause in (node, *node.children_by_field_name("alternative")):
            condition = tree_sitter_nodes.child(clause, "condition")
            block = tree_sitter_nodes.field(clause, "consequence" if condition is not None else "body")
            certain = facts.truth(condition) if condition is not None else None
            if condition is not None and "TYPE_CHECKING" in text(condition):
                self.for_types.append(block)
            elif certain is not False and (condition is None or "__main__" not in text(condition)):
                blocks.append(block)
            if certain:
                break
        yield from self._merge(node, [block for block in blocks if not self._missing(block)])

    def _missing(self, block: Node) -> bool:
        """Whether an import of the block fails; what it would bind is noted."""
        missing: dict[str, str] = {}
        for statement in tree_sitter_nodes.statements(block):
            if statement.type in IMPORTS:
                missing |= self._missing_of(statement)
        self.unavailable.update(missing)
        return bool(missing)

    def _missing_of(self, statement: Node) -> dict[str, str]:
        return {item.local: package for item in imports(statement) if (package := self._fails(item))}

    def _merge(self, node: Node, blocks: list[Node]) -> Iterator[Node]:
        bound = [{text(name) for name in tree_sitter_nodes.bindings(block.named_children)} for block in blocks]
        shared = {name for i, names in enumerate(bound) for other in bound[i + 1 :] for name in names & other}
        for block in blocks:
            yield from self.flatten(
                statement
                for statement in tree_sitter_nodes.statements(block)
                if not shared & {text(name) for name in tree_sitter_nodes.bindings([statement])}
            )
        if shared:
            yield node
