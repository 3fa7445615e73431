"""Docstrings of kernels, and the shapes in those of a tidied file."""

from __future__ import annotations

import ast

import pytest
from modules import Call, probed, source

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.tidy.kernel.comments import kernel_docstring

WIDE = {f"tensor_{number}": f"(batch, {number}, height, width)" for number in range(5)}


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [
        ({}, {}, "add"),
        ({"x": "(batch, 8)", "y": "(8,)"}, {"out": "(batch, 8)"}, "add: x (batch, 8), y (8,) -> out (batch, 8)"),
        ({}, {"out": "(8,)"}, "add: -> out (8,)"),
        ({"x": "(8,)"}, {}, "add: x (8,)"),
    ],
)
def test_a_docstring_has_the_known_shapes(read: dict[str, str], written: dict[str, str], expected: str) -> None:
    assert kernel_docstring("add", read, written) == expected


def test_a_long_docstring_breaks_between_tensors() -> None:
    first, empty, *lines, last = kernel_docstring("add", WIDE, {"out": "(batch, 9)"}).splitlines()
    assert (first, empty, last) == ("add", "", "    ")
    assert len(lines) > 1 and all(line.startswith("    ") and len(line) <= 110 for line in lines)
    text = " ".join(line.strip() for line in lines)
    assert text == f"{', '.join(f'{name} {shape}' for name, shape in WIDE.items())} -> out (batch, 9)"
    assert all(line.endswith((",", ")")) for line in lines)


@pytest.mark.parametrize(
    ("forward", "calls", "expected"),
    [
        (
            "x.softmax(0).sum(1) * self.scale",
            ((6, 8), (9, 8)),
            [
                "softmax: x (batch, 8) -> softmax_max (1, 8), softmax_sum (1, 8)",
                "softmax, sum, mul: x (batch, 8), softmax_max (1, 8), softmax_sum (1, 8), scale (1,) -> out (batch,)",
            ],
        ),
        (
            "x.softmax(0).sum(1) * self.scale",
            ((6, 8), (6, 8)),
            [
                "softmax: x (6, 8) -> softmax (6, 8)",
                "softmax, sum, mul: softmax (6, 8), scale (1,) -> out (6,)",
            ],
        ),
        (
            "torch.cat([x.exp(), x.softmax(0)], 1)",
            ((6, 8), (9, 7)),
            [
                "softmax: x (batch, length) -> softmax_max (1, length), softmax_sum (1, length)",
                "exp, softmax\n\n"
                "x (batch, length), softmax_max (1, length), softmax_sum (1, length) -> out_part (batch, length),\n"
                "out_part_2 (batch, length)",
            ],
        ),
        ("x.exp() * self.scale", ((6, 8), (9, 8)), ["exp, mul"]),
    ],
    ids=["a size varies", "no size varies", "views of a buffer", "one kernel"],
)
def test_several_kernels_of_a_file_have_shapes(
    forward: str, calls: tuple[tuple[int, ...], ...], expected: list[str], sandbox: Sandbox
) -> None:
    code = source(forward, "self.scale = nn.Parameter(torch.ones(1))")
    outcome = lower(probed(code, *(Call({"x": shape}) for shape in calls)), sandbox)
    assert isinstance(outcome, Kept), outcome
    tidied = tidy(outcome.record)
    assert isinstance(tidied, Kept), tidied
    functions = [node for node in ast.parse(tidied.record.triton_code).body if isinstance(node, ast.FunctionDef)]
    assert [ast.get_docstring(node) for node in functions if node.name in tidied.record.kernels] == expected
