"""Operator families that no training row has: a row with one is a test row, whatever its cluster.

The test split then shows how a trained model handles an operator, or a pair of operators, that its training data lack.
The lists are part of the dataset's contract: an entry that is added moves rows from the train split to the test split.
Each is in less than 1 % of the modules that probe accepts from the corpus `tiny`, all together in 5 %.
"""

from __future__ import annotations

from collections.abc import Iterable

from .triviality import base_name

HELD_OUT_OPERATORS = frozenset(
    "_cdist_forward atan2 bucketize col2im cumprod grid_sampler_2d grid_sampler_3d hardshrink im2col lerp "
    "log_sigmoid_forward logcumsumexp max_pool3d_with_indices mish mish_ pixel_shuffle pixel_unshuffle polar renorm "
    "replication_pad3d searchsorted softshrink upsample_bicubic2d".split()
)
HELD_OUT_PAIRS = tuple(
    frozenset(pair.split(" + "))
    for pair in (
        "_softmax + silu",
        "avg_pool2d + max_pool2d_with_indices",
        "gelu + native_batch_norm",
        "gelu + sigmoid",
        "max_pool2d_with_indices + upsample_bilinear2d",
        "native_layer_norm + sum",
    )
)


def is_held_out(operators: Iterable[str]) -> bool:
    """True if the operators of a module, with or without namespace and overload, include a held-out family."""
    names = frozenset(map(base_name, operators))
    return bool(names & HELD_OUT_OPERATORS) or any(pair <= names for pair in HELD_OUT_PAIRS)
