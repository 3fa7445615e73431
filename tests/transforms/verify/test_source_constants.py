"""Numeric constants in sources."""

from __future__ import annotations

import pytest

from kernelquarry.transforms.verify.source_constants import SourceConstants, code_alone, extents


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x == 42.0", (42.0,)),
        ("x > -1e4", (-1e4,)),
        ("f(x, other=-1.0e4)", (-1e4,)),
        ("x > 3 * (1 << 10)", (3072.0,)),
        ("x > 10 ** 9 - 1", (999999999.0,)),
        ("64 + x < 100", (64.0, 100.0)),
        ("f(5000.0, 0.3, x > 99)", (99.0, 5000.0, 0.3)),  # comparisons come first
        ("x == 42.0 or x == 77.0", (42.0, 77.0)),
        ("x > 1e38 or x > 1e-30", ()),
        ("x == 3", ()),  # in other draws
        ("x == float('7.5') or x == float('inf') or x == int('n')", (7.5,)),
        ("x == True or x == '42'", ()),
        ("10 ** 999 + 1 // 0 + (1 << 4000)", (4000.0, 999.0, 10.0)),
        ("x ==", ()),
    ],
)
def test_values(text: str, values: tuple[float, ...]) -> None:
    constants = SourceConstants(text, "").values
    assert constants[: len(values)] == values and (values or not constants)


def test_sizes_include_one_more_than_a_compared_number() -> None:
    assert SourceConstants("n == 777\nBLOCK = 64\neps = 0.5", "").sizes == (777, 778, 64)


def test_constants_of_the_reference_alone_count() -> None:
    named = SourceConstants("x > 42.0\ny + 5000.0", "torch.where(x == -9999.0, 0.0, x).clamp(-1e6, 1e6)")
    assert named.values == (42.0, -9999.0, -1e6, 1e6, 5000.0)  # a limit is compared, too


def test_constants_of_both_sources_count_only_where_one_of_them_compares() -> None:
    named = SourceConstants("x > 42.0 and x < 7.5 and n == 777\nx + 99.0", "y = 21 * 2\nn = 777.0\nx < 7.5\nx + 99.0")
    assert named.values == (42.0, 777.0, 7.5) and not named.sizes, "7.5 is a boundary of the reference"


def test_fractions_with_which_the_reference_compares_are_boundaries() -> None:
    reference = "x > 0.3\ny = F.hardshrink(x, 0.5)\nz = x.clamp(-0.7, 0.9) + 0.2\nif n == 3: pass"
    assert SourceConstants(reference, reference).values == (0.3, 0.5)


def test_few_are_small_numbers_that_a_kernel_compares() -> None:
    assert sorted(SourceConstants("n == 3 or n > 7 or n < 2 or n == 8\nx + 5", "").few) == [3, 7]
    assert not SourceConstants("n == 3", "n == 3").few


def test_extents_are_products_of_fixed_loops_and_grids_with_other_numbers() -> None:
    loop = "for k in tl.static_range(0, 32):\n    at = k * 256"
    assert extents(loop) == (8192, 1024)
    grid = "kernel[(132,)](x, BLOCK=1024)"
    assert extents(grid) == (135168, 17424)
    assert extents(f"for k in range(8):\n    {grid}")[0] == 8 * 132 * 1024
    assert extents("for k in range(3):\n    at = k * 256") == extents("for k in range(n):\n    k * 256") == ()
    assert extents("def (:") == ()


def test_comments_and_docstrings_are_no_code() -> None:
    text = 'class A:\n    """x.prod()"""\n\n    def f(x):\n        "topk"\n        return x + 1  # argmax'
    assert code_alone(text) == "class A:\n\n    def f(x):\n        return x + 1"
    assert code_alone("x +") == "x +"
