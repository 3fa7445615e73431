"""The problems of a benchmark, from a folder or from the Hub, in the form that mined modules have.

A problem is a module called `Model` (KernelBench, robust-kbench), or a function named after its file (TritonBench-T),
which becomes the forward of one. What only makes inputs, tests or prints is left out.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import ENTRY_POINT
from kernelquarry.pipeline.schema.syntax import parse

from .ladder import clean_name

_RULE = re.compile(r"^#{20,}\s*$", re.MULTILINE)  # TritonBench: what follows are tests
_CODE, _NAME = ("code", "python_code", "output"), ("name", "problem_id", "file", "op_name")


@dataclass(frozen=True, slots=True)
class Source:
    """A problem as it was found."""

    name: str
    code: str


def read_problems(place: str) -> list[Source]:
    """All problems of a folder, of a JSON, JSONL or parquet file, or of "owner/name" on the Hub, sorted by name.

    Raises: UserError: there are none.
    """
    path = Path(place)
    if path.is_dir():
        found = [source for file in sorted(path.rglob("*")) if file.is_file() for source in _of_file(file, path)]
    elif path.is_file():
        found = list(_of_file(path, path.parent))
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", place):
        found = list(_of_hub(place))
    else:
        raise UserError(f"{place}: no folder, file or dataset of the Hub")
    problems = {name: Source(name, code) for name, text in found if (code := module_of(name, text))}
    if not problems:
        raise UserError(
            f"{place}: no problem found: a problem is a class {ENTRY_POINT}, or a function named as its file"
        )
    return [problems[name] for name in sorted(problems)]


def module_of(name: str, text: str) -> str:
    """The source of `Model` and of what it needs, "" if the text has no problem."""
    try:
        tree = parse(_RULE.split(text)[0])
    except (SyntaxError, ValueError, RecursionError):
        return ""
    defined = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    if not isinstance(defined.get(ENTRY_POINT), ast.ClassDef):
        function = defined.get(PurePosixPath(name).name)
        if not isinstance(function, ast.FunctionDef):
            return ""
        tree.body[tree.body.index(function)] = _as_module(function)
    return ast.unparse(_needed(tree))


def _as_module(function: ast.FunctionDef) -> ast.ClassDef:
    (entry,) = ast.parse(f"class {ENTRY_POINT}(torch.nn.Module):\n    pass").body
    assert isinstance(entry, ast.ClassDef)
    function.name = "forward"
    function.args.args.insert(0, ast.arg("self"))
    entry.body = [function]
    return ast.fix_missing_locations(entry)


def _needed(tree: ast.Module) -> ast.Module:
    """The entry class, and the statements that bind what it uses."""
    bound = [_binds(node) for node in tree.body]
    wanted, kept = {ENTRY_POINT}, set[int]()
    while more := {i for i, names in enumerate(bound) if i not in kept and names & wanted}:
        kept |= more
        wanted |= {n.id for i in more for n in ast.walk(tree.body[i]) if isinstance(n, ast.Name)}
    return ast.Module(body=[node for i, node in enumerate(tree.body) if i in kept], type_ignores=[])


def _binds(node: ast.stmt) -> set[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.partition(".")[0] for alias in names}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _of_file(file: Path, root: Path) -> Iterator[tuple[str, str]]:
    name = file.relative_to(root).with_suffix("").as_posix()
    match file.suffix:
        case ".py":
            yield clean_name(name), file.read_text(errors="replace")
        case ".json" | ".jsonl":
            yield from (_of_row(row, name) for row in _rows(file) if _has_code(row))
        case ".parquet":
            import pyarrow.parquet as pq

            yield from (_of_row(row, name) for row in pq.read_table(file).to_pylist() if _has_code(row))


def _rows(file: Path) -> list[Any]:
    text = file.read_text(errors="replace")
    try:
        rows = json.loads(text) if file.suffix == ".json" else [json.loads(line) for line in text.splitlines() if line]
    except ValueError as error:
        raise UserError(f"{file}: no JSON ({error})") from None
    return rows if isinstance(rows, list) else []


def _has_code(row: Any) -> bool:
    return isinstance(row, Mapping) and any(isinstance(row.get(column), str) for column in _CODE)


def _of_row(row: Mapping[str, Any], place: str) -> tuple[str, str]:
    code = next(row[column] for column in _CODE if isinstance(row.get(column), str))
    name = next((str(row[column]) for column in _NAME if row.get(column) is not None), "")
    level = f"level{row['level']}/" if "level" in row else f"{place}/"
    return clean_name(level + name.removesuffix(".py")), code


def _of_hub(name: str) -> Iterator[tuple[str, str]]:
    import datasets

    try:
        splits = datasets.load_dataset(name)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: not to be had from the Hub ({str(error).splitlines()[0]})") from None
    for split in sorted(splits):
        yield from (_of_row(row, split) for row in splits[split] if _has_code(row))
