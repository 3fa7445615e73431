"""Write one definition of a closure: its author's text with names changed and dropped parts removed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from tree_sitter import Node

from . import tree_sitter_nodes as ts
from .bindings import imports
from .naming import NameConflict, Names
from .piece import Annotated, Piece, Use
from .tree import External, SourceTree, Symbol
from .tree_sitter_nodes import text
from .usage import Kind, Part, Usage


class _Edit(NamedTuple):
    start: int
    end: int
    replacement: bytes = b""


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a definition, and the import lines that it needs."""

    text: str
    imports: set[str]


def write_piece(tree: SourceTree, piece: Piece, names: Names) -> Written:
    """Write a piece with the given names.

    Raises:
        NameConflict: a name has to change where the text does not allow it.
    """
    writer = _PieceWriter(tree, piece, names)
    return Written(writer.write(), writer.imports)


class _PieceWriter:
    """Collects the edits of one piece and applies them to its text."""

    def __init__(self, tree: SourceTree, piece: Piece, names: Names) -> None:
        self._tree, self._piece, self._definition, self._names = tree, piece, piece.definition, names
        self._path = piece.definition.path
        self._source = tree.sources[self._path]
        self._edits: list[_Edit] = []
        self.imports: set[str] = set()

    def write(self) -> str:
        removed: list[Node] = []
        for use in self._piece.uses:
            self._rename(use)
        for annotated in self._piece.annotations:
            self._annotation(annotated)
        for usage in self._piece.usages:
            removed += self._local_imports(usage)
            removed += self._drop_parts([part for part in usage.parts if part in self._piece.dropped])
        self._remove(removed)
        self._rename_stores()
        self._dedent(self._definition.node, self._definition.node.start_point.column)
        return self._apply()

    # names

    def _rename(self, use: Use) -> None:
        name = self._names.of(use.target)
        if name is None:
            raise NameConflict(f"{use.reference.name} has no name in the closure")
        if isinstance(use.target, External):
            self._import(use, use.target, name)
        if name != ".".join((use.reference.name, *use.reference.attributes[: use.consumed])):
            start = use.reference.start
            self._edits.append(_Edit(start, start + use.reference.ends[use.consumed], name.encode()))

    def _import(self, use: Use, target: External, name: str) -> None:
        if target.name is not None:
            alias = "" if name == target.name else f" as {name}"
            self.imports.add(f"from {target.module} import {target.name}{alias}")
            return
        package, _, last = target.module.rpartition(".")
        if target.module == name:
            self.imports.add(f"import {name}")
        elif package and last == name:
            self.imports.add(f"from {package} import {name}")
        else:
            self.imports.add(f"import {target.module} as {name}")
        if not use.consumed and name == use.reference.name:
            modules = self._tree.submodules(self._path, name, use.reference.attributes)
            self.imports |= {f"import {module}" for module in modules}

    def _rename_stores(self) -> None:
        for node in self._definition.usage.stores:
            symbol = Symbol(self._path, text(node))
            name = self._names.of(symbol)
            if name is not None and name != symbol.name:
                if node.parent is not None and node.parent.type in ("dotted_name", "aliased_import"):
                    raise NameConflict(f"{symbol.name} is bound by an import inside of a statement")
                self._edits.append(_Edit(node.start_byte, node.end_byte, name.encode()))

    def _annotation(self, annotated: Annotated) -> None:
        """Keep an annotation if the written file defines all its names; else remove it."""
        annotation = annotated.annotation
        stays = all(self._names.of(target) == name for name, target in annotated.quoted.items()) and all(
            self._names.of(use.target) is not None for use in annotated.uses
        )
        if stays:
            for use in annotated.uses:
                self._rename(use)
        else:
            self._edits.append(_Edit(annotation.start, annotation.end, annotation.without.encode()))

    def _local_imports(self, usage: Usage) -> list[Node]:
        """Rewrite imports of the tree's own files inside functions, whose names are global in the written file.

        Returns:
            The import statements to remove.
        """
        removed = []
        for node in usage.imports:
            items = [(item.local, self._tree.resolve_import(self._path, item)) for item in imports(node)]
            inner = [(local, self._names.of(target)) for local, target in items if isinstance(target, Symbol)]
            if not inner:
                continue
            if len(inner) < len(items):
                raise NameConflict("an import inside of a function is of the tree in part")
            lines = [f"{local} = {name}" for local, name in inner if local != name]
            if lines:
                indent = " " * node.start_point.column
                self._edits.append(_Edit(node.start_byte, node.end_byte, f"\n{indent}".join(lines).encode()))
            else:
                removed.append(node)
        return removed

    # parts

    def _drop_parts(self, parts: list[Part]) -> list[Node]:
        """Add the edits that drop some parts. Returns the whole statements to remove."""
        removed = []
        branches: dict[int, list[Part]] = defaultdict(list)
        for part in parts:
            if part.kind in (Kind.FOLD, Kind.WRAPPER):
                self._fold(part)
            elif part.kind is Kind.BRANCH:
                branches[_if_statement(part.node).start_byte].append(part)
            else:
                removed.append(part.node)
        for dead in branches.values():
            statement = _if_statement(dead[0].node)
            if not self._cut_branches(statement, {part.node.start_byte for part in dead}):
                removed.append(statement)
        return removed

    def _fold(self, part: Part) -> None:
        node, instead = part.node, part.instead
        if isinstance(instead, str):
            self._edits.append(_Edit(node.start_byte, node.end_byte, instead.encode()))
        else:
            self._edits.append(_Edit(node.start_byte, instead.start_byte))
            self._edits.append(_Edit(instead.end_byte, node.end_byte))

    def _cut_branches(self, statement: Node, dead: set[int]) -> bool:
        """Remove the branches that start at `dead` from an `if` statement. Returns False if no branch remains."""
        clauses = [statement, *statement.children_by_field_name("alternative")]
        alive = [clause for clause in clauses if clause.start_byte not in dead]
        if not alive:
            return False
        first = alive[0]
        if first.type == "else_clause":
            block = ts.field(first, "body")
            self._edits.append(_Edit(statement.start_byte, block.start_byte))
            if block.start_point.row > first.start_point.row:
                self._dedent(block, block.start_point.column - statement.start_point.column)
            return True
        if first is not statement:
            self._edits.append(_Edit(statement.start_byte, first.start_byte + len("el")))
        for clause in clauses:
            if clause.start_byte in dead and clause.start_byte > first.start_byte:
                before = clause.prev_sibling
                self._edits.append(_Edit(before.end_byte if before else clause.start_byte, clause.end_byte))
        return True

    def _remove(self, nodes: list[Node]) -> None:
        """Remove decorators and statements; a block that would be empty keeps `pass`."""
        by_block: dict[int, list[Node]] = defaultdict(list)
        for node in nodes:
            following = node.next_sibling
            if node.type == "decorator" and following is not None:
                self._edits.append(_Edit(node.start_byte, following.start_byte))
            elif node.parent is not None:
                by_block[node.parent.id].append(node)
        for siblings in by_block.values():
            block = siblings[0].parent
            empty = block is not None and len(siblings) == len(ts.statements(block))
            self._edits += [self._removal(node, keep=empty and node is siblings[0]) for node in siblings]

    def _removal(self, node: Node, keep: bool) -> _Edit:
        start = self._source.rfind(b"\n", 0, node.start_byte) + 1
        end = self._source.find(b"\n", node.end_byte) + 1 or len(self._source)
        alone = not self._source[start : node.start_byte].strip() and not self._source[node.end_byte : end].strip()
        if keep or not alone:
            return _Edit(node.start_byte, node.end_byte, b"pass")
        while self._source[:start].endswith(b"\n\n"):  # the empty lines above go too
            start -= 1
        return _Edit(start, end)

    # text

    def _dedent(self, node: Node, columns: int) -> None:
        """Remove indentation from all lines of a node except its first; multi-line strings stay as they are."""
        if not columns:
            return
        strings = [n.byte_range for n in ts.walk(node) if n.type == "string" and n.start_point.row < n.end_point.row]
        line = self._source.find(b"\n", node.start_byte, node.end_byte) + 1
        while line:
            head = self._source[line : line + columns]
            indent = len(head) - len(head.lstrip(b" \t"))
            if indent and not any(start < line < end for start, end in strings):
                self._edits.append(_Edit(line, line + indent))
            line = self._source.find(b"\n", line, node.end_byte) + 1

    def _apply(self) -> str:
        node = self._definition.node
        parts: list[bytes] = []
        position = node.start_byte
        for edit in sorted(self._edits, key=lambda e: (e.start, -e.end)):
            if edit.start < position:
                continue  # inside a removed part
            parts += [self._source[position : edit.start], edit.replacement]
            position = edit.end
        parts.append(self._source[position : node.end_byte])
        return b"".join(parts).decode().rstrip()


def _if_statement(clause: Node) -> Node:
    """The `if` statement that a branch belongs to."""
    parent = clause.parent
    return clause if clause.type == "if_statement" or parent is None else parent
