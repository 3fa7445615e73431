"""Figures of the supply are those of the pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import make_pair
from supply import supply

from kernelquarry.pipeline.schema.records import Measures, Purity, SliceOrigin, Tier


def test_small_pure_and_cost() -> None:
    whole = replace(make_pair(), purity=Purity.PURE, measures=Measures(kernels=1, tokens=701, operators=9))
    piece = replace(
        whole, measures=Measures(kernels=1, tokens=700, operators=2), slice_of=(SliceOrigin("", "", "", (), 1),)
    )
    two = replace(piece, purity=Purity.MIXED, measures=Measures(kernels=2, tokens=10, operators=1))
    found = supply([whole, piece, two, two], {"read": 1.0, "verify": 5.0}, "tiny+slices")
    expected = {"small": 25, "pure": 50, "core_s_pair": 1.5, "mined": 1, "executed": 0, "constructor_general": 0}
    assert found.values == pytest.approx(expected | {"tiny_slices": 4})
    assert found.notes["tiny_slices"].startswith("3 slices") and "2 of 1, 1 of 2" in found.notes["tiny_slices"]
    assert "tiny_slices" not in supply([whole], {}, "tiny").values
    wide = supply([whole, piece], {}, "wide+slices", modules=7).values
    assert (wide["pairs"], wide["modules_wide"]) == (2, 7)
    stack = supply([whole, piece], {"read": 3.0}, "data/*.parquet")
    assert stack.values == {"stack": 2, "core_s_pair": 1.5} and stack.notes["stack"].startswith("1 small, ")


def test_executed_and_general() -> None:
    pair = make_pair()
    executed = replace(pair, verdict=replace(pair.verdict, tiers=(Tier.EXECUTED,)), constructor_general=True)
    without_parameters = replace(pair, state=())
    found = supply([pair, executed, without_parameters, pair], {}, "tiny", gpu_s=36)
    assert found.values["executed"] == 25 and found.values["gpu_hours"] == pytest.approx(2.5)
    assert found.values["constructor_general"] == pytest.approx(100 / 3)
