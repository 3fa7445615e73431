"""Hints on the likely cause of wrong values."""

from __future__ import annotations

import pytest

from kernelquarry.transforms.verify.hints import hint

DOT = "import triton.language as tl\n\n\ndef f(a, b, c, how):\n    return tl.dot({})\n"


@pytest.mark.parametrize(
    ("arguments", "rounds"),
    [
        ("a, b", True),
        ("a, b, acc=c, allow_tf32=True", True),
        ("a, b, input_precision='tf32'", True),
        ("a, b, input_precision='ieee'", False),
        ("a, b, input_precision=how", False),
        ("a, b, c, 'ieee'", False),
        ("a, b, allow_tf32=False", False),
    ],
)
def test_products_that_round_float32_have_a_hint(arguments: str, rounds: bool) -> None:
    assert ("TF32" in hint(DOT.format(arguments), "normal", is_half=False)) == rounds
    assert hint(DOT.format(arguments), "normal", is_half=True) == ""


def test_a_finite_mask_has_a_hint() -> None:
    assert hint("x = tl.where(mask, x, -1.0e6)", "columns", is_half=True).startswith("-1.0e6 in place of -inf")
    assert not hint("x = tl.where(mask, x, -1.0e6)", "normal", is_half=True)
    assert not hint("x = x - 1e-6 - 100", "columns", is_half=True)


def test_a_large_mean_has_a_hint() -> None:
    assert "E[x]^2" in hint("pass", "shifted", is_half=False) and not hint("pass", "normal", is_half=False)
