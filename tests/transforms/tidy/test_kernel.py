"""Tidy one kernel at a time: Inductor's lines and the expected lines."""

from __future__ import annotations

import ast

import pytest
from inductor import POINTWISE, ROWS, lines, raw_kernel, text, tidied

from kernelquarry.pipeline.schema.parse_python import parse_expression
from kernelquarry.transforms.tidy.kernel.forms import cast_literal
from kernelquarry.transforms.tidy.kernel.kernel_names import buffer_name, index_along
from kernelquarry.transforms.tidy.kernel.launch_options import power_of_2
from kernelquarry.transforms.tidy.kernel.tidy_kernel import same_sizes
from kernelquarry.transforms.tidy.refusals import NotTidied

# body -> the lines after the mask; types of further parameters
POINTWISE_CASES = {
    "a copy is said once": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = tmp0
        tmp2 = tmp1 + tmp1
        tl.store(out_ptr0 + (x0), tmp2, xmask)
        """,
        ["x = tl.load(x_ptr + offset, mask=mask)", "tl.store(out_ptr + offset, x + x, mask=mask)"],
    ),
    "constants are said in place, and as what they meet": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = tl.full([1], 0, tl.int32)
        tmp2 = triton_helpers.maximum(tmp1, tmp0)
        tmp3 = 2.0
        tmp4 = tmp2 * tmp3
        tl.store(out_ptr0 + (x0), tmp4, xmask)
        """,
        [
            "x = tl.load(x_ptr + offset, mask=mask)",
            "result = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) * 2.0",
            "tl.store(out_ptr + offset, result, mask=mask)",
        ],
    ),
    "what nothing reads goes": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = tl.load(in_ptr0 + (x0 + 1), xmask)
        tmp2 = tmp1 * 3.0
        tl.store(out_ptr0 + (x0), tmp0, xmask)
        """,
        ["x = tl.load(x_ptr + offset, mask=mask)", "tl.store(out_ptr + offset, x, mask=mask)"],
    ),
    "a cast to the dtype that a value has": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask).to(tl.float32)
        tmp1 = tmp0.to(tl.float32)
        tmp2 = tmp1.to(tl.int64)
        tmp3 = tmp2.to(tl.float32)
        tl.store(out_ptr0 + (x0), tmp3, xmask)
        """,
        [
            "x = tl.load(x_ptr + offset, mask=mask)",
            "tl.store(out_ptr + offset, x.to(tl.int64).to(tl.float32), mask=mask)",
        ],
    ),
    "a ratio of sizes is rounded as it should be": (
        """
        tmp0 = (ks0 / ks1).to(tl.float32)
        tmp1 = (x0).to(tl.float32) * tmp0
        tmp2 = tmp1.to(tl.int64)
        tmp3 = tl.load(in_ptr0 + (tmp2), xmask)
        tl.store(out_ptr0 + (x0), tmp3, xmask)
        """,
        [
            "value = offset.to(tl.float32) * tl.div_rn(size.to(tl.float32), ks1.to(tl.float32))",
            "x = tl.load(x_ptr + value.to(tl.int64), mask=mask)",
            "tl.store(out_ptr + offset, x, mask=mask)",
        ],
    ),
    "a factor of one": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = 1.0
        tmp2 = tmp1 * tmp0
        tmp3 = tmp2 / tmp1
        tl.store(out_ptr0 + (x0), tmp3, xmask)
        """,
        ["x = tl.load(x_ptr + offset, mask=mask)", "tl.store(out_ptr + offset, x, mask=mask)"],
    ),
    "indices are sums of products": (
        """
        tmp0 = tl.load(in_ptr0 + (3 + ks0*((x0 // 4)) + 2*ks0*((x0 // 4)) + (-1)*1 + ((x0 % 4))), xmask)
        tl.store(out_ptr0 + (x0), tmp0, xmask)
        """,
        [
            "x = tl.load(x_ptr + (size * (offset // 4) * 3 + offset % 4 + 2), mask=mask)",
            "tl.store(out_ptr + offset, x, mask=mask)",
        ],
    ),
    "a quotient that may round below zero": (
        """
        tmp0 = tl.load(in_ptr0 + (triton_helpers.div_floor_integer((-3) + x0, 2)), xmask)
        tmp1 = tl.load(in_ptr0 + (triton_helpers.div_floor_integer(x0, 2)), xmask)
        tl.store(out_ptr0 + (x0), tmp0 + tmp1, xmask)
        """,
        [
            "x = tl.load(x_ptr + floor_divide(offset - 3, 2), mask=mask)",
            "x_2 = tl.load(x_ptr + offset // 2, mask=mask)",
            "tl.store(out_ptr + offset, x + x_2, mask=mask)",
        ],
    ),
    "what is known is decided": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = 3
        tmp2 = 0
        tmp3 = tmp1 == tmp2
        tmp4 = tl.where(tmp3, tmp0, -tmp0)
        tl.store(out_ptr0 + (x0), tmp4, xmask)
        """,
        ["x = tl.load(x_ptr + offset, mask=mask)", "tl.store(out_ptr + offset, -x, mask=mask)"],
    ),
    "a quotient that is rounded as eager rounds it": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = triton.language.div_rn(tmp0, 3.0)
        tl.store(out_ptr0 + (x0), tmp1 * tmp1, xmask)
        """,
        [
            "x = tl.load(x_ptr + offset, mask=mask)",
            "value = tl.div_rn(x, 3.0)",
            "tl.store(out_ptr + offset, value * value, mask=mask)",
        ],
    ),
    "what Triton has not stays with libdevice, or is written out": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = libdevice.lgamma(libdevice.pow(tmp0, -0.5)) * libdevice.log1p(tmp0)
        tmp2 = libdevice.pow(tmp0, 2.4) + libdevice.tanh(tmp0.to(tl.float64)) + libdevice.pow(10.0, tmp0.to(tl.float64))
        tl.store(out_ptr0 + (x0), tmp1 + tmp2, xmask)
        """,
        [
            "x = tl.load(x_ptr + offset, mask=mask)",
            "value = libdevice.lgamma(tl.rsqrt(x)) * log1p(x)",
            "value_2 = power(x, 2.4, tl.float32) + libdevice.tanh(x.to(tl.float64)) + "
            "power(10.0, x.to(tl.float64), tl.float64)",
            "tl.store(out_ptr + offset, value + value_2, mask=mask)",
        ],
    ),
    "bounds that hold for every part of an index": (
        """
        x1 = xindex % 24
        tmp0 = x1
        tmp1 = tl.full([1], 0, tl.int64)
        tmp2 = tmp0 >= tmp1
        tmp3 = tl.full([1], 24, tl.int64)
        tmp4 = tmp0 < tmp3
        tmp5 = tmp2 & tmp4
        tmp6 = tl.load(in_ptr0 + (x1), tmp5 & xmask, other=0.0)
        tl.store(out_ptr0 + (x0), tmp6, xmask)
        """,
        ["x = tl.load(x_ptr + offset % 24, mask=mask, other=0.0)", "tl.store(out_ptr + offset, x, mask=mask)"],
    ),
    "a choice that a load has made, and one of two that are the same": (
        """
        tmp0 = x0
        tmp1 = tmp0.to(tl.int64)
        tmp2 = (ks0).to(tl.int64)
        tmp3 = tmp1 < tmp2
        tmp4 = tl.load(in_ptr0 + (x0), tmp3 & xmask, other=0.0)
        tmp5 = tl.full([1], 0.0, tl.float32)
        tmp6 = tl.where(tmp3, tmp5, tmp5)
        tmp7 = tl.where(tmp3, tmp4, tmp6)
        tl.store(out_ptr0 + (x0), tmp7, xmask)
        """,
        [
            "test = offset < size",
            "x = tl.load(x_ptr + offset, mask=test & mask, other=0.0)",
            "tl.store(out_ptr + offset, x, mask=mask)",
        ],
    ),
    "a number of float32 by as few digits as it needs": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = tl.full([1], 9.999999974752427e-07, tl.float32)
        tmp2 = tl.full([1], 0.3535533905932738, tl.float32)
        tl.store(out_ptr0 + (x0), (tmp0 + tmp1) * tmp2, xmask)
        """,
        [
            "x = tl.load(x_ptr + offset, mask=mask)",
            "tl.store(out_ptr + offset, (x + 1e-06) * 0.3535533905932738, mask=mask)",
        ],
    ),
    "functions that Triton has are Triton's": (
        """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = libdevice.rsqrt(tmp0)
        tmp2 = tl_math.exp(tmp1)
        tmp3 = libdevice.tanh(tmp2)
        tmp4 = libdevice.isnan(tmp3).to(tl.int1)
        tmp5 = tl.where(tmp4, tmp2, tmp3)
        tl.store(out_ptr0 + (x0), tmp5, xmask)
        """,
        [
            "x = tl.load(x_ptr + offset, mask=mask)",
            "exp = tl.exp(tl.rsqrt(x))",
            "value = tanh(exp)",
            "tl.store(out_ptr + offset, tl.where(value != value, exp, value), mask=mask)",
        ],
    ),
}


@pytest.mark.parametrize("about", POINTWISE_CASES)
def test_pointwise(about: str) -> None:
    body, expected = POINTWISE_CASES[about]
    kernel = tidied(raw_kernel(body, {"ks0": "i32"}))
    assert lines(kernel) == [
        "offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "mask = offset < 102",
        *expected,
    ]


GRID = """
    ynumel = 30
    xnumel = 40
    yoffset = tl.program_id(1) * YBLOCK
    yindex = yoffset + tl.arange(0, YBLOCK)[:, None]
    ymask = yindex < ynumel
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[None, :]
    xmask = xindex < xnumel
    x1 = xindex
    y0 = yindex
"""


def test_a_load_is_masked_along_its_own_axes() -> None:
    body = """
        tmp0 = y0
        tmp1 = tmp0 < 7
        tmp2 = tl.load(in_ptr0 + (tl.broadcast_to(y0, [YBLOCK, XBLOCK])), tmp1 & xmask & ymask, other=0.0)
        tmp3 = x1
        tmp4 = tmp3 < 7
        tmp5 = tl.load(in_ptr0 + (tl.broadcast_to(y0, [YBLOCK, XBLOCK])), tmp4 & xmask & ymask, other=0.0)
        tl.store(out_ptr0 + (x1 + 40*y0), tmp2 + tmp5, xmask & ymask)
    """
    types = {"ynumel": "i32", "YBLOCK": "constexpr"}
    assert lines(tidied(raw_kernel(body, types, opening=GRID, grid="Grid2D", hints={"x": 64, "y": 32})))[-4:] == [
        "x = tl.load(x_ptr + row, mask=(row < 7) & row_mask, other=0.0)",
        "test = col < 7",
        "x_2 = tl.load(x_ptr + tl.broadcast_to(row, (BLOCK_ROWS, BLOCK_COLS)), mask=test & row_mask, other=0.0)",
        "tl.store(out_ptr + (row * 40 + col), x + x_2, mask=row_mask & col_mask)",
    ]


SUM = """
    tmp0 = tl.load(in_ptr0 + (r0_1 + 40*x0), r0_mask & xmask, other=0.0)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
    tmp2 = tl.where(r0_mask & xmask, tmp1, {other})
    tmp3 = {function}[:, None]
    tl.store(out_ptr0 + (x0), tmp3, xmask)
"""


@pytest.mark.parametrize(
    ("function", "other", "expected"),
    [
        # What was loaded as zero adds nothing; it could well be the largest.
        ("tl.sum(tmp2, 1)", "0", ["total = tl.sum(x, 1)[:, None]"]),
        (
            "triton_helpers.max2(tmp2, 1)",
            "float('-inf')",
            ["peak = nan_max(tl.where(col_mask, x, float('-inf')), 1)[:, None]"],
        ),
        ("triton_helpers.min2(tmp2, 1)", "0", ["low = nan_min(x, 1)[:, None]"]),
    ],
)
def test_a_row_in_one_block(function: str, other: str, expected: list[str]) -> None:
    raw = raw_kernel(
        SUM.format(function=function, other=other), {}, opening=ROWS, heuristic="persistent_reduction", hints=HINTS
    )
    assert lines(tidied(raw)) == [
        "row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]",
        "row_mask = row < 30",
        "col = tl.arange(0, BLOCK_COLS)[None, :]",
        "col_mask = col < 40",
        "x = tl.load(x_ptr + (row * 40 + col), mask=row_mask & col_mask, other=0.0)",
        *expected,
        f"tl.store(out_ptr + row, {expected[0].partition(' = ')[0]}, mask=row_mask)",
    ]


HINTS = {"x": 32, "r0_": 64}
LOOP = """
    xnumel = 30
    rnumel = r0_numel
    RBLOCK: tl.constexpr = R0_BLOCK
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    rbase = r0_base
    x0 = xindex
    _tmp2 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        roffset = r0_offset
        rindex = r0_index
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + (r0_1 + ks0*x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
        tmp1 = tmp0 * tmp0
        tmp3 = _tmp2 + tmp1
        _tmp2 = tl.where(r0_mask & xmask, tmp3, _tmp2)
    tmp2 = tl.sum(_tmp2, 1)[:, None]
"""


def test_an_axis_of_one_has_no_index() -> None:
    opening = POINTWISE.replace("102", "1").replace("xindex < xnumel", "tl.full([XBLOCK], True, tl.int1)[:]")
    body = """
    tmp0 = tl.load(in_ptr0 + (0))
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK])
    tmp2 = tmp1 + tmp1
    tl.store(out_ptr0 + (tl.full([XBLOCK], 0, tl.int32).broadcast_to(XBLOCK)), tmp2, None)
    """
    assert "offset" not in text(tidied(raw_kernel(body, {}, opening=opening)))


def test_a_row_in_a_loop() -> None:
    raw = raw_kernel(
        "tl.store(out_ptr0 + (x0), tmp2, xmask)", {"ks0": "i32"}, opening=LOOP, heuristic="reduction", hints=HINTS
    )
    kernel = tidied(raw)
    assert lines(kernel) == [
        "row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]",
        "row_mask = row < 30",
        "acc = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)",
        "for col_start in range(0, n_cols, BLOCK_COLS):",
        "    col = col_start + tl.arange(0, BLOCK_COLS)[None, :]",
        "    col_mask = col < n_cols",
        "    x = tl.load(x_ptr + (row * size + col), mask=row_mask & col_mask, other=0.0)",
        "    acc += tl.where(col_mask, x * x, 0.0)",
        "total = tl.sum(acc, 1)[:, None]",
        "tl.store(out_ptr + row, total, mask=row_mask)",
    ]
    assert kernel.parameters == ("in_ptr0", "out_ptr0", "ks0", "r0_numel")


STORE = "tl.store(out_ptr0 + (x0), tl.load(in_ptr0 + (x0), xmask), xmask)"


@pytest.mark.parametrize(
    ("size", "block", "warps"), [(1, 1, 1), (100, 128, 1), (256, 256, 2), (513, 1024, 8), (10**6, 1024, 8)]
)
def test_blocks_fit_the_size(size: int, block: int, warps: int) -> None:
    raw = raw_kernel(STORE, {}, opening=POINTWISE.replace("102", str(size)))
    launch = tidied(raw).launch
    assert (launch.blocks, launch.warps) == ({"BLOCK": block}, warps)


def test_a_block_without_a_mask_divides_its_axis() -> None:
    opening = POINTWISE.replace("102", "96").replace(
        "xmask = xindex < xnumel", "xmask = tl.full([XBLOCK], True, tl.int1)"
    )
    kernel = tidied(raw_kernel(STORE, {}, opening=opening))
    assert kernel.launch.blocks == {"BLOCK": 32}
    assert "mask" not in text(kernel)


@pytest.mark.parametrize(("size", "power"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128)])
def test_power_of_2(size: int, power: int) -> None:
    assert power_of_2(size) == power


@pytest.mark.parametrize(
    ("changes", "about"),
    [
        ({"grid": "SequentialComboKernelGrid"}, "launch grid"),
        ({"heuristic": "template"}, "kernel of kind template"),
        ({"body": "tmp0 = triton_helpers.welford(in_ptr0)\n" + STORE}, "helper triton_helpers.welford"),
        ({"body": "tmp0 = libdevice.no_such(in_ptr0)\n" + STORE}, "function no_such"),
        ({"body": "while True:\n    pass\n" + STORE}, "statement while"),
        ({"body": "tl.atomic_cas(in_ptr0, 0, 1)\n" + STORE}, "call of tl.atomic_cas"),
        ({"body": "tmp0 = tl.load(tl.make_block_ptr(in_ptr0))\n" + STORE}, "address"),
        ({"body": "tmp0 = [a for a in b]\n" + STORE}, "expression"),
    ],
)
def test_an_unknown_form_is_named(changes: dict[str, str], about: str) -> None:
    with pytest.raises(NotTidied, match=about):
        tidied(raw_kernel(**{"body": STORE, "types": {}, **changes}))  # type: ignore[arg-type]


def test_operators_name_the_kernel_and_its_docstring() -> None:
    raw = raw_kernel(STORE, {}, operators="aten.addmm, aten.view, aten.relu, aten.relu")
    assert raw.operators == ("addmm", "view", "relu")
    assert '"""linear, relu"""' in text(tidied(raw))


def test_a_size_that_equals_another_in_every_launch_is_passed_once() -> None:
    launches = [{"ks0": "length", "ks1": "4", "xnumel": "length"}, {"ks0": "8", "ks1": "4", "xnumel": "8"}]
    assert same_sizes(launches) == {"xnumel": "ks0"}
    assert same_sizes([{**launches[0], "xnumel": "4"}, launches[1]]) == {}


@pytest.mark.parametrize(
    ("size", "word"),
    [("height", "h"), ("conv_2_width", "w"), ("out_depth_3", "d"), ("height_width", ""), ("size", ""), ("", "")],
)
def test_index_along_an_axis(size: str, word: str) -> None:
    assert index_along(size) == word


@pytest.mark.parametrize(
    ("made", "name"),
    [("relu", "relu"), ("_softmax max", "softmax_max"), ("mean sum", "sum"), ("convolution sum", "conv"), ("", "")],
)
def test_buffers_are_named_after_their_content(made: str, name: str) -> None:
    assert buffer_name(made) == name


def test_a_comparison_of_literals_is_no_literal() -> None:
    assert ast.unparse(cast_literal(parse_expression("-3"), "int64")) == "-3"
    with pytest.raises(NotTidied, match="number 1 < 2"):
        cast_literal(parse_expression("1 < 2"), "int64")
