"""Writes a closure as one file: imports, then definitions in an order that runs, as their authors wrote them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from . import allowed, syntax
from .closure import Closure, Resolver, Use
from .index import Definition
from .naming import NameConflict, Names, choose, written_uses
from .syntax import text
from .tree import External, Symbol
from .usage import Annotation


@dataclass(frozen=True, slots=True, order=True)
class _Edit:
    start: int
    end: int
    replacement: bytes


def render(resolver: Resolver, closure: Closure) -> str:
    """The source of the closure; its entry class is called `Model`.

    Raises:
        NameConflict: two definitions share a name, and the text of one does not allow to rename it.
    """
    ordered = _in_order(resolver, closure)
    names = choose(resolver, closure, ordered)
    imports: set[str] = set()
    blocks: list[tuple[bool, str]] = []
    for definition in ordered:
        writer = _Writer(resolver, closure, definition, names)
        blocks.append((definition.is_compound, writer.write()))
        imports |= writer.imports
    lines = ["from __future__ import annotations", "", *_import_lines(imports)]
    return "\n".join(lines).rstrip() + "\n" + "".join(_spaced(blocks)) + "\n"


def _spaced(blocks: Iterable[tuple[bool, str]]) -> Iterator[str]:
    """Two empty lines around functions and classes, one between imports and constants, none among constants."""
    before: bool | None = None
    for compound, block in blocks:
        yield "\n\n\n" if compound or before else "\n\n" if before is None else "\n"
        yield block
        before = compound
    # the caller ends the last line


def _in_order(resolver: Resolver, closure: Closure) -> list[Definition]:
    """Definitions after what they need when they are executed; otherwise as in their files, the entry's last."""
    ranks = {path: rank for rank, path in enumerate(_files_in_order(resolver, closure))}
    by_symbol: dict[Symbol, list[Definition]] = defaultdict(list)
    for definition in closure.definitions:
        for name in definition.names:
            by_symbol[Symbol(definition.path, name)].append(definition)
    waiting: dict[Definition, set[Definition]] = {}
    for definition in closure.definitions:
        eager = {u.resolved.target for u in written_uses(resolver, closure, definition) if u.reference.eager}
        needed = {d for target in eager if isinstance(target, Symbol) for d in by_symbol[target]}
        # Of several statements about one name, only those above this one were there when it ran.
        waiting[definition] = {d for d in needed if d.path != definition.path or d.order < definition.order}
    dependents: dict[Definition, list[Definition]] = defaultdict(list)
    for definition, needed in waiting.items():
        for other in needed:
            dependents[other].append(definition)
    place = {d: (ranks[d.path], d.order) for d in closure.definitions}
    by_place = {position: d for d, position in place.items()}
    ready = [place[d] for d, needed in waiting.items() if not needed]
    heapq.heapify(ready)
    ordered: list[Definition] = []
    while ready:
        definition = by_place[heapq.heappop(ready)]
        ordered.append(definition)
        for dependent in dependents[definition]:
            waiting[dependent].discard(definition)
            if not waiting[dependent]:
                heapq.heappush(ready, place[dependent])
    done = set(ordered)
    return ordered + sorted((d for d in closure.definitions if d not in done), key=place.__getitem__)


def _files_in_order(resolver: Resolver, closure: Closure) -> list[str]:
    """Files of the closure, imported before importing; by path where they import each other."""
    needs: dict[str, set[str]] = defaultdict(set)
    for definition in closure.definitions:
        targets = resolver.uses(definition).targets()
        needs[definition.path] |= {t.path for t in targets if isinstance(t, Symbol)} - {definition.path}
    found: list[str] = []
    seen: set[str] = set()

    def visit(path: str) -> None:
        if path not in seen:
            seen.add(path)
            for other in sorted(needs[path]):
                visit(other)
            found.append(path)

    visit(closure.entry.path)
    for path in sorted(needs):
        visit(path)
    return found


