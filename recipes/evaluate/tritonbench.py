"""Reader of TritonBench's problems from a checkout of its repository. Its text is never copied into our files.

data/TritonBench_G_v1.json             G: the instruction of each file (`comp_instru`)
data/TritonBench_T_v1.jsonl            T: one JSON array with the `description` of each file
data/TritonBench_T_comp_alpac_v1.json  T: the instructions for models, each of which contains a description
data/TritonBench_{G,T}_v1/<file>       the reference, a line of `#`, and tests that call the reference
"""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.parse_python import parse

_logger = logging.getLogger(__name__)
_SEPARATOR = "#" * 146
_DESCRIPTION = re.compile(r"Functional Description: (.*?)\s*Wrapper Entry Information:", re.DOTALL)
_PROMPT = """\
Use the Triton language to write a kernel and its wrapper according to this instruction:

{instruction}

The wrapper is a function of the name, the arguments and the results that the instruction gives it, not a method of a \
class. Answer with one block of Python that holds all imports, kernels and functions, and nothing that calls them.
"""


@dataclass(frozen=True, slots=True)
class TritonbenchProblem:
    """A function to write, its reference, and a test that calls it."""

    id: str  # the file's name without `.py`
    instruction: str
    reference: str  # source of the functions
    test: str  # functions `test_*` that call the functions and return their results
    level: str = ""

    @property
    def chat(self) -> list[Message]:
        return [Message(role="user", content=_PROMPT.format(instruction=self.instruction))]


def read_tritonbench(source: str, part: str) -> list[TritonbenchProblem]:
    """The problems of `part` ("G" or "T") by id. `source` is a checkout, or a folder that contains one.

    Malformed problems are left out, with a warning that names and counts them.

    Raises:
        UserError: there are no such problems, or the files have another format.
    """
    if not source:
        raise UserError("TritonBench is read from a checkout of github.com/thunlp/TritonBench: name it with --source")
    folders = sorted(Path(source).rglob(f"TritonBench_{part}_v1"))
    if not folders:
        raise UserError(f"{source}: no data/TritonBench_{part}_v1: give a checkout of TritonBench")
    folder = folders[0]
    try:
        instructions = dict(_instructions_of_g(folder.parent) if part == "G" else _instructions_of_t(folder.parent))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder.parent}: not TritonBench's data: {type(error).__name__}: {error}") from None
    names = sorted(name for name in instructions if (folder / name).is_file())
    problems, malformed = [], []
    for name in names:
        try:
            problems.append(_read_problem(folder / name, instructions[name]))
        except (SyntaxError, ValueError) as error:
            malformed.append(f"{name} ({error})")
    if malformed:
        _logger.warning("%d of %d problems are malformed and left out: %s", len(malformed), len(names), malformed)
    if not problems:
        raise UserError(f"{folder}: all {len(names)} problems are malformed: give a checkout of TritonBench")
    return problems


def _instructions_of_g(data: Path) -> Iterator[tuple[str, str]]:
    for entry in json.loads((data / "TritonBench_G_v1.json").read_text()):
        yield entry["file"], entry["comp_instru"].strip()


def _instructions_of_t(data: Path) -> Iterator[tuple[str, str]]:
    """Files with their instructions. An instruction names no file; like the benchmark, match by the description."""
    files = {_one_line(entry["description"]): entry["file"] for entry in _read_array(data / "TritonBench_T_v1.jsonl")}
    for entry in _read_array(data / "TritonBench_T_comp_alpac_v1.json"):
        description = _DESCRIPTION.search(entry["instruction"])
        if description and (file := files.get(_one_line(description[1]))):
            yield file, entry["instruction"].strip()


def _read_array(path: Path) -> list[dict[str, Any]]:
    array = json.loads(path.read_text())
    if not isinstance(array, list):
        raise ValueError(f"{path.name} is no array")
    return array


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _read_problem(path: Path, instruction: str) -> TritonbenchProblem:
    reference, separator, test = path.read_text().rpartition(_SEPARATOR)
    if not separator:
        raise ValueError("no line of # between the functions and their test")
    return TritonbenchProblem(path.stem, instruction, reference.strip() + "\n", _strip_test(reference, test))


def _strip_test(reference: str, test: str) -> str:
    """The test without calls of itself, and without copies of the reference, which would replace the candidate."""
    names = {node.name for node in parse(reference).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    tree = parse(test)
    tree.body = [node for node in tree.body if not _is_stripped(node, names)]
    return ast.unparse(tree) + "\n"


def _is_stripped(node: ast.stmt, names: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name in names
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    runs = any(isinstance(function, ast.Name) and function.id.startswith(("test_", "print")) for function in calls)
    return runs or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
