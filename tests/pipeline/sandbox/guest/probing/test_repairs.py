"""Repairs of calls that really fail: a guess that runs must be among the first few."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kernelquarry.pipeline.sandbox.guest.lib import pytree
from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import Failure, attempt
from kernelquarry.pipeline.sandbox.guest.probing.guess import (
    ANY_KEYS,
    SIZES,
    Arg,
    Guess,
    ListArg,
    PlainArg,
    SizesArg,
    TensorArg,
    draw,
)
from kernelquarry.pipeline.sandbox.guest.probing.repairs import planar, repairs

X = TensorArg("x", ("B", "C", "H", "W"))
ROWS = TensorArg("x", ("B", "C"))
SEQUENCE = TensorArg("x", ("B", "L", "C"))


def other(*dims: str) -> TensorArg:
    return TensorArg("y", dims)


# name -> (function, arguments, number of repairs of which one must run)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Arg, ...], int]] = {
    "linear layer": (nn.Linear(24, 3), (SEQUENCE,), 1),
    "convolution": (nn.Conv2d(6, 2, 3), (X,), 1),
    "convolution of another rank": (nn.Conv1d(16, 2, 3), (X,), 2),
    "batch normalisation": (nn.BatchNorm2d(6), (X,), 1),
    "layer normalisation": (nn.LayerNorm(6), (SEQUENCE,), 4),
    "group normalisation": (nn.GroupNorm(3, 12), (X,), 4),
    "groups": (lambda x: F.group_norm(x, 3), (X,), 1),
    "sum": (lambda x, y: x + y, (X, other("B", "C", "W", "H")), 1),
    "concatenation": (lambda x, y: torch.cat([x, y], 1), (SEQUENCE, other("B", "L", "H")), 1),
    "product": (lambda x, y: x @ y, (SEQUENCE, other("B", "L", "C")), 1),
    "einsum": (lambda x, y: torch.einsum("bnc,bmc->bnm", x, y), (SEQUENCE, other("B", "L", "H")), 1),
    "recurrence": (nn.GRU(6, 4, batch_first=True), (SEQUENCE,), 1),
    "prelu": (nn.PReLU(6), (X,), 1),
    "embedding": (nn.Embedding(8, 2), (ROWS,), 1),
    "embedding of few": (nn.Embedding(3, 2), (TensorArg("x", ("B", "L"), "int64", 0, 8),), 2),
    "lookup of few": (torch.ones(3).__getitem__, (TensorArg("x", ("B", "L"), "int64", 0, 8),), 2),
    "mask": (lambda x, y: x.masked_fill(y, 0), (X, other("B", "C", "H", "W")), 2),
    "negated mask": (lambda x, y: torch.where(y, x, 0), (X, other("B", "C", "H", "W")), 2),
    "integers that are floats": (lambda x: x.mean(), (TensorArg("x", ("B", "L"), "int64", 0, 8),), 1),
    "rank by unpacking": (lambda x: [d for d in [x.shape] for a, b, c in [d]], (X,), 1),
    "rank by permuting": (lambda x: x.permute(0, 2, 1), (X,), 1),
    "axis out of range": (lambda x: x.mean(3), (SEQUENCE,), 1),
    "whole shape": (lambda x, y: x if y.shape == (2, 1, 24, 24) else 1 / other_shape(y), (SEQUENCE, X), 1),
    "named shape": (lambda x: x if x.dim() == 2 else 1 / raise_("input must be (batch, features)"), (X,), 1),
    "chunks": (lambda x: x.unflatten(1, (7, -1)), (X,), 1),
    "one chunk": (lambda x: x.unflatten(1, (7, 2)), (X,), 1),
    "rank by expanding": (lambda x: x.expand(2, -1, -1), (X,), 2),
    "view of the first axes": (lambda x: x.view(*x.shape[:2], 1), (SEQUENCE,), 3),
    "split": (lambda x: x.split([5, 6], 1), (X,), 1),
    "large kernel": (lambda x: F.conv2d(x, torch.ones(1, 16, 21, 21)), (X,), 7),
    "last pool": (lambda x: F.avg_pool2d(F.max_pool2d(x, 4), 8), (X,), 9),
    "a list of tensors": (lambda x: torch.stack(x, 0), (X,), 1),
    "one tensor": (nn.AvgPool1d(3), (ListArg((SEQUENCE, SEQUENCE)),), 1),
    "one tensor with its methods": (lambda x: x.sum(), (ListArg((SEQUENCE, SEQUENCE)),), 1),
    "one tensor for a dict": (lambda x: x.sum(), (ListArg((SEQUENCE, SEQUENCE), ANY_KEYS),), 1),
    "an image to resize": (lambda x: F.interpolate(x, size=(8, 10), mode="bilinear"), (SEQUENCE,), 1),
    "an image of a size": (lambda x: F.interpolate(x, torch.Size([8, 10]), mode="bilinear"), (SEQUENCE,), 1),
    "an image to scale": (lambda x: F.interpolate(x, scale_factor=(2, 2), mode="bilinear"), (SEQUENCE,), 1),
    "a pool of another rank": (nn.AvgPool1d(3), (X,), 1),
    "a key": (lambda x: x["mean"].sqrt(), (ListArg((ROWS, ROWS), ANY_KEYS),), 1),
    "a key of indices": (lambda x: torch.ones(9)[x["idx_i"]], (ListArg((ROWS, ROWS), ANY_KEYS),), 1),
    "another key": (lambda x: x["x"] + x["mean"], (ListArg((ROWS,), ("x",)),), 1),
    "a number": (lambda x, y: x.repeat_interleave(int(y), 1), (X, other("B", "C")), 2),
    "a count": (lambda x, y: [x for _ in range(y)], (X, other("B")), 2),
}  # fmt: skip


def other_shape(y: Tensor) -> int:
    return raise_(f"the mask should be of size (2, 1, 24, 24), but is {y.shape}")


def raise_(message: str) -> int:
    raise ValueError(message)


def guess(*args: Arg) -> Guess:
    return Guess(args, tuple(SIZES[0].items()))


def call(function: Callable[..., Any], guess: Guess) -> Failure | None:
    tensors = draw(guess.specs(), 0)
    return attempt(lambda: function(*pytree.fill(guess.tree(), tensors)), __file__)[1]


@pytest.mark.parametrize("name", CALLS)
def test_one_of_the_first_repairs_runs(name: str) -> None:
    function, args, number = CALLS[name]
    first = guess(*args)
    failure = call(function, first)
    assert failure is not None
    tried = list(islice(repairs(first, failure, {}), number))
    assert any(call(function, repaired) is None for repaired in tried), (failure, [g.specs() for g in tried])


def failure(message: str, kind: str = "RuntimeError", names: tuple[str, ...] = ()) -> Failure:
    return Failure(kind, message, 1, names, names)


def test_a_needed_optional_argument_is_added() -> None:
    failed = failure("'NoneType' object has no attribute 'shape'", "AttributeError", ("context",))
    found = [g for g in repairs(guess(SEQUENCE), failed, {"context": 3, "mask": 1}) if len(g.args) == 4]
    assert found[0].args == (SEQUENCE, PlainArg(None), PlainArg(None), TensorArg("context", ("B", "L", "C")))
    assert not [g for g in repairs(guess(SEQUENCE), failure("bad size"), {"context": 3}) if len(g.args) > 1]


def test_a_type_error_changes_no_sizes() -> None:
    for kind, expected in (("RuntimeError", True), ("TypeError", False)):
        found = repairs(guess(X), failure("unknown", kind), {})
        assert any(g.args == (X,) for g in found) is expected


def test_the_tensor_in_the_failed_expression_is_changed_first() -> None:
    y = TensorArg("y", ("B", "C"))
    failed = failure("expected 3D input", names=("y",))
    first = next(iter(repairs(guess(X, y), failed, {})))
    assert first.args[0] == X and len(first.specs()[1].shape) == 3


def test_a_required_shape_has_the_sizes_of_the_other_tensors() -> None:
    failed = failure("the mask should be of size (2, 1, 24, 24, 7), but is torch.Size([2, 16, 12, 20])")
    mask = next(iter(repairs(guess(SEQUENCE, X), failed, {}))).args[1]
    assert isinstance(mask, TensorArg) and [*mask.dims[:1], *mask.dims[2:4]] == ["B", "L", "L"]


def test_a_required_shape_keeps_the_symbols_of_axes_that_stay() -> None:
    failed = failure("the image must be (2, 16, 7, 7), but is (2, 16, 12, 20)")
    repaired = next(iter(repairs(guess(X), failed, {})))
    (image,) = repaired.args
    assert isinstance(image, TensorArg) and image.dims[:2] == ("B", "C") and image.dims[2] == image.dims[3]
    assert repaired.specs()[0].shape == (2, 16, 7, 7)


def test_planes() -> None:
    flat = planar(guess(SEQUENCE, SizesArg(("H", "W"))))
    assert flat.specs()[0].shape == (2, 240, 16) and flat.tree()[1] == [12, 20]


def test_an_empty_size_is_no_fraction() -> None:
    empty = guess(SEQUENCE).resized({"C": 0})
    found = list(repairs(empty, failure("mat1 and mat2 shapes cannot be multiplied (48x4 and 6x3)"), {}))
    assert all(each.sizes for each in found)


def test_repairs_end() -> None:
    for message in ("", "1 2 3 4 5 6 7 8 9 10 11 12", "shape '[0, -1]' is invalid for input of size 0", "x" * 9999):
        found = list(repairs(guess(X, SEQUENCE), failure(message), {"z": 2}))
        assert len(found) < 2000
        assert all(isinstance(tensor, Tensor) for g in found[:20] for tensor in draw(g.specs(), 0))


def test_an_error_about_a_domain_gives_numbers_from_0_to_1() -> None:
    found = repairs(guess(X), failure("", "InputOutsideDomain"), {})
    assert any(spec.low == 0 and spec.high == 1 for each in found for spec in each.specs())
