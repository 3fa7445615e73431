"""Finds the entry class of an answer that uses another name than `ModelNew`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

_MOST_NAMES = 6
_CLASS = re.compile(r"(?:\b|\\n)class[ \t]+(\w+)[ \t]*\([^()\n]*Module\b")


def renamings(text: str) -> Iterator[tuple[str, str]]:
    """Module class names in an answer, last first, each with the answer in which this class is renamed to the entry."""
    names = dict.fromkeys(reversed(_CLASS.findall(text)))
    for name in list(names)[:_MOST_NAMES]:
        yield name, re.sub(rf"\b{name}\b", CANDIDATE_ENTRY_POINT, text)


def is_only_entry(tree: ast.Module) -> bool:
    """True if the entry is the only module class that launches kernels and that no other such class uses."""
    definitions = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    uses = {
        name: {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} - {name}
        for name, node in definitions.items()
    }
    launching = {name for name, node in definitions.items() if any(map(_is_jit, node.decorator_list))}
    while more := {name for name, used in uses.items() if used & launching} - launching:
        launching |= more
    classes = {name for name in launching if _has_forward(definitions[name])}
    return classes - set().union(*(uses[name] for name in classes)) == {CANDIDATE_ENTRY_POINT}


def _is_jit(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function).rpartition(".")[2] == "jit"


def _has_forward(node: ast.FunctionDef | ast.ClassDef) -> bool:
    members = node.body if isinstance(node, ast.ClassDef) else []
    return any(isinstance(member, ast.FunctionDef) and member.name == "forward" for member in members)
