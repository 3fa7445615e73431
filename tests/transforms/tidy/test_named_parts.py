"""Sums that accesses share, and parts of indices, have one name in a kernel."""

from __future__ import annotations

import ast

import pytest

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.transforms.tidy.kernel.named_parts import with_named_parts

LOAD = "v = tl.load(p + (a * 4 + b)); "


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LOAD + "tl.store(q + (a * 4 + b), v)", "sum_1 = a * 4 + b; v = tl.load(p + sum_1); tl.store(q + sum_1, v)"),
        (LOAD + "tl.store(q + (a * 4 + c), v)", LOAD + "tl.store(q + (a * 4 + c), v)"),  # another sum
        ("v = tl.load(p + a); tl.store(q + a, v)", "v = tl.load(p + a); tl.store(q + a, v)"),  # it has a name
        (LOAD + "w = f(a * 4 + b)", LOAD + "w = f(a * 4 + b)"),  # an access alone has an address
        ("m = g(m); v = tl.load(p + (m + 4)); m = g(m); tl.store(q + (m + 4), v)",
         "m = g(m); v = tl.load(p + (m + 4)); m = g(m); tl.store(q + (m + 4), v)"),  # m has several values
        ("v = tl.load(p + (f(a) + b)); tl.store(q + (f(a) + b), v)",
         "v = tl.load(p + (f(a) + b)); tl.store(q + (f(a) + b), v)"),  # f is not arithmetic
        # Parts of indices that have a name, also in sums.
        ("x = a // 4; v = tl.load(p + a // 4 % 8); tl.store(q + (a // 4 + b), v)",
         "x = a // 4; v = tl.load(p + x % 8); tl.store(q + (x + b), v)"),
        ("x = a // 4; y = x % 8; v = tl.load(p + a // 4 % 8)", "x = a // 4; y = x % 8; v = tl.load(p + y)"),
        ("v = tl.load(p + a // 4); x = a // 4", "v = tl.load(p + a // 4); x = a // 4"),  # named later
        ("m = m // 4; v = tl.load(p + m // 4)", "m = m // 4; v = tl.load(p + m // 4)"),
    ],
)  # fmt: skip
def test_what_is_shared_has_a_name(before: str, after: str) -> None:
    found = with_named_parts(parse(before.replace("; ", "\n")).body, lambda name: name != "m")
    assert "; ".join(map(ast.unparse, found)) == after


def test_sums_of_a_loop_are_named_within_it() -> None:
    inner = "    v = tl.load(p + (a % 2 + k))\n    tl.store(q + (x + k), v)"
    body = f"x = a % 2\nfor k in r:\n{inner}\ntl.store(p + (x + k), v)"
    loop = "for k in r:\n    sum_1 = x + k\n    v = tl.load(p + sum_1)\n    tl.store(q + sum_1, v)"
    found = with_named_parts(parse(body).body, lambda name: True)
    assert [ast.unparse(ast.fix_missing_locations(part)) for part in found] == [
        "x = a % 2", loop, "tl.store(p + (x + k), v)"
    ]  # fmt: skip