class _Writer:
    """Writes one definition, and notes the import lines that it needs."""

    def __init__(self, resolver: Resolver, closure: Closure, definition: Definition, names: Names) -> None:
        self._closure, self._definition, self._names = closure, definition, names
        self._tree = resolver.tree
        self._uses = resolver.uses(definition)
        self._written = list(written_uses(resolver, closure, definition))
        self._edits: list[_Edit] = []
        self.imports: set[str] = set()

    def write(self) -> str:
        node = self._definition.node
        for use in self._written:
            self._rename(use)
        self._rename_stores()
        for annotation, uses in self._uses.annotations:
            self._annotation(annotation, uses)
        removed = [n for n, _ in self._uses.optional if n.id not in self._closure.kept]
        removed += self._local_imports()
        self._remove(removed)
        self._dedent(node)
        return self._apply(node)

    def _rename(self, use: Use) -> None:
        target, consumed = use.resolved.target, use.resolved.consumed
        name = self._names.of(target)
        assert name is not None, target
        if isinstance(target, External):
            self._import(use, target, name)
        written = text_between = ".".join((use.reference.name, *use.reference.attributes[:consumed]))
        if name != written:
            self._edits.append(_Edit(use.reference.start, use.reference.ends[consumed], name.encode()))
        del text_between

    def _import(self, use: Use, target: External, name: str) -> None:
        if target.name is None:
            self.imports.add(_import_line(target.module, name))
            if not use.resolved.consumed and name == use.reference.name:
                path = self._definition.path
                modules = self._tree.submodules(path, use.reference.name, use.reference.attributes)
                self.imports |= {f"import {module}" for module in modules}
        else:
            alias = "" if name == target.name else f" as {name}"
            self.imports.add(f"from {target.module} import {target.name}{alias}")

    def _rename_stores(self) -> None:
        for node in self._definition.usage.stores:
            symbol = Symbol(self._definition.path, text(node))
            name = self._names.of(symbol)
            if name is not None and name != symbol.name:
                if _is_import(node):
                    raise NameConflict(f"{symbol.name} is bound by an import inside of a statement")
                self._edits.append(_Edit(node.start_byte, node.end_byte, name.encode()))

    def _annotation(self, annotation: Annotation, uses: list[Use]) -> None:
        """Annotations stay where all their names are at hand."""
        path = self._definition.path
        quoted = all(self._names.of(self._tree.resolve(path, name).target) == name for name in annotation.quoted)
        if quoted and all(self._names.of(use.resolved.target) is not None for use in uses):
            for use in uses:
                self._rename(use)
        elif annotation.required:
            self._edits.append(_Edit(annotation.type.start_byte, annotation.end, b"object"))
        else:
            self._edits.append(_Edit(annotation.start, annotation.end, b""))

    def _local_imports(self) -> list[Node]:
        """Imports from the tree inside of functions: their names are global now. Returns those to remove."""
        removed = []
        for node, items in self._uses.imports:
            symbols = [(local, target) for local, target in items if isinstance(target, Symbol)]
            if not symbols:
                continue
            if len(symbols) < len(items):
                raise NameConflict("an import inside of a function is of the tree in part")
            given = [(local, self._names.of(target)) for local, target in symbols]
            lines = [f"{local} = {name}" for local, name in given if local != name]
            if lines:
                self._edits.append(_Edit(node.start_byte, node.end_byte, "; ".join(lines).encode()))
            else:
                removed.append(node)
        return removed

    def _remove(self, nodes: list[Node]) -> None:
        """Take out decorators and statements; a block that would be empty keeps `pass`."""
        by_block: dict[int, list[Node]] = defaultdict(list)
        for node in nodes:
            if node.type == "decorator":
                following = node.next_sibling
                assert following is not None
                self._edits.append(_Edit(node.start_byte, following.start_byte, b""))
            else:
                assert node.parent is not None
                by_block[node.parent.id].append(node)
        for siblings in by_block.values():
            block = siblings[0].parent
            assert block is not None
            empty = len(siblings) == len(syntax.statements(block))
            for node in siblings:
                self._edits.append(self._removal(node, keep=empty and node is siblings[0]))

    def _removal(self, node: Node, keep: bool) -> _Edit:
        source = self._tree.sources[self._definition.path]
        start = source.rfind(b"\n", 0, node.start_byte) + 1
        end = source.find(b"\n", node.end_byte) + 1 or len(source)
        alone = not source[start : node.start_byte].strip() and not source[node.end_byte : end].strip()
        if keep or not alone:
            return _Edit(node.start_byte, node.end_byte, b"pass")
        return _Edit(start, end, b"")

    def _dedent(self, node: Node) -> None:
        """Take away the indentation of a statement that stood inside of `if` or `try`."""
        column = node.start_point.column
        if not column:
            return
        source = self._tree.sources[self._definition.path]
        inside = [
            n.byte_range for n in syntax.walk(node) if n.type == "string" and n.start_point.row != n.end_point.row
        ]
        line = source.find(b"\n", node.start_byte, node.end_byte) + 1
        while line:
            indent = len(source[line : line + column]) - len(source[line : line + column].lstrip(b" \t"))
            if indent and not any(start < line < end for start, end in inside):
                self._edits.append(_Edit(line, line + indent, b""))
            line = source.find(b"\n", line, node.end_byte) + 1

    def _apply(self, node: Node) -> str:
        source = self._tree.sources[self._definition.path]
        parts: list[bytes] = []
        position = node.start_byte
        for edit in sorted(self._edits, key=lambda e: (e.start, -e.end)):
            if edit.start < position:
                continue  # inside of a part that was taken out
            parts += [source[position : edit.start], edit.replacement]
            position = max(position, edit.end)
        parts.append(source[position : node.end_byte])
        return b"".join(parts).decode().rstrip()


def _is_import(identifier: Node) -> bool:
    parent = identifier.parent
    return parent is not None and parent.type in ("dotted_name", "aliased_import")


def _import_line(module: str, name: str) -> str:
    if module == name:
        return f"import {module}"
    package, _, last = module.rpartition(".")
    if package and last == name:
        return f"from {package} import {name}"
    return f"import {module} as {name}"


def _import_lines(imports: set[str]) -> list[str]:
    """Sorted as isort does: the standard library first, `import` before `from`, one line a module."""
    plain = {line for line in imports if line.startswith("import ")}
    merged: dict[str, set[str]] = defaultdict(set)
    for line in imports - plain:
        module, _, names = line.removeprefix("from ").partition(" import ")
        merged[module].add(names)
    lines = [(line.split()[1], line) for line in plain]
    lines += [(module, f"from {module} import {', '.join(sorted(names))}") for module, names in merged.items()]
    groups = [[], []]  # type: list[list[tuple[str, str]]]
    for module, line in lines:
        groups[0 if allowed.standard(module) else 1].append((module, line))
    found: list[str] = []
    for group in groups:
        if group and found:
            found.append("")
        found += [line for _, line in sorted(group, key=lambda item: (item[1].startswith("from"), item[1]))]
    return found
