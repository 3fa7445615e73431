"""A definition without the parts that go, and what its names mean: the same for every closure that has it so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .bindings import Definition, imports
from .closure import Closure
from .resolve import Resolver
from .tree import Builtin, External, Symbol, Target
from .tree_sitter_nodes import text
from .usage import Annotation, DefinitionUsage, Part, Reference, Usage, kept_usages


class Use(NamedTuple):
    """A reference and what it means."""

    reference: Reference
    target: Target
    consumed: int  # attributes of the reference that the target stands for


class Annotated(NamedTuple):
    """An annotation and what its names mean."""

    annotation: Annotation
    uses: tuple[Use, ...]
    quoted: dict[str, Target]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    definition: Definition
    dropped: frozenset[Part]
    usages: tuple[Usage, ...]  # of the parts that stay
    uses: tuple[Use, ...]  # in the text, annotations apart
    annotations: tuple[Annotated, ...]
    eager: frozenset[Symbol]  # what it looks up while it is executed
    files: frozenset[str]  # that define what it uses
    builtins: frozenset[str]
    externals: tuple[External, ...]  # that it needs, or that its annotations may have besides; each once
    written: dict[Symbol | str, frozenset[str]]  # what is used, externals by dotted name -> under which names
    symbols: tuple[Symbol, ...]  # these and the next: whose names decide how it is written
    dotted: tuple[str, ...]

    @property
    def locals(self) -> set[str]:
        return self.definition.usage.locals


class Pieces:
    """The pieces of one tree, each made once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._parts: dict[Definition, frozenset[Part]] = {}
        self._pieces: dict[tuple[Definition, frozenset[Part]], Piece] = {}

    def of(self, closure: Closure, definition: Definition) -> Piece:
        """What a closure keeps of one of its definitions."""
        if definition not in self._parts:
            self._parts[definition] = frozenset(_all_parts(definition.usage))
        dropped = self._parts[definition] & closure.dropped
        key = (definition, dropped)
        if key not in self._pieces:
            self._pieces[key] = self._make(definition, dropped)
        return self._pieces[key]

    def _make(self, definition: Definition, dropped: frozenset[Part]) -> Piece:
        path = definition.path
        usages = tuple(kept_usages(definition.usage.usage, dropped))
        uses = tuple(use for usage in usages for use in self._uses(path, usage.references))
        annotations = tuple(self._annotated(path, annotation) for usage in usages for annotation in usage.annotations)
        imported = [
            self._resolver.tree.resolve_import(path, item)
            for usage in usages
            for node in usage.imports
            for item in imports(node)
        ]
        noted = [target for a in annotations for target in (*(use.target for use in a.uses), *a.quoted.values())]
        needed = [*(use.target for use in uses), *imported]
        symbols = [target for target in (*needed, *noted) if isinstance(target, Symbol)]
        light = (a.uses for a in annotations if all(isinstance(use.target, External | Builtin) for use in a.uses))
        externals = (use.target for some in (uses, *light) for use in some if isinstance(use.target, External))
        by_name: dict[str, External] = {}
        for external in externals:
            by_name.setdefault(external.dotted, external)
        stored = [Symbol(path, text(node)) for node in definition.usage.stores]
        return Piece(
            definition,
            dropped,
            usages,
            uses,
            annotations,
            eager=frozenset(use.target for use in uses if use.reference.eager and isinstance(use.target, Symbol)),
            files=frozenset(target.path for target in needed if isinstance(target, Symbol)),
            builtins=frozenset(use.target.name for use in uses if isinstance(use.target, Builtin)),
            externals=tuple(by_name.values()),
            written=_written(uses),
            symbols=tuple(dict.fromkeys([*symbols, *stored])),
            dotted=tuple(dict.fromkeys(t.dotted for t in (*needed, *noted) if isinstance(t, External))),
        )

    def _uses(self, path: str, references: Iterable[Reference]) -> Iterator[Use]:
        for reference in references:
            found = self._resolver.resolve(path, reference)
            yield Use(reference, found.target, found.consumed)

    def _annotated(self, path: str, annotation: Annotation) -> Annotated:
        quoted = {name: self._resolver.tree.resolve(path, name).target for name in sorted(annotation.quoted)}
        return Annotated(annotation, tuple(self._uses(path, annotation.references)), quoted)


def _written(uses: Iterable[Use]) -> dict[Symbol | str, frozenset[str]]:
    """Under which names each thing is used, "" for the member of a module."""
    found: dict[Symbol | str, set[str]] = {}
    for use in uses:
        if isinstance(use.target, Symbol | External):
            key = use.target if isinstance(use.target, Symbol) else use.target.dotted
            found.setdefault(key, set()).add("" if use.consumed else use.reference.name)
    return {key: frozenset(names) for key, names in found.items()}


def _all_parts(usage: DefinitionUsage) -> Iterator[Part]:
    stack = [usage.usage]
    while stack:
        for part in stack.pop().parts:
            yield part
            stack.append(part.usage)
            if part.fallback is not None:
                stack.append(part.fallback)
