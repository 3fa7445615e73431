"""Passes over a simplified body."""

from __future__ import annotations

import ast
import textwrap

import pytest

from kernelquarry.transforms.tidy.kernel import passes
from kernelquarry.transforms.tidy.kernel.combine import tidy_combine

LONG = "(" + " + ".join(["name"] * 7) + ")"


def body(text: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(text)).body


def text(statements: list[ast.stmt]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(statement)) for statement in statements)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\nb = a\nstore(p, 2)", "store(p, 2)"),
        ("a = 1\nstore(p, a)", "a = 1\nstore(p, a)"),
        ("a, b = f()\nstore(p, b)", "a, b = f()\nstore(p, b)"),
        ("acc = 0\nfor i in range(3):\n    acc = acc + 1\nstore(p, 2)", "store(p, 2)"),
        (
            "acc = 0\nfor i in range(3):\n    acc = acc + 1\nstore(p, acc)",
            "acc = 0\nfor i in range(3):\n    acc = acc + 1\nstore(p, acc)",
        ),
    ],
)
def test_dead_code_is_dropped(before: str, after: str) -> None:
    assert text(passes.without_dead_code(body(before))) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = x + 1\nb = a * 2\nstore(p, b)", "store(p, (x + 1) * 2)"),
        ("a = x + 1\nstore(p, a + a)", "a = x + 1\nstore(p, a + a)"),
        ("a = tl.load(p)\nstore(q, a)", "a = tl.load(p)\nstore(q, a)"),
        ("a = acc + 1\nacc = 2\nstore(p, a)", "a = acc + 1\nacc = 2\nstore(p, a)"),
        (f"a = {LONG[1:-1]}\nstore(p, a * {LONG})", f"a = {LONG[1:-1]}\nstore(p, a * {LONG})"),
    ],
)
def test_values_used_once_are_inlined(before: str, after: str) -> None:
    assigned = {"acc": 2}
    assert text(passes.inline(body(before), lambda name: assigned.get(name, 1))) == after


LOADS = {
    name: body(f"tl.load(p, mask=row_mask & col_mask, other={other})")[0].value  # type: ignore[attr-defined]
    for name, other in (("v", 0.0), ("one", 1.0))
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = acc + v\nacc = t", "acc += v"),
        ("t = acc + v\nacc = tl.where(col_mask, t, acc)", "acc += v"),
        ("t = acc + w\nacc = tl.where(col_mask, t, acc)", "acc += tl.where(col_mask, w, 0.0)"),
        ("t = acc + one\nacc = tl.where(col_mask, t, acc)", "acc += tl.where(col_mask, one, 0.0)"),
        (
            "acc = tl.full([8], 0, tl.int64)\nt = acc + w\nacc = tl.where(col_mask, t, acc)",
            "acc = tl.full([8], 0, tl.int64)\nacc += tl.where(col_mask, w, 0)",
        ),
        ("t = acc * v\nacc = t", "t = acc * v\nacc = t"),
        ("t = acc + v\nstore(p, t)\nacc = t", "t = acc + v\nstore(p, t)\nacc = t"),
    ],
)
def test_sums_are_accumulated(before: str, after: str) -> None:
    assert text(passes.accumulate(body(before), LOADS)) == after


def test_substitution_leaves_assigned_names() -> None:
    (statement,) = body("a = a + b")
    assert ast.unparse(passes.substitute(statement, {"a": ast.Name("x", ast.Load())})) == "a = x + b"


def test_combine_functions() -> None:
    (function,) = body(
        """
        @triton.jit
        def _triton_helper_fn_gt_where0(arg0_0, arg0_1, arg1_0, arg1_1):
            tmp0 = arg0_0 > arg1_0
            tmp1 = triton_helpers.maximum(arg0_0, arg1_0)
            tmp2 = tl.where(tmp0, arg0_1, arg1_1)
            return tmp1, tmp2
        """
    )
    assert isinstance(function, ast.FunctionDef)
    before = ast.unparse(function)
    made = ast.unparse(ast.fix_missing_locations(tidy_combine(function)))
    assert made.splitlines()[1] == "def combine(a_0, a_1, b_0, b_1):"
    assert "tl.where(a_0 > b_0, a_1, b_1)" in made and "tl.maximum(a_0, b_0, propagate_nan=" in made
    assert ast.unparse(function) == before, "the same function may be tidied again"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = tl.dot(a, b)\nacc += t", "acc += tl.dot(a, b)"),
        ("t = tl.dot(a, b)\nacc += t\nstore(p, t)", "t = tl.dot(a, b)\nacc += t\nstore(p, t)"),
        ("t = tl.load(p)\nacc += t", "t = tl.load(p)\nacc += t"),
    ],
)
def test_products_are_added_directly(before: str, after: str) -> None:
    assert text(passes.absorb(body(before))) == after
