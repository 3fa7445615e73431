"""Stage `slice`: probed modules -> small modules that are pieces of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import apache_beam as beam

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.arrow import pack, unpack
from kernelquarry.pipeline.schema.cut import Cut, CutPiece
from kernelquarry.pipeline.schema.ids import canonical, in_share
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of
from kernelquarry.transforms.stage_transform import StageContext, StageTransform, apply_work, report

from .choose import choose, count_modules, probe_piece
from .cut_module import cut

_CUT = Work("cut", cut, Cut, ExecutionMode.GUESTS, jobs=("slice",))
_PROBE = Work("slice", probe_piece, Probed, ExecutionMode.GUESTS, jobs=("probe",))


class SliceModules(StageTransform):
    """Modules -> an outcome for each (line "cut"), and one for each of their pieces (line "slice").

    The modules themselves are not among the kept records: `deduplicate` reads both.
    """

    needs_all_records = True
    store_name = "slice"

    def __init__(self, context: StageContext) -> None:
        super().__init__()
        self._context = context

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        return cls(context)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        return {"share": canonical(context.settings.slice.share)}

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        share = self._context.settings.slice.share
        drawn, others = modules | beam.Partition(lambda module, _: int(not in_share("slice", module.id, share)), 2)
        cuts = drawn | "Cut" >> apply_work(_CUT, self._context)
        chosen = (
            cuts
            | "Pieces" >> beam.FlatMap(_pieces)
            | "Of one pattern" >> beam.GroupByKey()
            | "Choose" >> beam.FlatMapTuple(lambda _, packed: choose(unpack(each, CutPiece) for each in packed))
            | "Spread" >> beam.Reshuffle()
        )
        probed = (
            chosen
            | "Chosen" >> beam.Filter(lambda found: isinstance(found, CutPiece))
            | "Probe" >> apply_work(_PROBE, self._context)
        )
        kept = (
            {
                "slices": probed | "By signature" >> beam.FlatMap(_signed),
                "modules": modules | "Signatures" >> beam.Map(lambda module: (_signature(module), module.id)),
            }
            | "Of one signature" >> beam.CoGroupByKey()
            | "Count modules"
            >> beam.FlatMapTuple(
                lambda _, found: count_modules(
                    [unpack(packed, Probed) for packed in found["slices"]], bool(list(found["modules"]))
                )
            )
        )
        lost = (
            chosen | "Left out" >> beam.Filter(lambda found: isinstance(found, Dropped)),
            cuts | "Not written" >> beam.FlatMap(_losses),
        ) | "Lost" >> beam.Flatten()
        return (
            cuts | "Of modules" >> beam.Map(lambda outcome: ("cut", outcome)),
            others | "Not drawn" >> beam.Map(lambda module: report("cut", Dropped(module.id, Reason.NOT_DRAWN, ""))),
            kept | "Of kept" >> beam.Map(lambda piece: ("slice", Kept(piece))),
            probed
            | "Unfit" >> beam.Filter(lambda outcome: not isinstance(outcome, Kept))
            | "Of unfit" >> beam.Map(lambda outcome: ("slice", outcome)),
            lost | "Of lost" >> beam.Map(lambda outcome: report("slice", outcome)),
        ) | beam.Flatten()


def _pieces(outcome: Outcome[Cut]) -> Iterator[tuple[str, bytes]]:
    for piece in outcome.record.pieces if isinstance(outcome, Kept) else ():
        yield piece.pattern, pack(piece)


def _signed(outcome: Outcome[Probed]) -> Iterator[tuple[str, bytes]]:
    if isinstance(outcome, Kept):
        yield _signature(outcome.record), pack(outcome.record)


def _signature(probed: Probed) -> str:
    return signature_of(paths_of(probed.graph)) or probed.id


def _losses(outcome: Outcome[Cut]) -> Iterator[Outcome[Any]]:
    for loss in outcome.record.lost if isinstance(outcome, Kept) else ():
        yield loss.outcome
