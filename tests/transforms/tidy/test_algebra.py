"""Integer expressions get one readable form and keep their value."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelquarry.transforms.tidy.syntax.algebra import Polynomial, is_contiguous, number, polynomial, render


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def is_size(atom: str) -> bool:
    return atom in ("h", "w")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("0", "0"),
        ("x + 0 * y", "x"),
        ("x + x", "x * 2"),
        ("3 + x + (-1) * 3", "x"),
        ("x - (y - x)", "x * 2 - y"),
        ("(x + 1) * (x - 1)", "x * x - 1"),
        ("x ** 2 - x * x", "0"),
        ("-x", "-x"),
        ("2 - x", "2 - x"),
        ("w * h * z + w * y + x", "(z * h + y) * w + x"),
        ("w * y + x", "y * w + x"),
        ("x * 32 + y * 32 + z * 8 + 3", "(x + y) * 32 + z * 8 + 3"),
        ("-4 * x - 4 * y", "-(x * 4) - y * 4"),
        ("(4 * x + 2 * x) // 3", "x * 6 // 3"),
        ("(7 + 1) // 3 + x % (1 + 1)", "x % 2 + 2"),
        ("f(x, 1 + 1) + f(x, 1 + 1)", "f(x, 1 + 1) * 2"),
    ],
)
def test_rendered_text(before: str, after: str) -> None:
    assert ast.unparse(render(polynomial(parsed(before)), is_size)) == after


def test_equal_expressions_have_one_form() -> None:
    assert polynomial(parsed("(a + b) * (a - b)")) == polynomial(parsed("a * a - b ** 2"))
    assert polynomial(parsed("a + b")) != polynomial(parsed("a + b + 1"))


def test_constants_and_atoms() -> None:
    assert number(0).constant == 0
    assert polynomial(parsed("2 * 3 + x - x")).constant == 6
    assert polynomial(parsed("x")).constant is None
    assert Polynomial({("x",): 0}) == number(0)


EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "y", "z", "h", "w"]) | st.integers(0, 9).map(str),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["//", "%"]), st.integers(1, 9)),
        st.builds("(-{})".format, inner),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS, st.tuples(*[st.integers(0, 50)] * 5))
def test_rendering_keeps_the_value(text: str, values: tuple[int, ...]) -> None:
    names = dict(zip("xyzhw", values, strict=True))
    for tree in (render(polynomial(parsed(text)), is_size), render(polynomial(parsed(text)))):
        assert eval(ast.unparse(tree), {}, names) == eval(text, {}, names)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=2), st.integers(-3, 3)), max_size=3), st.data())
def test_a_product_is_divided_by_its_factors(terms: list[tuple[list[str], int]], data: st.DataObject) -> None:
    value = Polynomial({tuple(sorted(atoms)): factor for atoms, factor in terms})
    divisor = parsed(data.draw(st.sampled_from(["a", "2 * a * b", "a - 2", "b + c", "a * b - b + 3", "-a - b"])))
    assert (value * polynomial(divisor)).divided_by(polynomial(divisor)) == value


@pytest.mark.parametrize(("value", "divisor"), [("a + 1", "a"), ("3 * a", "2"), ("a * b + 1", "a - 2"), ("a", "0")])
def test_no_exact_quotient(value: str, divisor: str) -> None:
    assert polynomial(parsed(value)).divided_by(polynomial(parsed(divisor))) is None


@pytest.mark.parametrize(
    ("stride", "contiguous"),
    [("(n * m, m, 1)", True), ("(max(1, n) * m, max(1, m), 1)", True), ("(m, m, 1)", False), ("(n * m, m, 2)", False)],
)
def test_contiguous_strides(stride: str, contiguous: bool) -> None:
    shape, steps = parsed("(b, n, m)"), parsed(stride)
    assert isinstance(shape, ast.Tuple) and isinstance(steps, ast.Tuple)
    assert is_contiguous(shape.elts, steps.elts) is contiguous
