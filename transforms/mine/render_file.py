"""Render a closure as one file: imports, then definitions in an order that runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from . import allowed
from .closure import Closure
from .einops.rewrite import rewrite_einops
from .naming import choose_names
from .order import order_pieces
from .piece import make_piece
from .resolve import Resolver
from .write_definition import write_piece


def render(resolver: Resolver, closure: Closure) -> str:
    """Write the source of a closure, in which the entry class is called `Model`.

    Raises:
        NameConflict: two definitions share a name, and neither can be renamed in its text.
        Unsupported: einops is used in a way that cannot be rewritten in torch.
    """
    pieces = order_pieces(closure.entry, [make_piece(resolver, closure, d) for d in closure.definitions])
    names = choose_names(closure.entry, pieces)
    written = [write_piece(resolver.tree, piece, names) for piece in pieces]
    imports = set[str]().union(*(definition.imports for definition in written))
    imports, texts, einops_definitions = rewrite_einops(imports, [definition.text for definition in written])
    blocks = [(True, text) for text in einops_definitions]
    blocks += [(piece.definition.is_compound, text) for piece, text in zip(pieces, texts, strict=True)]
    header = "\n".join(["from __future__ import annotations", "", *_import_lines(imports)]).rstrip()
    return header + "".join(_spaced(blocks)) + "\n"


def _spaced(blocks: Iterable[tuple[bool, str]]) -> Iterator[str]:
    """Put two empty lines around functions and classes, one below the imports, none among constants.

    Args:
        blocks: (True for a function or class, text) of each.
    """
    after_compound: bool | None = None
    for compound, block in blocks:
        yield "\n\n\n" if compound or after_compound else "\n\n" if after_compound is None else "\n"
        yield block
        after_compound = compound


def _import_lines(imports: set[str]) -> list[str]:
    """Import lines sorted as isort does: the standard library first, `import` before `from`, one line a module."""
    plain = {line for line in imports if line.startswith("import ")}
    merged: dict[str, set[str]] = defaultdict(set)
    for line in imports - plain:
        module, _, names = line.removeprefix("from ").partition(" import ")
        merged[module].add(names)
    lines = [(line.split()[1], line) for line in plain]
    lines += [(module, f"from {module} import {', '.join(sorted(names))}") for module, names in merged.items()]
    ordered: list[str] = []
    for is_standard in (True, False):
        group = sorted(line for module, line in lines if allowed.is_standard(module) is is_standard)
        group.sort(key=lambda line: line.startswith("from"))
        ordered += [*([""] if group and ordered else []), *group]
    return ordered
