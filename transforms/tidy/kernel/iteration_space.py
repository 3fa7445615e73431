"""The iteration space of a kernel: read the axes from Inductor's opening lines and drop those lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ..read.inductor_source import RawKernel
from ..refusals import NotTidied
from ..syntax.ast_tools import calls_of, rename

_PREFIXES = ("z", "y", "x", "r0_", "r1_")
_PREAMBLE = re.compile(r"([xyz]|r\d_)(numel|offset|index|mask|base)|r(index|offset|numel|base)|[XYZ]BLOCK|R\d?_?BLOCK")
_ALIASES = {f"r{part}": f"r0_{part}" for part in ("index", "offset", "numel", "base")} | {"RBLOCK": "R0_BLOCK"}
_PLANE = ("[:, None]", "[None, :]")  # shapes of the indices of the last two axes; a program has one index of the others
_GRIDS = ("Grid1D", "Grid2D", "Grid3D", "Grid2DWithYZOverflow", "BatchMatmulGrid3D")


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the blocks that a kernel works on."""

    prefix: str  # Inductor's: "z", "y", "x" for programs, "r0_" for the reduced axis
    size: int | None  # None if it is a run-time argument
    masked: bool  # blocks may reach over the end
    shape: str  # subscript that lays its index out in a block: "[:, None]"; "" for the only axis
    block: int | None  # block size fixed by Inductor: 1, or all of a persistent reduction
    looped: bool  # the kernel loops over its blocks
    passed: bool = False  # its size is an argument, though it is known

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
    def block_name(self) -> str:
        return f"{self.prefix.upper()}BLOCK"

    @property
    def limit(self) -> str:
        """The size as source: a number or a parameter."""
        return self.numel if self.size is None or self.passed else str(self.size)

    @property
    def is_reduced(self) -> bool:
        return self.prefix.startswith("r")


def split_axes(kernel: RawKernel, passed: Collection[str] = ()) -> tuple[list[Axis], list[ast.stmt]]:
    """The axes of a kernel, outermost first, and its body without the lines that set them up.

    `passed` names the axes whose known sizes are arguments.

    Raises:
        NotTidied: the launch grid is unknown, or two axes are reduced.
    """
    if kernel.grid not in _GRIDS:
        raise NotTidied(f"launch grid {kernel.grid}")
    preamble: dict[str, ast.expr] = {}
    looped: set[str] = set()
    body = _strip(kernel.function.body, preamble, looped)
    prefixes = [prefix for prefix in _PREFIXES if f"{prefix}numel" in kernel.types]
    axes = [replace(_axis(prefix, preamble, looped), passed=prefix in passed) for prefix in prefixes]
    if any(axis.prefix == "r1_" for axis in axes):
        raise NotTidied("a reduction over two tiled axes")
    outer = len(axes) - len(_PLANE)
    if outer > 0 and not is_matmul(body):
        planes = [replace(axis, shape=shape) for axis, shape in zip(axes[outer:], _PLANE, strict=True)]
        axes = [replace(axis, masked=False, block=1, shape="") for axis in axes[:outer]] + planes
    return axes, [rename(statement, _ALIASES) for statement in body]


def is_matmul(body: Iterable[ast.stmt]) -> bool:
    """True for the body of a kernel that multiplies blocks."""
    return any(calls_of("tl.dot", statement) for statement in body)


def _strip(body: list[ast.stmt], preamble: dict[str, ast.expr], looped: set[str]) -> list[ast.stmt]:
    """The body without the preamble; fills `preamble` (name -> value) and `looped` (prefixes)."""
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(name)], value=value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ) if _PREAMBLE.fullmatch(name):
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
    index = preamble.get(f"{prefix}base", preamble.get(f"{prefix}index"))
    if index is None:
        raise NotTidied(f"no index for axis {prefix}")
    layouts = [node for node in ast.walk(index) if isinstance(node, ast.Subscript)]
    return Axis(
        prefix=prefix,
        size=ast.literal_eval(size) if size is not None else None,
        masked=isinstance(preamble.get(f"{prefix}mask"), ast.Compare),
        shape=ast.unparse(ast.Subscript(ast.Name("_"), layouts[0].slice))[1:] if layouts else "",
        block=ast.literal_eval(block) if block is not None else None,
        looped=prefix in looped,
    )
