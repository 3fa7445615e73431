"""Axis names in docstrings and comments, and the symbols that they get."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.sandbox.guest.probing.axes import AxisSymbols, dtype_of, entry_of, listed_axes

DOCSTRING = """A layer.

Args:
    x (torch.Tensor): the values,
        (B, T, C).
    mask: what counts (bool), `(B, T)`
    plain (int): a number.

Shape:
    - Input: :math:`(N, C_{in}, L)`
"""


@pytest.mark.parametrize(
    ("parameter", "is_input", "axes"),
    [
        ("x", True, ("b", "t", "c")),
        ("mask", False, ("b", "t")),
        ("plain", False, ()),
        ("y", False, ()),
        ("first", True, ("b", "t", "c")),  # the entry "x" is about the input
    ],
)
def test_entries(parameter: str, is_input: bool, axes: tuple[str, ...]) -> None:
    assert listed_axes(entry_of(DOCSTRING, parameter, is_input)) == axes


@pytest.mark.parametrize(
    ("entry", "axes"),
    [
        ("(Tensor): of shape [batch, seq_len, 3]", ("batch", "seq_len", "3")),
        (": B x C x H x W", ("b", "c", "h", "w")),
        (": (B x C x H)", ("b", "c", "h")),
        (": BxHxW", ("b", "h", "w")),
        (": (batch,)", ("batch",)),
        (": tokens (B, H*W, C)", ("b", "h*w", "c")),
        (" (Tensor, optional): without", ()),
        (": a pair (3, 4)", ()),
        (": see f(x)", ("x",)),
    ],
)
def test_axes_in_an_entry(entry: str, axes: tuple[str, ...]) -> None:
    assert listed_axes(entry) == axes


def test_types_in_an_entry() -> None:
    assert dtype_of("(LongTensor): (B,)") == dtype_of("int64 indices") == "int64"
    assert dtype_of("(BoolTensor): which") == "bool"
    assert dtype_of("(torch.Tensor): points") == ""


def test_one_name_is_one_symbol() -> None:
    naming = AxisSymbols({"hidden_size": 64}, 32)
    assert naming.dims(("batch", "t", "dim")) == ("B", "L", "C")
    assert naming.dims(("batch", "hidden_size")) == ("B", "Cn1")
    assert naming.dims(("batch", "s", "h*w", "3")) == ("B", "Ln1", "H*W", "Cn2")
    assert naming.sizes == {"B": 2, "L": 24, "C": 32, "Cn1": 64, "Ln1": 28, "H": 12, "W": 20, "Cn2": 3}


def test_volumes_and_videos() -> None:
    assert AxisSymbols({}, 16).dims(("b", "c", "d", "h", "w")) == ("B", "C", "T", "H", "W")
    assert AxisSymbols({}, 16).dims(("b", "t", "c", "h", "w")) == ("B", "T", "C", "H", "W")
    assert AxisSymbols({}, 16).dims(("n", "n_points", "2")) == ("B", "L", "C")
