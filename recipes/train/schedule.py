"""The order of training rows: a curriculum of phases, packed into sequences without a change of the order.

TRL packs the longest rows first, which mixes the phases, so rows are packed here and the trainer reads the sequences
in order. At most `_OPEN` sequences are filled at the same time; a row is never cut.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import Kind, PhaseSection, SftSection
from kernelquarry.transforms.read.compositions import PACKAGE as COMPOSED

_OPEN = 16  # sequences: a row is at most this many sequences away from its place


def kind_of(pair: Pair) -> Kind:
    """The kind of the pair's module: a key of `sft.weights`."""
    if pair.slice_of:
        return "slices"
    return "composed" if pair.source.corpus == COMPOSED else "modules"


def schedule(pairs: Sequence[Pair], section: SftSection) -> list[int]:
    """Indices of the pairs in order of training, with repetitions. Rows are shuffled within each pass of a phase."""
    order: list[int] = []
    for number, phase in enumerate(section.phases or (PhaseSection(epochs=section.epochs),)):
        draw = random.Random(f"{section.seed}.{number}")
        rows = [index for index, pair in enumerate(pairs) if is_within(pair, phase)]
        for done in range(math.ceil(phase.epochs)):
            weights = [section.weights.get(kind_of(pairs[index]), 1.0) for index in rows]
            drawn = [index for index, weight in zip(rows, weights, strict=True) for _ in range(_times(weight, draw))]
            draw.shuffle(drawn)
            drawn = _first_of_each(drawn, pairs, phase.alike)
            order += drawn[: round(len(drawn) * min(1.0, phase.epochs - done))]
    return order


def _times(weight: float, draw: random.Random) -> int:
    """The weight, rounded up or down at random so that its mean is the weight."""
    return int(weight) + (draw.random() < weight % 1)


def _first_of_each(drawn: Sequence[int], pairs: Sequence[Pair], alike: int) -> list[int]:
    """The first `alike` rows of each set of operators; 0: all rows."""
    kept, found = [], Counter[frozenset[str]]()
    for index in drawn:
        operators = frozenset(pairs[index].operators)
        found[operators] += 1
        if not alike or found[operators] <= alike:
            kept.append(index)
    return kept


def is_within(pair: Pair, phase: PhaseSection) -> bool:
    """True if no measure of the pair is beyond the phase's limits."""
    measures = pair.measures
    limits = (
        (measures.operators, phase.operators),
        (measures.depth, phase.depth),
        (measures.kernels, phase.kernels),
        (measures.tokens, phase.tokens),
    )
    return all(not limit or 0 <= value <= limit for value, limit in limits)


def pack(lengths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield sequences of indices whose lengths sum to at most `room`; each goes into the first open one with room."""
    bins: list[list[int]] = []
    rest: list[int] = []  # of the room, by open sequence
    for index, length in enumerate(lengths):
        place = next((place for place, free in enumerate(rest) if length <= free), None)
        if place is None:
            if len(bins) == _OPEN:
                yield bins.pop(0)
                rest.pop(0)
            bins.append([])
            rest.append(room)
            place = -1
        bins[place].append(index)
        rest[place] -= length
    yield from bins
