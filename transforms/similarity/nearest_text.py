"""Find the text that is nearest to another one, by the runs of tokens that both have."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from . import normal_form
from .form import SHINGLE, shingles, tokens


def nearest(codes: Iterable[str], among: Sequence[str]) -> Iterator[tuple[int, float]]:
    """For each code the place of the one among others with the largest similarity, the first of equals; and that.

    The similarity is that of deduplication: the Jaccard similarity of runs of five tokens, without comments,
    annotations, formatting and `get_inputs()`.
    """
    rows = list(map(_shingles, among))
    sizes = np.array(list(map(len, rows)))
    known, owners = np.concatenate(rows), np.repeat(np.arange(len(rows)), sizes)
    order = np.argsort(known, kind="stable")
    known, owners = known[order], owners[order]
    for own in map(_shingles, codes):
        starts, ends = np.searchsorted(known, own), np.searchsorted(known, own, "right")
        places = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
        shared = np.bincount(owners[places.astype(np.int64)], minlength=len(rows))
        similarity = shared / np.maximum(1, sizes + len(own) - shared)
        best = int(similarity.argmax())
        yield best, float(similarity[best])


def _shingles(code: str) -> np.ndarray:
    """Distinct checksums of the runs of five tokens, sorted; those of the text as it is if it does not parse."""
    with suppress(SyntaxError, RecursionError):
        code = ast.unparse(normal_form.exact(code))
    return np.frombuffer(shingles(tokens(code), SHINGLE), np.uint32)
