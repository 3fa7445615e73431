"""What lowering wrote beside Inductor's source: the expression of the reference that each value and launch is for."""

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
    """Where a value of a kernel comes from."""

    expression: str  # of the reference, "F.silu(x)"; "" if it is not known
    operator: str  # that it became, "silu"; "" if it is not known


def value_origins(comments: str) -> dict[str, Origin]:
    """Value of a kernel -> its origin, from what stands before it; origins in the order of their last values."""
    lines = [(source, names.split(", ")) for source, names in _MAPPING.findall(comments.partition(_VALUES)[2])]
    lines.sort(key=lambda line: max(int(re.sub(r"\D", "", name) or 0) for name in line[1]))
    return {name: _origin(source) for source, names in lines for name in names}


def _origin(source: str) -> Origin:
    expression, separator, operator = source.rpartition(", aten.")
    if not separator:
        expression, operator = source, ""
    # Of what a gradient needs, Inductor has the names of its nodes only.
    return Origin("" if expression.isidentifier() else expression, operator)


def call_sources(source: str) -> dict[int, tuple[str, ...]]:
    """Line of a launch, or of another operator's call, in Inductor's source -> the expressions that lead to it."""
    found: dict[int, tuple[str, ...]] = {}
    last: tuple[str, ...] = ()
    for number, line in enumerate(source.splitlines(), 1):
        if told := _CALLED_FOR.search(line):
            last = _expressions(told[1])
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
    """Of the expressions that lead to a launch, those that its kernel is a part of.

    `computed` are those of the kernel's `first` launch; another one has its own in their places.
    """
    if len(launch) != len(first):
        return []
    return [mine for mine, its in zip(launch, first, strict=True) if its in computed]
