"""Mined modules as parts of compositions: modules with one input and one output tensor of a kind that blocks know."""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Probed

from .builder import Kind

MAX_CODE = 4_000  # characters, so that the composition still fits a row
_KINDS = {2: Kind.FLAT, 3: Kind.SEQUENCE, 4: Kind.IMAGE}
_OURS = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional"}
_NEW = "Part"  # class name in a composition


@dataclass(frozen=True, slots=True)
class Mined:
    """A mined module as a part, with the kinds of its input and output."""

    id: str
    code: str  # defines `Part`
    init_args: str  # Python source, without brackets
    takes: Kind
    gives: Kind
    width: int  # features of the output
    source: SourceRef
    licence: Licence


def part_of(probed: Probed) -> Mined | None:
    """Make a part of a module; None if it is too long, has several inputs or outputs, or binds reserved names."""
    module = probed.module
    first, outputs = probed.workloads[0], json.loads(probed.outputs)
    shape = outputs.get("shape") if isinstance(outputs, dict) else None
    fits = len(first.tensors) == 1 and json.loads(first.args) == [{"tensor": 0}] and json.loads(first.kwargs) == {}
    if not (fits and isinstance(shape, list) and len(shape) in _KINDS and len(first.tensors[0].shape) in _KINDS):
        return None
    if len(module.code) > MAX_CODE or first.tensors[0].dtype != "float32" or not _is_free(module.code):
        return None
    gives = _KINDS[len(shape)]
    return Mined(
        id=module.id,
        code=_renamed(module.code),
        init_args=probed.init_args.strip().removeprefix("[").removesuffix("]"),
        takes=_KINDS[len(first.tensors[0].shape)],
        gives=gives,
        width=int(shape[gives.axis]),
        source=module.source,
        licence=module.licence,
    )


def parts(modules: Iterable[Probed]) -> tuple[Mined, ...]:
    """Parts from all suitable modules, sorted by id. Heads and groups need a multiple of eight features."""
    candidates = (part_of(module) for module in modules)
    return tuple(sorted((part for part in candidates if part and part.width % 8 == 0), key=lambda part: part.id))


def _is_free(code: str) -> bool:
    """True if the code does not bind the names that a composition uses, or binds them to the same things."""
    for node in ast.walk(parse(code)):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    target = module + alias.name if alias.asname or module else bound
                    if _OURS.get(bound, target) != target:
                        return False
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) if name in (*_OURS, _NEW, "Composed"):
                return False
            case ast.Name(id=name, ctx=ast.Store()) if name in (*_OURS, _NEW, "Composed"):
                return False
    return True


def _renamed(code: str) -> str:
    """Rename the entry class and change nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    lines = code.splitlines(keepends=True)
    places = [t.start for t in tokens if t.type == tokenize.NAME and t.string == ENTRY_POINT]
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + _NEW + line[column + len(ENTRY_POINT) :]
    return "".join(lines)
