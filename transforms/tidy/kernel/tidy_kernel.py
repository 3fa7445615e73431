"""Rewrite one of Inductor's kernels as a plain `triton.jit` function."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kernelquarry.pipeline.schema.parse_python import parse

from ..read.inductor_source import RawKernel
from ..syntax.algebra import Polynomial, render
from ..syntax.ast_tools import tuple_text, with_body
from . import matmul, passes
from .addresses import COMPUTED, Addresses
from .choices import decided_choices
from .comments import Commenter
from .iteration_space import Axis, split_axes
from .kernel_names import KernelNames, operator_names
from .launch_options import Launch, Vocabulary, autotune_decorator, choose_launch, tuned_launches
from .named_parts import with_named_parts
from .simplify import Simplifier
from .triton_functions import parsed


@dataclass(frozen=True, slots=True)
class Kernel:
    """A tidied kernel."""

    function: ast.FunctionDef
    parameters: tuple[str, ...]  # Inductor's names of the parameters that are left, in order
    launch: Launch
    is_tuned: bool = False  # its decorator sets its blocks and warps

    def grid(self, sizes: Sequence[str]) -> str:
        """The grid of a launch; `sizes` are the sizes of the axes in `launch.programs`."""
        programs = []
        for prefix, size in zip(self.launch.programs, sizes, strict=True):
            name = self.launch.names.get(prefix)
            block = f"meta[{name!r}]" if self.is_tuned else str(self.launch.blocks.get(name or ""))
            programs.append(f"triton.cdiv({size}, {block})" if name else size)
        return f"lambda meta: {tuple_text(programs)}" if self.is_tuned else tuple_text(programs)

    @property
    def options(self) -> list[str]:
        """Keyword arguments of a launch."""
        blocks = [f"{name}={size}" for name, size in self.launch.blocks.items()]
        return [] if self.is_tuned else [*blocks, f"num_warps={self.launch.warps}"]


# Names of the axes of a kernel and of the block sizes along them.
_POINTWISE = {"x": ("offset", "BLOCK")}
_GRID = {"z": ("plane", ""), "y": ("row", "BLOCK_ROWS"), "x": ("col", "BLOCK_COLS")}
_REDUCTION = {
    "z": ("outer", ""), "y": ("plane", ""), "x": ("row", "BLOCK_ROWS"),
    "r0_": ("col", "BLOCK_COLS"),
}  # fmt: skip
_MATMUL = {"z": ("batch", ""), "y": ("m", "BLOCK_M"), "x": ("n", "BLOCK_N"), "r0_": ("k", "BLOCK_K")}


def tidy_kernel(
    raw: RawKernel,
    name: str,
    pointers: Mapping[str, str],
    sizes: Mapping[str, str],
    same: Mapping[str, str] = MappingProxyType({}),
    passed: Collection[str] = (),
    related: Mapping[str, Polynomial] = MappingProxyType({}),
    autotuned: bool = False,
) -> Kernel:
    """Tidy one kernel.

    `pointers` and `sizes` name the parameters by their roles in the first launch. `same` maps a size to another one
    that has its value in every launch. `passed` names the axes whose known sizes are arguments all the same.
    `related` are sizes in terms of others; the kernel computes those that begin with `COMPUTED`.

    Raises:
        NotTidied: the kernel has an unknown form.
    """
    axes, body = split_axes(raw, passed)
    simple = Simplifier(raw, axes, body)
    is_matmul = simple.is_matmul
    made = {name: value for name, value in related.items() if name.startswith(COMPUTED)}
    computed = [ast.Assign([ast.Name(name, ast.Store())], render(value), lineno=0) for name, value in made.items()]
    body = passes.without_dead_code([*computed, *Addresses(related, simple.is_one_integer).rewrite(simple.body)])
    if is_matmul:
        body = matmul.lay_out(body, axes[-1], simple.values)
    body = decided_choices(passes.accumulate(body, simple.loads), simple.is_plain_integer)
    body = with_named_parts(passes.without_dead_code(body), simple.is_set_once)
    body = passes.absorb(passes.inline(body, lambda other: simple.assigned.get(other, 1)))
    body = passes.plain_padding(passes.plain_comparisons(body, simple.is_plain_integer), raw.types)
    words = _MATMUL if is_matmul else _vocabulary(axes)
    launch = choose_launch(raw, axes, words, is_matmul)
    body = [_with_loop_index(s, axes[-1], launch, is_matmul) if isinstance(s, ast.For) else s for s in body]
    body = [*_preamble(axes, launch, is_matmul, passes.uses(body)), *body]
    used = passes.uses(body)
    same = {one: other for one, other in same.items() if used[one] and used[other]}
    parameters = [parameter for parameter in raw.parameters if used[parameter] and parameter not in same]
    names = KernelNames(raw, axes, words, pointers, sizes, simple.values, same)
    body = Commenter(raw.sources).body(names.rename(body))
    arguments = [ast.arg(names.parameter(parameter)) for parameter in parameters]
    arguments += [ast.arg(block, parsed("tl.constexpr")) for block in launch.blocks]
    tuned = tuned_launches(raw, axes, launch, is_matmul) if autotuned else ()
    key = [names.parameter(parameter) for parameter in parameters if parameter not in pointers]
    docstring = ", ".join(operator_names(raw.operators)) or "copy"
    function = ast.FunctionDef(
        name=name,
        args=ast.arguments([], arguments, None, [], [], None, []),
        body=[ast.Expr(ast.Constant(docstring)), *body],
        decorator_list=[*([autotune_decorator(tuned, key)] if tuned else []), parsed("triton.jit")],
        returns=None,
        lineno=0,
    )
    return Kernel(function, tuple(parameters), launch, bool(tuned))


def same_sizes(launches: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Map each size to the first other one with its value in every launch; sizes of axes come last."""
    first: dict[tuple[str, ...], str] = {}
    for size in sorted(launches[0], key=lambda size: size.endswith("numel")):
        first.setdefault(tuple(launch[size] for launch in launches), size)
    others = {size: first[tuple(launch[size] for launch in launches)] for size in launches[0]}
    return {size: other for size, other in others.items() if size != other}


