"""Guards: which texts are valid, and for which calls they hold."""

from __future__ import annotations

import ast

import pytest
from factories import make_workload

from kernelquarry.transforms.workloads.guards import hold, parse_guard, size_at


@pytest.mark.parametrize(
    ("guard", "shape", "holds"),
    [
        ("input0_1 <= 31", (5, 31), True),
        ("input0_1 <= 31", (5, 32), False),
        ("input0_0 % 2 == 0 and input0_1 % 2 == 0", (4, 6), True),
        ("not input0_0 == input0_1 or max(input0_0, 4) > 4", (4, 4), False),
        ("(input0_0 + 3) // 4 * 2 - 1 == 3", (5, 8), True),
        ("input0_1 % (input0_0 - 5) == 0", (5, 8), False),  # division by zero
        ("input1_0 == input0_0", (5, 8), False),  # no second tensor
    ],
)
def test_hold(guard: str, shape: tuple[int, ...], holds: bool) -> None:
    assert hold([guard], make_workload(*shape)) == holds


def test_all_guards_must_hold() -> None:
    assert hold([], make_workload(5, 8))
    assert not hold(["input0_0 == 5", "input0_1 == 5"], make_workload(5, 8))


@pytest.mark.parametrize(
    "text",
    [
        "input0_1 <= 31; import os",
        "__import__('os').system('true')",
        "input0_1 ** 99999 > 0",
        "x.shape[0] == 2",
        "input0_0 == 2.5",
        "input0_0 == '2'",
        "[input0_0 for _ in (1,)]",
        "(lambda: 1)()",
        "min(input0_0, key=1)",
        "1 +" * 400 + " 1 == 2",
        "input0_1 == state0_0",
        "",
    ],
)
def test_invalid_guards_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="no guard"):
        parse_guard(text)


def test_size_names_give_tensor_and_axis() -> None:
    assert size_at("input12_3") == ("input", 12, 3)
    assert size_at("state2_0") == ("state", 2, 0)
    assert size_at("batch") is None
    assert ast.unparse(parse_guard("input0_1<=31")) == "input0_1 <= 31"
    assert ast.unparse(parse_guard("input0_1==state0_0", of_module=True)) == "input0_1 == state0_0"
