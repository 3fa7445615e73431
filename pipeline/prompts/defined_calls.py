"""Definitions of the functions and layers of PyTorch that a module calls, for prompts."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from kernelquarry.pipeline.schema.parse_python import parse

_FILE = Path(__file__).with_name("definitions.toml")
_OWN = ("self", "cls")  # whose attributes are the module's, not PyTorch's


def definitions(python_code: str) -> Mapping[str, str]:
    """Name -> definition of each function and layer in a module's source that `definitions.toml` defines.

    Names are those of the source, in their order. A source that does not parse has none.
    """
    try:
        tree = parse(python_code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    known, found = _known(), dict[str, str]()
    for name in _called(tree):
        if name in known and known[name] not in found.values():
            found[name] = known[name]
    return found


def _called(tree: ast.Module) -> Iterator[str]:
    """Names that a module calls, and classes that it names, without methods and layers of its own."""
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch")
        for alias in node.names
    }
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))]
    for node in sorted(nodes, key=lambda each: (each.end_lineno, each.end_col_offset)):
        if isinstance(node, ast.Name):
            yield imported.get(node.id, "")
        elif not (isinstance(node.value, ast.Name) and node.value.id in _OWN):
            yield node.attr


@cache
def _known() -> Mapping[str, str]:
    table = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: text for names, text in table.items() for name in names.split()}
