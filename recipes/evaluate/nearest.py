"""The copying check: the training row whose kernel is nearest to each right answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

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
    from kernelquarry.transforms.similarity.nearest_text import nearest

    is_right = {(score.problem, score.sample) for score in scores if not score.why}
    right = [answer for answer in answers if (answer.problem, answer.sample) in is_right]
    kernels = {pair.triton_code: pair.id for pair in trained}
    if not right or not kernels:
        return []
    ids = list(kernels.values())
    found = nearest((read_answer(answer.text) for answer in right), list(kernels))
    return [
        Nearest(answer.problem, answer.sample, ids[place], round(similarity, 4))
        for answer, (place, similarity) in zip(right, found, strict=True)
    ]


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
