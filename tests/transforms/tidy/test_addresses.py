"""Addresses are written by the indices and sizes that a kernel names, and stay the same numbers."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelquarry.transforms.tidy.kernel.addresses import Addresses
from kernelquarry.transforms.tidy.syntax.algebra import Polynomial, polynomial

# Statements of a kernel, sizes in terms of others, and the expected address.
CASES = {
    "the row and the column of a padded image": (
        """
        x0 = xindex % 20
        x1 = xindex // 20 % 12
        x4 = xindex % 240
        x2 = xindex // 240
        tmp0 = r1 + x1 - 1
        tmp1 = r0 + x0 - 1
        tl.load(p + (240 * x2 + 20 * r1 + r0 + x4 - 21))
        """,
        {},
        "x2 * 240 + tmp0 * 20 + tmp1",
    ),
    "a contiguous store": (
        """
        x0 = xindex % ks1
        x1 = xindex // ks1 % ks0
        x2 = xindex // ks2
        tl.store(p + (x0 + ks1 * x1 + ks0 * ks1 * x2), tmp9)
        """,
        {"ks2": "ks0 * ks1"},
        "xindex",
    ),
    "a padded image of other sizes than the output": (
        """
        tl.load(p + (r0 + xindex + ks1 * r1 + 2 * r1 + 2 * (xindex // ks1)))
        """,
        {"size_pad_width": "ks1 + 2"},
        "(r1 + xindex // ks1) * size_pad_width + r0 + xindex % ks1",
    ),
    "no difference of indices": (
        """
        x0 = xindex % 4
        x1 = xindex // 4 % 6
        x2 = xindex // 24
        tl.load(p + (x0 + 16 * x2 + 4 * x1))
        """,
        {},
        "x0 + 16 * x2 + 4 * x1",
    ),
    "a name that is bound later, or twice, is not used": (
        """
        x0 = xindex % 4
        tl.load(p + (4 * r0 + x0 + r1 - 3))
        tmp0 = x0 - 3
        tmp1 = r1 - 3
        tmp1 = r1 - 4
        """,
        {},
        "4 * r0 + x0 + r1 - 3",
    ),
    "the divisors of an index that are no multiples of each other": (
        """
        x0 = xindex % 12
        x1 = xindex // 20
        tl.load(p + (20 * x1 + x0 + r0))
        """,
        {},
        "20 * x1 + x0 + r0",
    ),
}


def rewritten(text: str, sizes: dict[str, str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements before and after."""
    lines = "\n".join(line.strip() for line in text.splitlines())
    body = ast.parse(lines).body
    twice = [name for name in ("tmp0", "tmp1") if lines.count(f"{name} = ") > 1]
    values = {name: polynomial(ast.parse(value, mode="eval").body) for name, value in sizes.items()}
    return ast.parse(lines).body, Addresses(values, lambda name: name not in twice).rewrite(body)


def address(body: list[ast.stmt]) -> ast.expr:
    (found,) = [each.value for each in body if isinstance(each, ast.Expr)]
    assert isinstance(found, ast.Call) and isinstance(found.args[0], ast.BinOp)
    return found.args[0].right


@pytest.mark.parametrize("case", CASES)
def test_addresses(case: str) -> None:
    text, sizes, expected = CASES[case]
    assert ast.unparse(address(rewritten(text, sizes)[1])) == expected


@pytest.mark.parametrize("case", CASES)
@given(
    xindex=st.integers(0, 10_000),
    ks0=st.integers(1, 30),
    ks1=st.integers(1, 30),
    r0=st.integers(0, 5),
    r1=st.integers(0, 5),
)
def test_addresses_keep_their_value(case: str, **values: int) -> None:
    text, sizes, _ = CASES[case]
    known = dict(values)
    for name, size in sizes.items():
        known[name] = eval(size, {}, known)
    found = []
    for body in rewritten(text, sizes):
        names = dict(known)
        for statement in body:
            if isinstance(statement, ast.Assign):
                exec(ast.unparse(statement), {}, names)
            else:
                found.append(eval(ast.unparse(address([statement])), {}, names))
    assert found[0] == found[1]


def test_what_a_loop_names_is_unknown_after_it() -> None:
    text = """
for r0_offset in range(0, 8, BLOCK):
    tmp0 = r0 + x0 - 3
    tl.load(p + (x1 * 4 + r0 + x0 - 3))
tl.load(p + (x1 * 4 + r0 + x0 - 3))
"""
    loop, after = Addresses(dict[str, Polynomial](), lambda name: True).rewrite(ast.parse(text).body)
    assert isinstance(loop, ast.For)
    assert ast.unparse(address(loop.body)) == "x1 * 4 + tmp0"
    assert ast.unparse(address([after])) == "x1 * 4 + r0 + x0 - 3"
