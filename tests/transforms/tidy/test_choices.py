"""Choices that outer choices decide are left out of a kernel's body."""

from __future__ import annotations

import ast

import pytest

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.transforms.tidy.kernel.choices import decided_choices
from kernelquarry.transforms.tidy.kernel.passes import without_dead_code


def is_integer(node: ast.expr) -> bool:
    return ast.unparse(node) in ("a", "b", "n", "m")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("tl.where(a < n, tl.where(a < n, x, 0.0), y)", "tl.where(a < n, x, y)"),
        ("tl.where(a < n, x, tl.where(a >= n, y, 0.0))", "tl.where(a < n, x, y)"),
        ("tl.where(a < n, x, tl.where(a >= m, y, 0.0))", "tl.where(a < n, x, tl.where(a >= m, y, 0.0))"),
        ("tl.where(x < n, a, tl.where(x < n, b, c))", "tl.where(x < n, a, c)"),
        ("tl.where(x < n, a, tl.where(x >= n, b, c))", "tl.where(x < n, a, tl.where(x >= n, b, c))"),  # x may be NaN
        ("1 - tl.where(a < n, x, -tl.where(a < n, y, z))", "1 - tl.where(a < n, x, -z)"),
        ("tl.where(a < n, x, tl.where((a >= n) & (a < m), y, tl.where(a >= m, z, 0.0)))",
         "tl.where(a < n, x, tl.where((a >= n) & (a < m), y, z))"),
        ("tl.where((a < n) & (b < m), x, tl.where(a >= n, y, z))",
         "tl.where((a < n) & (b < m), x, tl.where(a >= n, y, z))"),
        # Another element decides what a sum or a helper adds.
        ("tl.where(a < n, tl.sum(tl.where(a < n, x, 0.0), 1), y)",
         "tl.where(a < n, tl.sum(tl.where(a < n, x, 0.0), 1), y)"),
        # Names that are assigned and used once; casts to int64 change no index.
        ("i = a.to(tl.int64); t = i < n.to(tl.int64); u = a >= n; v = tl.where(u, y + 1, 0.0); tl.where(t, x, v)",
         "tl.where(t, x, y + 1)"),
        ("v = tl.where(a >= n, y, 0.0); w = v * 2; tl.where(a < n, x, v) + w", "tl.where(a < n, x, v) + w"),
        ("v = tl.where(a >= n, y, 0.0); v = v + 1; tl.where(a < n, x, v)", "tl.where(a < n, x, v)"),
        ("y = f(y); v = tl.where(a >= n, y, 0.0); y = f(y); tl.where(a < n, x, v) + y", "tl.where(a < n, x, v) + y"),
    ],
)  # fmt: skip
def test_choices_that_others_decide_go(body: str, value: str) -> None:
    *lines, last = body.split("; ")
    source = "\n".join([*lines, f"out = {last}", "tl.store(p, out)"])
    found = without_dead_code(decided_choices(parse(source).body, is_integer))
    assert ast.unparse(found[-2]) == f"out = {value}"


def test_choices_in_a_loop_are_decided_and_keep_their_lines() -> None:
    found = decided_choices(parse("for k in r:\n    s = tl.where(t, tl.where(t, x, 0.0), y)").body, is_integer)
    assert ast.unparse(found[0]) == "for k in r:\n    s = tl.where(t, x, y)"
    assert [node.lineno for node in ast.walk(found[0]) if isinstance(node, ast.Assign)] == [2]
