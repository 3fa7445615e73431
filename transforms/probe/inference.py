"""Switch a module to eval mode in its constructor: benchmarks such as KernelBench do not call `eval()`."""

from __future__ import annotations

import ast
import re

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import ENTRY_POINT

from .split_lines import lines_of

# Layers that behave differently in training, and code that mentions training.
_TRAINS = re.compile(r"batch_?norm|instance_?norm|spectral_?norm|dropout|drop_?path|rrelu|transformer|training", re.I)
_OWN_MODE = re.compile(r"\bdef (train|eval)\(")
_LINE = "self.eval()  # inference is what the kernels are for\n"


def for_inference(code: str) -> str:
    """`code` with `self.eval()` as the last line of the constructor of `Model`, if the mode may matter."""
    if not _TRAINS.search(code) or _OWN_MODE.search(code):
        return code
    classes = [node for node in parse(code).body if isinstance(node, ast.ClassDef) and node.name == ENTRY_POINT]
    if not classes or classes[-1].body[0].lineno == classes[-1].lineno:
        return code
    lines, body = lines_of(code), classes[-1].body
    made = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    if made:
        last = made[-1].body[-1]
        if isinstance(last, ast.Return) or made[-1].body[0].lineno == made[-1].lineno:
            return code
        return _inserted(lines, last.end_lineno or last.lineno, [" " * made[-1].body[0].col_offset + _LINE])
    docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    after = (body[0].end_lineno or 0) if docstring else min(_first_line(node) for node in body) - 1
    pad = " " * body[0].col_offset
    method = ["def __init__(self, *args, **kwargs):\n", "    super().__init__(*args, **kwargs)\n", f"    {_LINE}"]
    space = ["\n"] if docstring else []
    return _inserted(lines, after, [*space, *(pad + line for line in method), *([] if docstring else ["\n"])])


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _inserted(lines: list[str], after: int, new: list[str]) -> str:
    before = lines[:after]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    return "".join([*before, *new, *lines[after:]])
