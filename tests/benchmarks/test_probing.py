"""Modules that count as simple, and workloads that count as three."""

from __future__ import annotations

from collections import Counter

import pytest
from factories import make_probed, make_workload
from probing import accepted, has_three_workloads, is_simple

CLASS = "class Base:\n    def __init__{make}: ...\n    def forward{call}: ...\nclass Model(Base): ...\n"


@pytest.mark.parametrize(
    ("make", "call", "simple"),
    [
        ("(self, dim, num_heads, norm=None)", "(self, x)", True),
        ("(self, depth: int, rate: float, *, flag: bool)", "(self, x, mask=None)", True),
        ("(self)", "(self, x)", True),
        ("(self, config)", "(self, x)", False),
        ("(self, encoder_layer, num_layers)", "(self, x)", False),
        ("(self, dim: list[int])", "(self, x)", False),
        ("(self, dim, *, norm)", "(self, x)", False),
        ("(self, dim)", "(self)", False),
        ("(self, dim)", "(self, *inputs)", False),
    ],
)
def test_simple(make: str, call: str, simple: bool) -> None:
    assert is_simple(CLASS.format(make=make, call=call)) is simple


def test_without_a_constructor_of_its_own() -> None:
    assert is_simple("class Model(nn.Module):\n    def forward(self, x): ...\n")
    assert not is_simple("class Model(nn.Sequential): ...\n")


@pytest.mark.parametrize(
    ("shapes", "three"),
    [
        ([(2, 16, 32), (3, 21, 32), (5, 26, 32)], True),
        ([(2, 16, 32), (3, 21, 32)], False),
        ([(2, 16, 32), (3, 21, 32), (3, 21, 32)], False),
        ([(2, 16, 32), (3, 3, 32), (5, 26, 32)], False),
        ([(16, 32), (32, 48), (48, 64)], False),
    ],
)
def test_three_workloads(shapes: list[tuple[int, ...]], three: bool) -> None:
    assert has_three_workloads(make_probed(workloads=tuple(make_workload(*shape) for shape in shapes))) is three


def test_share_accepted() -> None:
    share, note = accepted(Counter(kept=6, random=2, too_big=4))
    assert share == 50
    assert note == "of 12: 6 kept, 4 too_big, 2 random; 60.0 % of the 10 that are a task"
