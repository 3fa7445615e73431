"""Stage `mine`: Python files -> self-contained nn.Module classes, each distinct source once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, SourceFile
from kernelquarry.transforms.read import compositions
from kernelquarry.transforms.stage_transform import Counted, StageTransform, report

from .distinct import keep_one, place_of
from .mine_tree import mine_tree


class MineTrees(StageTransform):
    """Source files -> an outcome for each file ("scan") and for each class found in them ("mine").

    Files are mined together with the rest of their package, since a class may need definitions of its
    neighbours. The same module found twice is kept once, where its source reference is the smallest.
    """

    @staticmethod
    def partition_key(record: SourceFile) -> str:
        """The file's tree, which is mined as a whole."""
        return f"{record.source.package}@{record.source.revision}"

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        tagged = (
            files
            | "Tree" >> beam.Map(lambda file: ((file.source.package, file.source.revision), file))
            | "Gather trees" >> beam.GroupByKey()
            | "Mine" >> beam.FlatMapTuple(lambda _, tree: _mine(tree))
        )
        scanned = (
            tagged | "Files" >> beam.Filter(lambda pair: pair[0] == "scan") | "Files reported" >> beam.MapTuple(report)
        )
        classes = tagged | "Classes" >> beam.Filter(lambda pair: pair[0] == "mine") | beam.Values()
        distinct = (
            classes
            | "By module" >> beam.Map(lambda outcome: (outcome.id, outcome))
            | "Gather copies" >> beam.GroupByKey()
            | "Keep one" >> beam.FlatMapTuple(lambda _, copies: keep_one(copies))
            | "Report" >> beam.Map(lambda outcome: report("mine", outcome))
        )
        return (scanned, distinct) | beam.Flatten()


def _mine(tree: Iterable[SourceFile]) -> Iterator[Counted]:
    files: dict[str, SourceFile] = {}
    for file in sorted(tree, key=lambda file: (file.id, file.source.sha256)):
        if files.setdefault(file.id, file) is not file:  # tables may hold a path twice, in places far apart
            yield "scan", Dropped(file.id, Reason.DUPLICATE_PATH, file.source.sha256[:16])
    result = mine_tree(list(files.values()))
    yield from (("scan", outcome) for outcome in result.files)
    for outcome in result.classes:
        yield "mine", _drop_part(outcome)


def _drop_part(outcome: Outcome[Module]) -> Outcome[Module]:
    """Drop a class that is only a part of a composition: it was mined where it comes from."""
    if (
        isinstance(outcome, Kept)
        and compositions.is_composed(outcome.record)
        and outcome.record.name != compositions.NAME
    ):
        return Dropped(place_of(outcome.record), Reason.PART_OF_COMPOSED, outcome.record.name)
    return outcome
