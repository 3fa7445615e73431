"""Sizes that `forward` computes have names, and kernels know how their sizes are related."""

from __future__ import annotations

import ast

import pytest

from kernelquarry.transforms.tidy.forward.named_sizes import NamedSizes, factored, products, relations
from kernelquarry.transforms.tidy.syntax.algebra import Polynomial, polynomial


def size(text: str) -> Polynomial:
    return polynomial(ast.parse(text, mode="eval").body)


@pytest.fixture
def named() -> NamedSizes:
    sizes = NamedSizes({"conv_width"})
    assert sizes.name(size("(height + 3) // 4"), "conv_height") == "conv_height = (height + 3) // 4"
    assert sizes.name(size("width - 2"), "conv_width") == "conv_width_2 = width - 2"
    return sizes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("batch * 8", "batch * 8"),
        ("batch * width - 2 * batch", "batch * conv_width_2"),
        ("((height + 3) // 4) * (width - 2) * (width - 2) * 3", "conv_height * conv_width_2 * conv_width_2 * 3"),
        ("width - 5", "width - 5"),
        ("(height + 3) // 4 - 1", "conv_height - 1"),
        ("(width - 4) // 2 + 1", "(width - 4) // 2 + 1"),
        ("width", "width"),
        ("batch * width - batch", "(width - 1) * batch"),
        ("0", "0"),
    ],
)
def test_a_size_is_written_by_the_names_of_others(named: NamedSizes, value: str, expected: str) -> None:
    assert named.text(size(value)) == expected


@pytest.mark.parametrize("value", ["24", "batch", "batch * height", "2 * batch", "width - 2"])
def test_no_name_for_a_number_a_product_or_a_named_size(named: NamedSizes, value: str) -> None:
    assert named.name(size(value), "out") == ""


def test_numbers_that_are_products_of_neighbouring_sizes() -> None:
    factors = products([(2, 1, 12, 20), (480,), (3, 5)])
    assert factors == {240: (12, 20)}  # 480 is a size itself, and 15 and 24 are easy
    text = """
mask = col < 240
for k in range(0, 240, BLOCK):
    x = tl.load(p + (row * 240 + col), mask=mask, other=240.0)
y = tl.minimum(x, 240) % 240
"""
    assert (
        "\n".join(ast.unparse(factored(statement, factors)) for statement in ast.parse(text).body)
        == """\
mask = col < 12 * 20
for k in range(0, 12 * 20, BLOCK):
    x = tl.load(p + (row * (12 * 20) + col), mask=mask, other=240.0)
y = tl.minimum(x, 240) % 240"""
    )


def test_sizes_in_terms_of_others() -> None:
    first = {"ks0": size("s0"), "ks1": size("s1 - 2"), "ks2": size("s0 * s1 - 2 * s0"), "ks3": size("s7 * s0")}
    assert relations([{**first, "size_pad_width": size("s1")}]) == {
        "ks2": size("ks0 * ks1"),
        "size_pad_width": size("ks1 + 2"),
    }
    second = {"ks0": size("4"), "ks1": size("s1"), "ks2": size("s1 * 5"), "ks3": size("1")}
    assert relations([first, second]) == {}
