"""Read the comments that lowering adds to Inductor's source: the reference's expression for each value and launch."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.parse_python import parse_expression

_VALUES = "# Source node to value mapping:\n"
_MAPPING = re.compile(r"^#   (.+) => (\w+(?:, \w+)*)$", re.MULTILINE)
_CALLED_FOR = re.compile(r"Source Nodes: \[(.*)\], Original ATen: ")
_CALL = re.compile(r"\.run\(|torch\.ops\.|extern_kernels\.")


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a kernel's value."""

    expression: str  # in the reference, "F.silu(x)"; "" if unknown
    operator: str  # that the expression became, "silu"; "" if unknown


def value_origins(comments: str) -> dict[str, Origin]:
    """Map a kernel's values to their origins; origins come in the order of their last values.

    `comments` stand before the kernel's definition.
    """
    lines = [(source, names.split(", ")) for source, names in _MAPPING.findall(comments.partition(_VALUES)[2])]
    lines.sort(key=lambda line: max(int(re.sub(r"\D", "", name) or 0) for name in line[1]))
    return {name: _origin(source) for source, names in lines for name in names}


def _origin(source: str) -> Origin:
    expression, separator, operator = source.rpartition(", aten.")
    if not separator:
        expression, operator = source, ""
    # For values of a backward, Inductor only knows names of graph nodes.
    return Origin("" if expression.isidentifier() else expression, operator)


def call_sources(source: str) -> dict[int, tuple[str, ...]]:
    """Map the lines of launches and operator calls in Inductor's source to the expressions that lead to them."""
    found: dict[int, tuple[str, ...]] = {}
    last: tuple[str, ...] = ()
    for number, line in enumerate(source.splitlines(), 1):
        if comment := _CALLED_FOR.search(line):
            last = _expressions(comment[1])
        elif _CALL.search(line):
            found[number] = last
    return found


def _expressions(listed: str) -> tuple[str, ...]:
    try:
        parsed = parse_expression(f"[{listed}]")
    except SyntaxError:
        return ()
    return tuple(map(ast.unparse, parsed.elts)) if isinstance(parsed, ast.List) else ()


def launched_for(launch: Sequence[str], first: Sequence[str], computed: Collection[str]) -> list[str]:
    """Select the expressions that a launch computes from those that lead to it.

    `first` are the expressions of the kernel's first launch; `computed` are those among them that the kernel computes.
    Another launch has its own expressions in the same places.
    """
    if len(launch) != len(first):
        return []
    return [own for own, other in zip(launch, first, strict=True) if other in computed]
