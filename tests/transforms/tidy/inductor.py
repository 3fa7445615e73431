"""Kernels in the form that Inductor writes, for tests of one kernel at a time."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping

from kernelquarry.transforms.tidy.kernel.tidy_kernel import Kernel, tidy_kernel
from kernelquarry.transforms.tidy.read.inductor_source import RawKernel, parse
from kernelquarry.transforms.tidy.syntax.print_code import function_text

_SOURCE = """\
# Topologically Sorted Source Nodes: [a], Original ATen: [{operators}]
{comments}k = async_compile.triton('k', '''
{helpers}
@triton_heuristics.{heuristic}(size_hints={hints}, triton_meta={{'signature': {types}}}, inductor_meta={{'grid_type': '{grid}'}})
@triton.jit
def k({parameters}):
{body}
''', device_str='cuda')

def call(args):
    return (buf0,)
"""  # noqa: E501

POINTWISE = """
    xnumel = 102
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
"""
ROWS = """
    xnumel = 30
    r0_numel = 40
    R0_BLOCK: tl.constexpr = 64
    rnumel = r0_numel
    RBLOCK: tl.constexpr = R0_BLOCK
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_offset = 0
    r0_mask = r0_index < r0_numel
    roffset = r0_offset
    rindex = r0_index
    r0_1 = r0_index
    x0 = xindex
"""


def raw_kernel(
    body: str,
    types: Mapping[str, str],
    *,
    opening: str = POINTWISE,
    heuristic: str = "pointwise",
    grid: str = "Grid1D",
    hints: Mapping[str, int] | None = None,
    operators: str = "aten.relu",
    helpers: str = "",
    comments: str = "",
) -> RawKernel:
    signature = {"in_ptr0": "*fp32", "out_ptr0": "*fp32", **types, "xnumel": "i32"}
    signature |= {"r0_numel": "i32"} if "r0_numel" in opening else {}
    signature |= {"XBLOCK": "constexpr"} | (
        {} if "R0_BLOCK: tl" in opening or "r0_" not in opening else {"R0_BLOCK": "constexpr"}
    )
    text = _SOURCE.format(
        operators=operators,
        helpers=helpers,
        comments=comments,
        heuristic=heuristic,
        hints=dict(hints or {"x": 128}),
        types=signature,
        grid=grid,
        parameters=", ".join(signature),
        body=textwrap.indent(textwrap.dedent(opening) + textwrap.dedent(body), "    "),
    )
    return parse(text).kernels["k"]


def tidied(raw: RawKernel, pointers: Mapping[str, str] | None = None) -> Kernel:
    names = {name: name for name, kind in raw.types.items() if kind.startswith("*")}
    sizes = {name: "size" for name, kind in raw.types.items() if kind == "i32"}
    return tidy_kernel(raw, "kernel", {**names, "in_ptr0": "x", "out_ptr0": "out", **(pointers or {})}, sizes)


def lines(kernel: Kernel) -> list[str]:
    """The statements of a tidied kernel without its docstring."""
    return [
        line
        for statement in kernel.function.body[1:]
        for line in ast.unparse(ast.fix_missing_locations(statement)).splitlines()
    ]


def text(kernel: Kernel) -> str:
    return function_text(kernel.function)
