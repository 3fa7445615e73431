"""TritonBench's problems, from a checkout of its repository. Its text is read, and never kept.

data/TritonBench_G_v1.json             G: for each file what is asked for (`comp_instru`, `simp_instru`)
data/TritonBench_T_v1.jsonl            T: one JSON array, for each file its `description`
data/TritonBench_T_comp_alpac_v1.json  T: the instructions that models are given, each with a description in it
data/TritonBench_{G,T}_v1/<file>       the reference, a line of `#`, and tests that call it

Its own score of an execution compares what two scripts print, which is nothing: see `scripted.py`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.parse_python import parse

PARTS = ("G", "T")
_LINE = "#" * 146
_SAID = re.compile(r"Functional Description: (.*?)\s*Wrapper Entry Information:", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Script:
    """A file of the benchmark, taken apart."""

    id: str  # the file's name without `.py`
    instruction: str
    reference: str  # source of the functions
    test: str  # functions `test_*` that call them and return what they gave


def read_tritonbench(source: str, part: str) -> list[Script]:
    """By id. `source` is a checkout, or a folder that holds one.

    Raises:
        UserError: it holds no such problems, or files of another form.
    """
    if not source:
        raise UserError("TritonBench is read from a checkout of github.com/thunlp/TritonBench: name it with --source")
    folders = sorted(Path(source).rglob(f"TritonBench_{part}_v1"))
    if not folders:
        raise UserError(f"{source}: no data/TritonBench_{part}_v1: give a checkout of TritonBench")
    folder = folders[0]
    try:
        asked = dict(_of_g(folder.parent) if part == "G" else _of_t(folder.parent))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder.parent}: not TritonBench's data: {type(error).__name__}: {error}") from None
    return sorted(
        (_script(folder / name, instruction) for name, instruction in asked.items() if (folder / name).is_file()),
        key=lambda script: script.id,
    )


def _of_g(data: Path) -> Iterator[tuple[str, str]]:
    for entry in json.loads((data / "TritonBench_G_v1.json").read_text()):
        yield entry["file"], entry["comp_instru"].strip()


def _of_t(data: Path) -> Iterator[tuple[str, str]]:
    """Instructions name no file: they are found by the description, as the benchmark itself does."""
    files = {_one_line(entry["description"]): entry["file"] for entry in _array(data / "TritonBench_T_v1.jsonl")}
    for entry in _array(data / "TritonBench_T_comp_alpac_v1.json"):
        said = _SAID.search(entry["instruction"])
        if said and (file := files.get(_one_line(said[1]))):
            yield file, entry["instruction"].strip()


def _array(path: Path) -> list[dict[str, Any]]:
    found = json.loads(path.read_text())
    if not isinstance(found, list):
        raise ValueError(f"{path.name} is no array")
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _script(path: Path, instruction: str) -> Script:
    reference, line, test = path.read_text().rpartition(_LINE)
    if not line:
        raise UserError(f"{path}: it has no line that parts the functions from their test")
    try:
        return Script(path.stem, instruction, reference.strip() + "\n", _test(reference, test))
    except SyntaxError as error:
        raise UserError(f"{path}: {error}") from None


def _test(reference: str, test: str) -> str:
    """The test without what would run or replace a candidate: calls of itself, and the reference's own functions."""
    named = {node.name for node in parse(reference).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    tree = parse(test)
    tree.body = [node for node in tree.body if not _is_left_out(node, named)]
    return ast.unparse(tree) + "\n"


def _is_left_out(node: ast.stmt, named: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name in named
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    runs = any(isinstance(function, ast.Name) and function.id.startswith(("test_", "print")) for function in calls)
    return runs or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
