"""Compute sizes that several lines of `forward` repeat, such as `(height + 3) // 4`, once and by a name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.transforms.workloads.axis_names import axis_word

from ..syntax.ast_tools import unused_name

_OFTEN = 3  # repetitions that are worth a line


def name_sizes(lines: Sequence[str], taken: set[str]) -> list[str]:
    """Add a line that computes each repeated size before its first use.

    `lines` may include comments. A size is named after an axis of a buffer that has it, "conv_height"; `taken` are the
    names in use.
    """
    found = list(lines)
    while (repeated := _repeated(found)) is not None:
        name = unused_name(_name(repeated, found), taken)
        first = next(number for number, line in enumerate(found) if repeated in map(ast.unparse, _sizes(line)))
        found = [_replaced(line, repeated, name) for line in found]
        if first and found[first - 1].startswith("#"):
            first -= 1
        found.insert(first, f"{name} = {repeated}")
    return found


def _repeated(lines: Sequence[str]) -> str | None:
    """The first division of sizes that is repeated often and contains no other such division."""
    if sum(line.count("//") for line in lines) < _OFTEN:
        return None
    counts = Counter(ast.unparse(size) for line in lines for size in _sizes(line))
    often = [size for size, times in counts.items() if times >= _OFTEN]
    return next((size for size in often if not any(other in size for other in often if other != size)), None)


def _sizes(line: str) -> Iterator[ast.expr]:
    """The divisions of sizes in a line, without one that the line itself names."""
    for statement in parse(line).body:
        for node in ast.walk(statement):
            is_named = isinstance(statement, ast.Assign) and statement.value is node
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and _is_size(node) and not is_named:
                yield node


def _is_size(node: ast.BinOp) -> bool:
    plain = (ast.BinOp, ast.operator, ast.Name, ast.Load, ast.Constant)
    return all(isinstance(part, plain) for part in ast.walk(node))


def _name(size: str, lines: Sequence[str]) -> str:
    for line in lines:
        match parse(line).body:
            case [ast.Assign(targets=[ast.Name(buffer)], value=ast.Call(args=[ast.Tuple(elts=shape), *_]))]:
                for axis, one in enumerate(shape):
                    if ast.unparse(one) == size:
                        return f"{buffer}_{axis_word(len(shape), axis)}"
    return "size"


def _replaced(line: str, size: str, name: str) -> str:
    """Replace `size` in the line, with the parentheses that it needs, by `name`; other parentheses stay."""
    found = [node for node in _sizes(line) if ast.unparse(node) == size]
    text = line.encode()
    for node in sorted(found, key=lambda node: -node.col_offset):
        before, after = text[: node.col_offset], text[node.end_col_offset :]
        if re.search(rb"(^|[^\w\])])\($", before) and after.startswith(b")"):
            before, after = before[:-1], after[1:]
        text = before + name.encode() + after
    return text.decode()
