"""One of Inductor's kernels as a plain `triton.jit` function, and how to launch it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kernelquarry.pipeline.schema.parse_python import parse

from ..read.inductor_source import RawKernel
from . import matmul, passes, tuning_options
from .block_sizes import Launch, choose
from .comments import Commented
from .iteration_space import Axis, split
from .kernel_names import Names, operator_names
from .simplify import Simplifier
from .triton_functions import parsed


@dataclass(frozen=True, slots=True)
class Kernel:
    function: ast.FunctionDef
    parameters: tuple[str, ...]  # Inductor's, of those that are passed on, in order
    launch: Launch
    is_tuned: bool = False  # it has its blocks and warps from its decorator

    def block(self, name: str) -> str:
        """Of a launch's grid."""
        return f"meta[{name!r}]" if self.is_tuned else str(self.launch.blocks[name])

    def grid(self, programs: str) -> str:
        return f"lambda meta: {programs}" if self.is_tuned else programs

    @property
    def options(self) -> list[str]:
        """Of a launch, behind its arguments."""
        blocks = [f"{name}={size}" for name, size in self.launch.blocks.items()]
        return [] if self.is_tuned else [*blocks, f"num_warps={self.launch.warps}"]


# What the axes of a kernel are called, and the block sizes along them.
_POINTWISE = {"x": ("offset", "BLOCK")}
_GRID = {"z": ("plane", "BLOCK_PLANES"), "y": ("row", "BLOCK_ROWS"), "x": ("col", "BLOCK_COLS")}
_REDUCTION = {
    "z": ("plane", "BLOCK_PLANES"), "y": ("group", "BLOCK_GROUPS"), "x": ("row", "BLOCK_ROWS"),
    "r0_": ("col", "BLOCK_COLS"),
}  # fmt: skip
_MATMUL = {"z": ("batch", ""), "y": ("m", "BLOCK_M"), "x": ("n", "BLOCK_N"), "r0_": ("k", "BLOCK_K")}


def tidy_kernel(
    raw: RawKernel,
    name: str,
    pointers: Mapping[str, str],
    sizes: Mapping[str, str],
    same: Mapping[str, str] = MappingProxyType({}),
    autotuned: bool = False,
) -> Kernel:
    """`pointers` and `sizes` name the parameters by their roles in the first launch; `same` says which sizes are others
    in every launch."""
    axes, body = split(raw)
    simple = Simplifier(raw, axes, body)
    body = passes.without_dead_code(simple.body)
    if simple.is_matmul:
        body = matmul.lay_out(body, axes[-1], simple.values)
    body = passes.accumulate(body, simple.loads)
    body = passes.without_dead_code(body)
    assigned = {name: simple.assigned[name] for name in simple.assigned}
    body = passes.absorb(passes.inline(body, lambda other: assigned.get(other, 1)))
    body = passes.plain_padding(passes.plain_comparisons(body, simple.is_plain_integer), raw.types)
    words = _MATMUL if simple.is_matmul else _vocabulary(axes)
    launch = choose(raw, axes, words, simple.is_matmul)
    body = _with_loop_indices(body, axes, launch, simple.is_matmul)
    preamble = _preamble(axes, words, launch, simple.is_matmul, passes.uses(body))
    body = [*preamble, *body]
    used = passes.uses(body)
    same = {one: other for one, other in same.items() if used[one] and used[other]}
    parameters = [parameter for parameter in raw.parameters if used[parameter] and parameter not in same]
    names = Names(raw, axes, words, pointers, sizes, simple.values, same)
    body = Commented(raw.sources).body(names.rename(body))
    arguments = [ast.arg(names.parameter(parameter)) for parameter in parameters]
    arguments += [ast.arg(block, parsed("tl.constexpr")) for block in launch.blocks]
    tuned = tuning_options.configurations(raw, axes, launch, simple.is_matmul) if autotuned else ()
    key = [names.parameter(parameter) for parameter in parameters if parameter not in pointers]
    function = ast.FunctionDef(
        name=name,
        args=ast.arguments([], arguments, None, [], [], None, []),
        body=[ast.Expr(ast.Constant(_docstring(raw))), *body],
        decorator_list=[*([tuning_options.decorator(tuned, key)] if tuned else []), parsed("triton.jit")],
        returns=None,
        lineno=0,
    )
    return Kernel(function, tuple(parameters), launch, bool(tuned))


def same_sizes(launches: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Size -> the first other one that has its value in every launch; how many elements an axis has is said last."""
    first: dict[tuple[str, ...], str] = {}
    for size in sorted(launches[0], key=lambda size: size.endswith("numel")):
        first.setdefault(tuple(launch[size] for launch in launches), size)
    others = {size: first[tuple(launch[size] for launch in launches)] for size in launches[0]}
    return {size: other for size, other in others.items() if size != other}


def _vocabulary(axes: Sequence[Axis]) -> Mapping[str, tuple[str, str]]:
    if any(axis.is_reduced for axis in axes):
        return _REDUCTION
    return _POINTWISE if len(axes) == 1 else _GRID


def _docstring(raw: RawKernel) -> str:
    return ", ".join(operator_names(raw.operators)) or "copy"


def _preamble(
    axes: Sequence[Axis], words: Mapping[str, tuple[str, str]], launch: Launch, is_matmul: bool, used: Mapping[str, int]
) -> list[ast.stmt]:
    lines: list[str] = []
    for axis in axes:
        shape = _shape(axis, is_matmul)
        block = launch.names.get(axis.prefix, "")
        span = f"tl.arange(0, {block})"
        if axis.looped or not (used[axis.index] or used[axis.mask]):  # or it is one of an axis of 1
            continue
        if axis.is_reduced:
            lines.append(f"{axis.index} = {span}{shape}")
        elif not block:
            lines.append(f"{axis.index} = tl.program_id({launch.programs.index(axis.prefix)})")
        else:
            start = f"tl.program_id({launch.programs.index(axis.prefix)}) * {block}"
            lines.append(f"{axis.index} = {start} + {span}{shape}")
        if used[axis.mask]:
            size = axis.size if axis.size is not None else axis.numel
            lines.append(f"{axis.mask} = {axis.index} < {size}")
    return [statement for line in lines for statement in parse(line).body]


def _with_loop_indices(
    body: Sequence[ast.stmt], axes: Sequence[Axis], launch: Launch, is_matmul: bool
) -> list[ast.stmt]:
    """Loops over the reduced axis, with the index and the mask that they start with."""
    looped = [axis for axis in axes if axis.looped]
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):
            (axis,) = looped
            block = launch.names[axis.prefix]
            lines = [f"{axis.index} = {axis.prefix}offset + tl.arange(0, {block}){_shape(axis, is_matmul)}"]
            size = axis.size if axis.size is not None else axis.numel
            if passes.uses(statement.body)[axis.mask]:
                lines.append(f"{axis.mask} = {axis.index} < {size}")
            inner = [*parse("\n".join(lines)).body, *statement.body]
            steps = parsed(f"range(0, {size}, {block})")
            statement = ast.For(statement.target, steps, inner, [], lineno=0)
        result.append(statement)
    return result


def _shape(axis: Axis, is_matmul: bool) -> str:
    if is_matmul:
        return {"y": "[:, None]", "x": "[None, :]"}.get(axis.prefix, "")
    return "" if axis.shape == "[:]" else axis.shape
