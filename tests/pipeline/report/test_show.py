"""The view of a pair in the terminal."""

from __future__ import annotations

import io

import pytest
from factories import make_pair, make_timing, make_workload
from rich.console import Console

from kernelquarry.pipeline.report.show import render_row, shapes
from kernelquarry.pipeline.schema.records import Purity, TensorSpec, Workload


def printed(width: int, colours: bool = False, **overrides: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, color_system="truecolor" if colours else None)
    console.print(render_row(make_pair(**overrides)))
    return out.getvalue()


def test_both_sources_are_side_by_side() -> None:
    (line,) = [line for line in printed(200).splitlines() if "class Model(nn.Module):" in line]
    assert line.index("class Model") < 90
    titles = next(line for line in printed(200).splitlines() if "PyTorch" in line)
    assert titles.index("PyTorch") < 20 < 90 <= titles.index("Triton")


def test_code_is_coloured() -> None:
    assert "\x1b[" in printed(160, colours=True)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in printed(width).splitlines()) <= width


def test_facts_are_shown() -> None:
    text = " ".join(printed(160, purity=Purity.MIXED, extern_ops=("aten.convolution.default",)).split())
    for fact in (
        make_pair().id,
        "layers 1.0, layers/scale.py",
        "MIT (License-Expression: MIT)",
        "mixed aten.convolution.default",
        "x[5, 8]; x[3, 7, 8], shape-general",
        "not measured",
        "compiled, interpreted; sm_80, sm_90; 2 comparisons, worst error 0.25 of 1 allowed",
    ):
        assert fact in text


def test_times_are_shown() -> None:
    assert "eager 300.0 µs, compile 200.0 µs, candidate 100.0 µs" in printed(160, timings=(make_timing(),))


def test_text_of_a_row_is_not_markup() -> None:
    assert "[red]not a colour" in printed(160, module_name="[red]not a colour")
    assert "[/red]" in printed(160, kernels=("[/red]",))


def test_shapes_of_a_workload() -> None:
    assert shapes(make_workload(2, 3)) == "x[2, 3]"
    assert shapes(Workload((TensorSpec("a", (), "float32"), TensorSpec("b", (7,), "int64")), "[]")) == "a[], b[7]"


def test_a_row_cannot_control_the_terminal() -> None:
    hostile = "\x1b]0;title\x07\x1b[2J"
    text = printed(200, triton_code=f"# {hostile}", module_name=hostile, kernels=(hostile,))
    assert "\x1b" not in text and "\x07" not in text and text.count("\\x1b[2J") == 3
