"""The library as text: the sources that a file needs for the functions that it calls."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kernelquarry.pipeline.schema import parse_python
from kernelquarry.transforms.tidy.kernel.mathematics import MATHEMATICS, NEEDS
from kernelquarry.transforms.tidy.syntax.print_code import LINE

from .pointwise import BINARY, PADS, UNARY, WHERE, binary_text, pad_text, unary_text

_FOLDER = Path(__file__).with_name("library")
_HELPER = re.compile(r"\b(\w+)_of\(")


@cache
def _sources() -> dict[str, str]:
    """Function or kernel -> its source."""
    found = {}
    for path in sorted(_FOLDER.glob("*.py")):
        text = path.read_text()
        lines = text.splitlines()
        for node in parse_python.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found[node.name] = "\n".join(lines[first - 1 : node.end_lineno]) + "\n"
    return found


FUNCTIONS = frozenset({*UNARY, *BINARY, *PADS, "where", *(name for name in _sources() if not name.endswith("_kernel"))})


@cache
def _blocks(name: str) -> tuple[str, tuple[str, ...]]:
    """The source of a function with its kernel, and the other functions that it calls."""
    if name in UNARY:
        return unary_text(name), ()
    if name in BINARY:
        return binary_text(name), ()
    if name in PADS:
        return pad_text(name), ()
    if name == "where":
        return WHERE, ()
    known = _sources()
    text = known[name]
    for kernel in dict.fromkeys(re.findall(r"\b\w+_kernel\b", text)):
        text += "\n\n" + known[kernel]
    called = [c for c in re.findall(r"\b(\w+)\(", known[name]) if c in FUNCTIONS and c != name]
    return text, tuple(dict.fromkeys(called))


def library_text(functions: Sequence[str]) -> str:
    """The functions, those that they call, and what their kernels call, each once, after a list of their names.

    The list is for models: without it they forget to define some of the functions that a long module calls.
    """
    ordered: dict[str, str] = {}
    pending = list(functions)
    while pending:
        name = pending.pop(0)
        if name not in ordered:
            ordered[name], called = _blocks(name)
            pending[:0] = called
    texts = list(ordered.values())
    helpers = dict.fromkeys(name for text in texts for name in _HELPER.findall(text) if name in MATHEMATICS)
    for name in list(helpers):
        helpers |= dict.fromkeys(NEEDS.get(name, ()))
    for name in helpers:
        text = MATHEMATICS[name].strip("\n") + "\n"
        for other in MATHEMATICS:
            text = re.sub(rf"(?<![\w.]){other}\(", f"{other}_of(", text)
        texts.append(text)
    names = ", ".join([*ordered, *(f"{name}_of" for name in helpers)])
    return "\n\n".join([_comment(f"Defined below: {names}"), *texts]) if texts else ""


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, LINE, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"
