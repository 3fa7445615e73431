"""A definition as a closure keeps it: the parts that stay, with every name resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .bindings import Definition, imports
from .closure import Closure
from .resolve import Resolver
from .tree import Builtin, External, Symbol, Target
from .usage import Annotation, Part, Reference, Usage, kept_usages


class Use(NamedTuple):
    """A reference with the target that it resolves to."""

    reference: Reference
    target: Target
    consumed: int  # number of the reference's attributes that belong to the target


class Annotated(NamedTuple):
    """An annotation with the targets of its names."""

    annotation: Annotation
    uses: tuple[Use, ...]
    quoted: dict[str, Target]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    definition: Definition
    dropped: set[Part]  # parts of all the closure's definitions that are removed
    usages: tuple[Usage, ...]  # of the parts that stay
    uses: tuple[Use, ...]  # without those in annotations
    annotations: tuple[Annotated, ...]
    eager: frozenset[Symbol]  # symbols looked up while the definition is executed
    files: frozenset[str]  # paths that define what the piece uses
    builtins: frozenset[str]
    locals: set[str]  # names bound in inner scopes
    externals: tuple[External, ...]  # used by the code, or by annotations without symbols of the tree; each once
    spellings: dict[Symbol | str, frozenset[str]]  # target, or dotted name -> names in the code


def make_piece(resolver: Resolver, closure: Closure, definition: Definition) -> Piece:
    """Resolve the names in the parts of a definition that its closure keeps."""
    path, tree = definition.path, resolver.tree
    usages = tuple(kept_usages(definition.usage.usage, closure.dropped))
    uses = tuple(use for usage in usages for use in _uses(resolver, path, usage.references))
    annotations = tuple(_annotated(resolver, path, annotation) for usage in usages for annotation in usage.annotations)
    imported = [tree.resolve_import(path, item) for usage in usages for node in usage.imports for item in imports(node)]
    targets = [*(use.target for use in uses), *imported]
    light = (a.uses for a in annotations if all(isinstance(use.target, External | Builtin) for use in a.uses))
    externals = (use.target for group in (uses, *light) for use in group if isinstance(use.target, External))
    by_name: dict[str, External] = {}
    for external in externals:
        by_name.setdefault(external.dotted, external)
    return Piece(
        definition,
        closure.dropped,
        usages,
        uses,
        annotations,
        eager=frozenset(use.target for use in uses if use.reference.eager and isinstance(use.target, Symbol)),
        files=frozenset(target.path for target in targets if isinstance(target, Symbol)),
        locals=definition.usage.locals,
        builtins=frozenset(use.target.name for use in uses if isinstance(use.target, Builtin)),
        externals=tuple(by_name.values()),
        spellings=_spellings(uses),
    )


def _uses(resolver: Resolver, path: str, references: Iterable[Reference]) -> Iterator[Use]:
    for reference in references:
        resolved = resolver.tree.resolve(path, reference.name, reference.attributes)
        yield Use(reference, resolved.target, resolved.consumed)


def _annotated(resolver: Resolver, path: str, annotation: Annotation) -> Annotated:
    quoted = {name: resolver.tree.resolve(path, name).target for name in annotation.quoted}
    return Annotated(annotation, tuple(_uses(resolver, path, annotation.references)), quoted)


def _spellings(uses: Iterable[Use]) -> dict[Symbol | str, frozenset[str]]:
    """Names under which the code uses each target; "" for the member of a module."""
    names: dict[Symbol | str, set[str]] = {}
    for use in uses:
        if isinstance(use.target, Symbol | External):
            key = use.target if isinstance(use.target, Symbol) else use.target.dotted
            names.setdefault(key, set()).add("" if use.consumed else use.reference.name)
    return {key: frozenset(group) for key, group in names.items()}
