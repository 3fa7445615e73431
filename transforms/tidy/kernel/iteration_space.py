"""The iteration space of a kernel: what Inductor's opening lines say, and the lines that we write instead."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ..read.inductor_source import NotTidied, RawKernel

PREFIXES = ("z", "y", "x", "r0_", "r1_")
_PREAMBLE = re.compile(r"([xyz]|r\d_)(numel|offset|index|mask|base)|r(index|offset|numel|base)|[XYZ]BLOCK|R\d?_?BLOCK")
_ALIASES = {
    "rindex": "r0_index",
    "roffset": "r0_offset",
    "rnumel": "r0_numel",
    "rbase": "r0_base",
    "RBLOCK": "R0_BLOCK",
}
_GRIDS = ("Grid1D", "Grid2D", "Grid3D", "Grid2DWithYZOverflow", "BatchMatmulGrid3D")


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the blocks that a kernel works on."""

    prefix: str  # Inductor's: "z", "y", "x" for programs, "r0_" for what is reduced
    size: int | None  # None if it is a run-time argument
    masked: bool  # blocks may reach over the end
    shape: str  # how its index lies in a block: "[:, None]", "" if it is alone
    block: int | None  # fixed by Inductor: 1 or the whole of a persistent reduction
    looped: bool  # walked in a loop

    @property
    def index(self) -> str:
        return f"{self.prefix}index"

    @property
    def mask(self) -> str:
        return f"{self.prefix}mask"

    @property
    def numel(self) -> str:
        return f"{self.prefix}numel"

    @property
    def is_reduced(self) -> bool:
        return self.prefix.startswith("r")


def split(kernel: RawKernel) -> tuple[list[Axis], list[ast.stmt]]:
    """The axes of a kernel, outermost first, and its body without the lines that set them up."""
    if kernel.grid not in _GRIDS:
        raise NotTidied(f"launch grid {kernel.grid}")
    preamble: dict[str, ast.expr] = {}
    looped: set[str] = set()
    body = _strip(kernel.function.body, preamble, looped)
    axes = [_axis(prefix, preamble, looped) for prefix in PREFIXES if f"{prefix}numel" in kernel.types]
    if any(axis.prefix == "r1_" for axis in axes):
        raise NotTidied("a reduction over two tiled axes")
    return axes, [_without_aliases(statement) for statement in body]


def _strip(body: list[ast.stmt], preamble: dict[str, ast.expr], looped: set[str]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=value) if _PREAMBLE.fullmatch(name):
                preamble.setdefault(name, value)
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value) if _PREAMBLE.fullmatch(name):
                preamble.setdefault(name, value)
            case ast.For(target=ast.Name(name), body=inner) if name.endswith("_offset"):
                looped.add(name.removesuffix("offset"))
                loop = ast.For(statement.target, statement.iter, _strip(inner, preamble, looped), [])
                kept.append(ast.copy_location(loop, statement))
            case _:
                kept.append(statement)
    return kept


def _axis(prefix: str, preamble: dict[str, ast.expr], looped: set[str]) -> Axis:
    size = preamble.get(f"{prefix}numel")
    block = preamble.get(f"{prefix.upper()}BLOCK")
    mask = preamble.get(f"{prefix}mask")
    index = preamble.get(f"{prefix}base", preamble.get(f"{prefix}index"))
    if index is None:
        raise NotTidied(f"no index for axis {prefix}")
    shapes = [node for node in ast.walk(index) if isinstance(node, ast.Subscript)]
    return Axis(
        prefix=prefix,
        size=ast.literal_eval(size) if size is not None else None,
        masked=mask is not None and isinstance(mask, ast.Compare),
        shape=_subscript(shapes[0]) if shapes else "",
        block=ast.literal_eval(block) if block is not None else None,
        looped=prefix in looped,
    )


def _subscript(node: ast.Subscript) -> str:
    return ast.unparse(ast.Subscript(ast.Name("_", ast.Load()), node.slice, ast.Load()))[1:]


class _Aliases(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(_ALIASES.get(node.id, node.id), node.ctx)


def _without_aliases(statement: ast.stmt) -> ast.stmt:
    return _Aliases().visit(statement)