def _vocabulary(axes: Sequence[Axis]) -> Vocabulary:
    if any(axis.is_reduced for axis in axes):
        return _REDUCTION
    return _POINTWISE if len(axes) == 1 else _GRID


def _preamble(axes: Sequence[Axis], launch: Launch, is_matmul: bool, used: Mapping[str, int]) -> list[ast.stmt]:
    """The lines that compute the indices and masks that the body uses."""
    lines: list[str] = []
    for axis in axes:
        block = launch.names.get(axis.prefix, "")
        if axis.looped or not (used[axis.index] or used[axis.mask]):
            continue
        span = f"tl.arange(0, {block}){_shape(axis, is_matmul)}"
        if axis.is_reduced:
            lines.append(f"{axis.index} = {span}")
        else:
            program = f"tl.program_id({launch.programs.index(axis.prefix)})"
            lines.append(f"{axis.index} = {program} * {block} + {span}" if block else f"{axis.index} = {program}")
        if used[axis.mask]:
            lines.append(f"{axis.mask} = {axis.index} < {axis.limit}")
    return [statement for line in lines for statement in parse(line).body]


def _with_loop_index(loop: ast.For, axis: Axis, launch: Launch, is_matmul: bool) -> ast.For:
    """A loop over the reduced axis with its index and, if used, its mask."""
    block = launch.names[axis.prefix]
    lines = [f"{axis.index} = {axis.prefix}offset + tl.arange(0, {block}){_shape(axis, is_matmul)}"]
    if passes.uses(loop.body)[axis.mask]:
        lines.append(f"{axis.mask} = {axis.index} < {axis.limit}")
    loop = with_body(loop, [*parse("\n".join(lines)).body, *loop.body])
    loop.iter = parsed(f"range(0, {axis.limit}, {block})")
    return loop


def _shape(axis: Axis, is_matmul: bool) -> str:
    if is_matmul:
        return {"y": "[:, None]", "x": "[None, :]"}.get(axis.prefix, "")
    return "" if axis.shape == "[:]" else axis.shape
