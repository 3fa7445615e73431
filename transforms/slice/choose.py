"""Choose among the pieces of one pattern, and probe those that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.cut import CutPiece
from kernelquarry.pipeline.schema.outcome import Dropped, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed, SliceOrigin
from kernelquarry.transforms.probe.probe_module import probe

MOST_OF_PATTERN = 4  # pieces that differ in settings


def choose(pieces: Iterable[CutPiece]) -> list[CutPiece | Dropped]:
    """Keep one piece of each form, at most `MOST_OF_PATTERN`: those that occur most often, then by their digests.

    Those that stay note in how many modules the pattern occurs.
    """
    ordered = sorted(pieces, key=lambda piece: (len(piece.module.code), piece.id, piece.module.slice_of[0].module))
    modules = len({_copies(piece.module.slice_of[0]) for piece in ordered})
    counts = Counter(piece.form for piece in ordered)
    forms = sorted(counts, key=lambda form: (-counts[form], form))[:MOST_OF_PATTERN]
    kept: dict[str, CutPiece] = {}
    lost: list[Dropped] = []
    for piece in ordered:
        first = kept.get(piece.form)
        if first is not None:
            lost.append(Dropped(piece.id, Reason.SAME_PIECE, first.id))
        elif piece.form not in forms:
            lost.append(Dropped(piece.id, Reason.OVER_PATTERN, f"{len(counts)} forms of pattern {piece.pattern}"))
        else:
            (origin,) = piece.module.slice_of
            module = replace(piece.module, slice_of=(replace(origin, modules=modules),))
            kept[piece.form] = replace(piece, module=module)
    return [*kept.values(), *lost]


def _copies(origin: SliceOrigin) -> str:
    """A key that the module and its copies share."""
    return origin.signature or origin.module


def count_modules(slices: Sequence[Probed], is_whole: bool) -> list[Probed]:
    """The slices of one operator signature: patterns that differ in reshapes or spellings count as one.

    Args:
        is_whole: some whole module has the signature too.
    """
    origins = [origin for each in slices for origin in each.module.slice_of]
    modules = max((len(set(map(_copies, origins))) + is_whole, *(origin.modules for origin in origins)), default=0)
    return [
        replace(each, module=replace(each.module, slice_of=(replace(each.module.slice_of[0], modules=modules),)))
        for each in slices
    ]


def probe_piece(piece: CutPiece, sandbox: Sandbox) -> Outcome[Probed]:
    """The piece with the sizes that it had in its module as first workload."""
    return probe(piece.module, sandbox, own_inputs=piece.own_inputs)
