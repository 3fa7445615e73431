"""Fast matching gives the same indices as sympy's own matching."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from torch._inductor import sizevars
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from kernelquarry.pipeline.sandbox.guest.lowering.quick_sympy import quick_sympy

x, y, z, s = (sympy.Symbol(name, integer=True, nonnegative=True) for name in "xyzs")

INDEXES = [
    x + 4 * y,
    ModularIndexing(x, 1, 32) + 32 * ModularIndexing(x, 32, 4),
    ModularIndexing(x, 1, 32) + 32 * FloorDiv(x, 32),
    ModularIndexing(x, 1, 32) + 32 * FloorDiv(x, 32) + 7 * y + z,
    s * ModularIndexing(x, 1, 32) + 32 * s * FloorDiv(x, 32) + ModularIndexing(y, 1, 8) + 9,
    ModularIndexing(x, 1, 32) + 32 * FloorDiv(y, 32) + z,
    ModularIndexing(4 * x + z, 1, 32) + 3 * y,
    ModularIndexing(x, 1, s) + s * ModularIndexing(x, s, z) + s * z * FloorDiv(x, s * z) + y,
    ModularIndexing(x, 8, 4) + 4 * FloorDiv(x, 32) + 16 * ModularIndexing(y, 1, 2),
    ModularIndexing(FloorDiv(x, 3), 1, 4) + 4 * FloorDiv(x, 12) + z,
    ModularIndexing(x, 1, 8) * ModularIndexing(y, 1, 4) + 4 * ModularIndexing(x, 1, 8) * FloorDiv(y, 4),
    ModularIndexing(x, 1, 8) + 32 * FloorDiv(x, 32) + 8 * ModularIndexing(x, 16, 2),  # a gap between each two
]


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_terms_are_joined_as_inductor_joins_them(index: sympy.Expr) -> None:
    expected = sizevars.join_dimensions(index)
    with quick_sympy():
        assert sizevars.join_dimensions(index) == expected


def test_terms_are_joined_among_others() -> None:
    with quick_sympy():
        assert sizevars.join_dimensions(INDEXES[3]) == x + 7 * y + z


def _wild(name: str) -> sympy.Wild:
    return sympy.Wild(name, integer=True)


PATTERNS: list[tuple[Any, Any]] = [
    (FloorDiv(_wild("base"), _wild("divisor")), lambda base, divisor: base - divisor),
    (
        ModularIndexing(_wild("base"), _wild("divisor"), _wild("modulus")),
        lambda base, divisor, modulus: base + divisor - modulus,
    ),
    (FloorDiv(_wild("base"), 32), lambda base: base + 1),  # not for any divisor
    (FloorDiv(sympy.Wild("base", exclude=[x]), _wild("divisor")), lambda base, divisor: base - divisor),
]


@pytest.mark.parametrize(("pattern", "value"), PATTERNS, ids=[str(pattern) for pattern, _ in PATTERNS])
@pytest.mark.parametrize("index", [*INDEXES, FloorDiv(ModularIndexing(FloorDiv(x, 3), 1, s), 32) + z], ids=str)
def test_patterns_are_replaced_as_sympy_replaces_them(index: sympy.Expr, pattern: Any, value: Any) -> None:
    expected = index.replace(pattern, value)
    with quick_sympy():
        assert index.replace(pattern, value) == expected
    assert index.replace(pattern, value) == expected
