"""Expressions for sizes that follow from others."""

from __future__ import annotations

import pytest

from kernelquarry.transforms.workloads.size_expressions import size_expression

VARYING = {"batch": (2, 3, 5), "height": (12, 11, 10), "width": (20, 23, 14)}


@pytest.mark.parametrize(
    "expression",
    [
        *("7", "height", "height - 2", "width + 1", "height * 2", "height * width", "batch * height * width * 48"),
        *("height // 2", "(height + 1) // 2", "(width - 3) // 4", "batch * batch"),
    ],
)
def test_a_size_is_an_expression_of_those_that_vary(expression: str) -> None:
    calls = [dict(zip(VARYING, sizes, strict=True)) for sizes in zip(*VARYING.values(), strict=True)]
    assert size_expression([eval(expression, {}, call) for call in calls], VARYING) == expression


def test_the_first_of_equal_names_is_taken() -> None:
    assert size_expression((12, 11, 10), {"batch": (2, 3, 5), "rows": (12, 11, 10), "columns": (12, 11, 10)}) == "rows"


@pytest.mark.parametrize("sizes", [(40, 41, 40), (3, 0, 9), (10**9, 1, 7)])
def test_a_size_may_follow_from_no_other(sizes: tuple[int, ...]) -> None:
    assert size_expression(sizes, VARYING) == ""
    assert size_expression(sizes, {}) == ""
