"""Writes a closure as one file: imports, then definitions in an order that runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from . import allowed
from .closure import Closure
from .einops.write_out import write_out
from .naming import choose
from .order import in_order
from .resolve import Resolver
from .write import Writer

BETWEEN_DEFINITIONS = "\n\n\n"


def render(resolver: Resolver, closure: Closure) -> str:
    """The source of the closure; its entry class is called `Model`.

    Raises:
        NameConflict: two definitions share a name, and the text of one does not allow to rename it.
        Unsupported: einops is used in a way that is not written out.
    """
    ordered = in_order(resolver, closure)
    names = choose(resolver, closure, ordered)
    imports: set[str] = set()
    blocks: list[tuple[bool, str]] = []
    for definition in ordered:
        writer = Writer(resolver, closure, definition, names)
        blocks.append((definition.is_compound, writer.write()))
        imports |= writer.imports
    imports, texts, layers = write_out(imports, [text for _, text in blocks])
    compounds = [True] * len(layers) + [compound for compound, _ in blocks]
    header = "\n".join(["from __future__ import annotations", "", *_import_lines(imports)]).rstrip()
    return header + "".join(_spaced(zip(compounds, [*layers, *texts], strict=True))) + "\n"


def _spaced(blocks: Iterable[tuple[bool, str]]) -> Iterator[str]:
    """Two empty lines around functions and classes, one below the imports, none among constants."""
    after_compound: bool | None = None
    for compound, block in blocks:
        yield BETWEEN_DEFINITIONS if compound or after_compound else "\n\n" if after_compound is None else "\n"
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
