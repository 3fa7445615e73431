"""Guesses keep one symbol for what is one size."""

from __future__ import annotations

import pytest
import torch

from kernelquarry.pipeline.sandbox.guest.probing.guess import (
    LAYOUTS,
    SIZES,
    Guess,
    ListArg,
    PlainArg,
    SizeArg,
    SizesArg,
    Spec,
    TensorArg,
    draw,
)

IMAGE = TensorArg("x", ("B", "C", "H", "W"))
TOKENS = TensorArg("t", ("B", "H*W"), "int64", 2, 5)
GUESS = Guess(
    (IMAGE, ListArg((TOKENS, IMAGE)), SizeArg("H"), SizesArg(("H", "W")), PlainArg(None)), tuple(SIZES[0].items())
)


def test_shapes_and_arguments() -> None:
    assert [spec.shape for spec in GUESS.specs()] == [(2, 16, 12, 20), (2, 240), (2, 16, 12, 20)]
    assert GUESS.tree() == [{"tensor": 0}, [{"tensor": 1}, {"tensor": 2}], 12, [12, 20], None]
    assert GUESS.symbols() == ("B", "C", "H", "W")
    assert GUESS.elements == 2 * 2 * 16 * 240 + 2 * 240


def test_a_new_size_goes_everywhere() -> None:
    resized = GUESS.resized({"H": 5})
    assert [spec.shape for spec in resized.specs()] == [(2, 16, 5, 20), (2, 100), (2, 16, 5, 20)]
    assert resized.tree()[2:4] == [5, [5, 20]]
    assert resized.key() != GUESS.key() and resized.resized({"H": 12}).key() == GUESS.key()


def test_two_symbols_become_one() -> None:
    merged = GUESS.merged("W", "H")
    assert [spec.shape for spec in merged.specs()] == [(2, 16, 12, 12), (2, 144), (2, 16, 12, 12)]
    assert merged.tree()[2:4] == [12, [12, 12]]


def test_an_axis_gets_a_size_of_its_own() -> None:
    split = GUESS.split(1, 1, 1, 7)
    assert [spec.shape for spec in split.specs()] == [(2, 16, 12, 20), (2, 240), (2, 7, 12, 20)]
    assert split.resized({"C": 3}).specs()[2].shape == (2, 7, 12, 20)


def test_a_tensor_in_a_list_is_replaced_in_its_place() -> None:
    changed = GUESS.with_tensor(1, 0, name="t", dims=("B",))
    assert [spec.shape for spec in changed.specs()] == [(2, 16, 12, 20), (2,), (2, 16, 12, 20)]


def test_sizes_are_pairwise_distinct() -> None:
    """A size in a message names one symbol, and every symbol varies between the workloads."""
    for sizes in SIZES:
        assert len(set(sizes.values()) - {sizes["P"]}) == len(sizes) - 1 - (sizes["B"] == sizes["P"])
    for symbol in SIZES[0].keys() - {"P"}:
        assert len({sizes[symbol] for sizes in SIZES}) == 3
    assert all(
        len(layout) == rank and len(set(layout)) == rank for rank, layouts in LAYOUTS.items() for layout in layouts
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_drawing(seed: int) -> None:
    specs = (
        Spec("x", (1000,), "float32", 0, 0),
        Spec("i", (1000,), "int64", 2, 5),
        Spec("m", (1000,), "bool", 0, 0),
        Spec("one", (3,), "int64", 0, 0),
    )
    x, i, m, one = draw(specs, seed)
    assert abs(x.mean()) < 0.2 and abs(x.std() - 1) < 0.2
    assert set(i.tolist()) == {2, 3, 4}
    assert 300 < m.sum() < 700
    assert one.tolist() == [0, 0, 0]
    assert all(torch.equal(a, b) for a, b in zip(draw(specs, seed), (x, i, m, one), strict=True))
    assert not torch.equal(draw(specs, seed + 1)[0], x)
