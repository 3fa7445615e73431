"""Writes a closure as one file: imports, then definitions in an order that runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import allowed
from .closure import Closure
from .einops.write_out import write_out
from .naming import choose
from .order import in_order
from .piece import Pieces
from .resolve import Resolver
from .timm_stand_ins import stand_in
from .write_definition import Writer, Written


@dataclass(frozen=True, slots=True)
class Rendered:
    """A closure as one file."""

    code: str
    parts: tuple[str, ...]  # the imports and each definition, some under other names: if all compile, the file does


class Renderer:
    """Renders the closures of one tree, which have much in common."""

    def __init__(self, resolver: Resolver) -> None:
        self._pieces = Pieces(resolver)
        self._writer = Writer(resolver.tree)

    def render(self, closure: Closure) -> Rendered:
        """The source of the closure; its entry class is called `Model`.

        Raises:
            NameConflict: two definitions share a name, and the text of one does not allow to rename it.
            Unsupported: einops is used in a way that is not written out.
            NotByName: so is timm.
        """
        pieces = in_order(closure.entry, [self._pieces.of(closure, d) for d in closure.definitions])
        names = choose(closure.entry, pieces)
        written = [self._writer.write(piece, names) for piece in pieces]
        return _file([piece.definition.is_compound for piece in pieces], written)


def _file(compound: list[bool], written: list[Written]) -> Rendered:
    imports = set[str]().union(*(definition.imports for definition in written))
    imports, texts, layers = write_out(imports, [definition.text for definition in written])
    imports, others = stand_in(imports)
    layers = [*others, *layers]
    compounds = [True] * len(layers) + compound
    header = "\n".join(["from __future__ import annotations", "", *_import_lines(imports)]).rstrip()
    blocks = [*layers, *texts]
    known = [block.like if text == block.text else text for text, block in zip(texts, written, strict=True)]
    code = header + "".join(_spaced(zip(compounds, blocks, strict=True))) + "\n"
    return Rendered(code, (header, *layers, *known))


def _spaced(blocks: Iterable[tuple[bool, str]]) -> Iterator[str]:
    """Two empty lines around functions and classes, one below the imports, none among constants."""
    after_compound: bool | None = None
    for compound, block in blocks:
        yield "\n\n\n" if compound or after_compound else "\n\n" if after_compound is None else "\n"
        yield block
        after_compound = compound


def _import_lines(imports: set[str]) -> list[str]:
    """Sorted as isort does: the standard library first, `import` before `from`, one line a module."""
    plain = {line for line in imports if line.startswith("import ")}
    merged: dict[str, set[str]] = defaultdict(set)
    for line in imports - plain:
        module, _, names = line.removeprefix("from ").partition(" import ")
        merged[module].add(names)
    lines = [(line.split()[1], line) for line in plain]
    lines += [(module, f"from {module} import {', '.join(sorted(names))}") for module, names in merged.items()]
    found: list[str] = []
    for wanted in (True, False):
        group = sorted(line for module, line in lines if allowed.standard(module) is wanted)
        group.sort(key=lambda line: line.startswith("from"))
        found += [*([""] if group and found else []), *group]
    return found
