"""The copying check: the training row whose kernel is nearest to each right answer.

The similarity is that of deduplication: the Jaccard similarity of runs of five tokens, without comments, annotations
and formatting.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.schema.files import replace_file
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.records import Pair

from .answers import Answer, Score

COPIED = 0.9  # similarity from which a right answer counts as a copy


@dataclass(frozen=True, slots=True)
class Nearest:
    """One line of `nearest.jsonl`: a right answer, and the nearest kernel of training."""

    problem: str
    sample: int
    pair: str
    similarity: float  # 1 for the same text up to formatting


def nearest_rows(answers: Sequence[Answer], scores: Sequence[Score], trained: Iterable[Pair]) -> list[Nearest]:
    """The nearest row of `trained` for each right answer; none if nothing was trained on."""
    is_right = {(score.problem, score.sample) for score in scores if not score.why}
    right = [answer for answer in answers if (answer.problem, answer.sample) in is_right]
    kernels = {pair.triton_code: pair.id for pair in trained}
    if not right or not kernels:
        return []
    ids, rows = list(kernels.values()), list(map(_shingles, kernels))
    sizes = np.array(list(map(len, rows)))
    shingles, owners = np.concatenate(rows), np.repeat(np.arange(len(rows)), sizes)
    order = np.argsort(shingles, kind="stable")
    shingles, owners = shingles[order], owners[order]
    found = []
    for answer in right:
        own = _shingles(read_answer(answer.text))
        starts, ends = np.searchsorted(shingles, own), np.searchsorted(shingles, own, "right")
        places = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
        shared = np.bincount(owners[places.astype(np.int64)], minlength=len(rows))
        similarity = shared / np.maximum(1, sizes + len(own) - shared)
        best = int(similarity.argmax())
        found.append(Nearest(answer.problem, answer.sample, ids[best], round(float(similarity[best]), 4)))
    return found


def _shingles(code: str) -> np.ndarray:
    """Distinct checksums of the runs of five tokens, sorted; those of the text as it is if it does not parse."""
    from kernelquarry.transforms.similarity import normal_form
    from kernelquarry.transforms.similarity.form import SHINGLE, shingles, tokens

    with suppress(SyntaxError, RecursionError):
        code = ast.unparse(normal_form.exact(code))
    return np.frombuffer(shingles(tokens(code), SHINGLE), np.uint32)


def write_nearest(path: Path, found: Sequence[Nearest]) -> None:
    with replace_file(path) as stream:
        stream.writelines(f"{canonical(asdict(each))}\n".encode() for each in found)


def shares(found: Sequence[Nearest]) -> dict[str, float]:
    """Number of right answers, their median similarity, and the share of copies; empty without right answers."""
    values = [each.similarity for each in found]
    if not values:
        return {}
    copies = sum(value >= COPIED for value in values)
    return {"answers": len(values), "median": median(values), "copied": copies / len(values)}


def describe(shares: dict[str, float]) -> str:
    return f"median similarity {shares['median']:.2f}, {100 * shares['copied']:.1f} % at least {COPIED}"
