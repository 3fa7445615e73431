"""Read the problems of a benchmark from a folder, a file or the Hub, in the form of mined modules.

A problem is one of these:

- a class `Model` (KernelBench, robust-kbench);
- a function named after its file (TritonBench-T), which becomes the forward of a `Model`;
- the call of an operator (BackendBench, see `traces`);
- a file of Triton kernels (TritonBench-G), which is compared by its text alone.

Statements that only make inputs, test or print are left out.
"""

from __future__ import annotations

import ast
import json
import re
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import ENTRY_POINT

from .ladder import clean_name
from .own_inputs import with_small_arguments, with_small_inputs
from .traces import problems_of, read_trace

_RULE = re.compile(r"^#{20,}\s*$", re.MULTILINE)  # TritonBench: the tests follow this line
_LEVEL = re.compile(r"level\d+/\d+_.+\.py")  # KernelBench
_SINGLE = re.compile(r"(^|/)level_?1/")  # KernelBench's level of single operators, however many its spelling needs
_FORWARD = "func_forward.py"  # robust-kbench: one for each task, its folders also hold files that are no problems
_CODE, _NAME = ("code", "python_code", "output"), ("name", "problem_id", "file", "op_name")


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a problem."""

    name: str
    code: str
    own_inputs: tuple[str, ...] = ()  # versions of the file with small inputs, see `own_inputs`
    own_arguments: str = ""  # the file without its inputs, with small constructor arguments
    runs: bool = True  # False for kernels, which are compared by their text alone

    @property
    def is_single(self) -> bool:
        """True if the benchmark counts the problem among its single operators."""
        return _SINGLE.search(self.name) is not None


def read_problems(place: str) -> list[Source]:
    """All problems of a folder, of a JSON, JSONL or parquet file, or of "owner/name" on the Hub, sorted by name.

    Raises: UserError: there are none.
    """
    path = Path(place)
    if path.is_dir():
        found = list(_in_folder(path))
    elif path.is_file():
        found = list(_in_file(path, path.parent))
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", place):
        found = list(_in_dataset(place))
    else:
        raise UserError(f"{place}: no folder, file or dataset of the Hub")
    # Benchmarks list a problem in several files. The same code with other constructor arguments is another problem.
    problems: dict[tuple[str, ...], Source] = {}
    for name, text in sorted(found):
        if code := kernels_of(text):
            problems.setdefault((code,), Source(name, code, runs=False))
        elif code := module_of(name, text):
            own_inputs = with_small_inputs(text)
            problems.setdefault((code, *own_inputs), Source(name, code, own_inputs, with_small_arguments(text)))
    if not problems:
        raise UserError(
            f"{place}: no problem found: a problem is a class {ENTRY_POINT}, or a function named as its file"
        )
    return sorted(problems.values(), key=lambda problem: problem.name)


def module_of(name: str, text: str) -> str:
    """The source of `Model` and of the statements that it needs; "" if the text has no problem."""
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
    try:
        return ast.unparse(_needed(tree))
    except (SyntaxError, RecursionError):
        return ""


def kernels_of(text: str) -> str:
    """The source of Triton kernels without its tests; "" if there are no kernels."""
    text = _RULE.split(text)[0]
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    decorators = (
        ast.unparse(d) for node in tree.body if isinstance(node, ast.FunctionDef) for d in node.decorator_list
    )
    return text if any(name.endswith("triton.jit") for name in decorators) else ""


def _as_module(function: ast.FunctionDef) -> ast.ClassDef:
    (entry,) = parse(f"class {ENTRY_POINT}(torch.nn.Module):\n    pass").body
    assert isinstance(entry, ast.ClassDef)
    function.name = "forward"
    function.args.args.insert(0, ast.arg("self"))
    entry.body = [function]
    return ast.fix_missing_locations(entry)


def _needed(tree: ast.Module) -> ast.Module:
    """The entry class and the statements that bind names it uses, directly or indirectly."""
    names = [_global_names(node) for node in tree.body]
    wanted, kept = {ENTRY_POINT}, set[int]()
    while more := {i for i, (bound, _) in enumerate(names) if i not in kept and bound & wanted}:
        kept |= more
        wanted |= {name for i in more for name in names[i][1]}
    return ast.Module(body=[node for i, node in enumerate(tree.body) if i in kept], type_ignores=[])


def _global_names(node: ast.stmt) -> tuple[set[str], set[str]]:
    """(global names that a top-level statement binds, global names that it reads).

    A parameter or local variable is neither, even if a global has its name: `in_channels` of a constructor does not
    read the file's `in_channels = 64`.

    Raises: SyntaxError: the statement does not compile.
    """
    top = symtable.symtable(ast.unparse(node), "statement", "exec")
    bound = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    read = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    inner = list(top.get_children())
    for table in inner:  # grows during the loop
        inner += table.get_children()
        read |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return bound, read


def _in_folder(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of the problem files of a known benchmark, or of every file of another folder."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    if levels := [file for file in files if _LEVEL.fullmatch(f"{file.parent.name}/{file.name}")]:
        for file in levels:
            yield from _in_file(file, file.parent.parent)
        return
    for file in [file for file in files if file.name == _FORWARD] or files:
        yield from _in_file(file, path)


def _in_file(file: Path, root: Path) -> Iterator[tuple[str, str]]:
    name = file.relative_to(root).with_suffix("").as_posix()
    match file.suffix:
        case ".py":
            yield clean_name(name), file.read_text(errors="replace")
        case ".json" | ".jsonl":
            yield from _in_rows(_rows(file), name)
        case ".parquet":
            import pyarrow.parquet as pq

            yield from _in_rows(pq.read_table(file).to_pylist(), name)
        case ".txt":
            yield from problems_of(read_trace(file.read_text(errors="replace")))


def _rows(file: Path) -> list[Any]:
    text = file.read_text(errors="replace")
    try:
        # TritonBench_T_v1.jsonl is a JSON list.
        whole = file.suffix == ".json" or text.lstrip().startswith("[")
        rows = json.loads(text) if whole else [json.loads(line) for line in text.splitlines() if line]
    except ValueError as error:
        raise UserError(f"{file}: no JSON ({error})") from None
    return rows if isinstance(rows, list) else []


def _in_rows(rows: Iterable[Any], place: str) -> Iterator[tuple[str, str]]:
    rows = [row for row in rows if isinstance(row, Mapping)]
    for number, row in enumerate(rows):
        code = next((row[column] for column in _CODE if isinstance(row.get(column), str)), None)
        if code is not None:
            name = next((str(row[column]) for column in _NAME if row.get(column) is not None), str(number))
            level = f"level{row['level']}" if "level" in row else place
            yield clean_name(f"{level}/{name.removesuffix('.py')}"), code
    yield from problems_of((row["op_name"], row["args"]) for row in rows if {"op_name", "args"} <= row.keys())


def _in_dataset(name: str) -> Iterator[tuple[str, str]]:
    import datasets

    try:
        splits = datasets.load_dataset(name)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: not to be had from the Hub ({str(error).splitlines()[0]})") from None
    for split in sorted(splits):
        yield from _in_rows(splits[split], split)
