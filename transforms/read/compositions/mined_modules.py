"""Mined modules that can be part of a composition: those that take and give one tensor of a shape that blocks know."""

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

MAX_CODE = 4_000  # characters: what is composed must still fit a row
_KINDS = {2: Kind.FLAT, 3: Kind.SEQUENCE, 4: Kind.IMAGE}
_OURS = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional"}
_NEW = "Part"  # what its class is called in a composition


@dataclass(frozen=True, slots=True)
class Mined:
    """A part, and the shape that it takes and gives."""

    id: str
    code: str  # defines `Part`
    init_args: str  # Python source, without brackets
    takes: Kind
    gives: Kind
    width: int  # features of what it gives
    source: SourceRef  # where it was mined
    licence: Licence


def part_of(probed: Probed) -> Mined | None:
    """None if it is too long, takes or gives several tensors, or binds names that the composition needs."""
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
    """Those of the modules that fit, sorted by id. Features in multiples of eight, as heads and groups need them."""
    found = (part_of(module) for module in modules)
    return tuple(sorted((part for part in found if part and part.width % 8 == 0), key=lambda part: part.id))


def _is_free(code: str) -> bool:
    """Whether the names that a composition binds mean the same in it, or nothing."""
    for node in ast.walk(parse(code)):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    meant = module + alias.name if alias.asname or module else bound
                    if _OURS.get(bound, meant) != meant:
                        return False
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) if name in (*_OURS, _NEW, "Composed"):
                return False
            case ast.Name(id=name, ctx=ast.Store()) if name in (*_OURS, _NEW, "Composed"):
                return False
    return True


def _renamed(code: str) -> str:
    """Its entry class under a new name, and all else as it was."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    lines = code.splitlines(keepends=True)
    places = [t.start for t in tokens if t.type == tokenize.NAME and t.string == ENTRY_POINT]
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + _NEW + line[column + len(ENTRY_POINT) :]
    return "".join(lines)
