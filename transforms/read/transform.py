"""Stage `read`: a corpus -> its Python files, each with its licence."""

from __future__ import annotations

from dataclasses import asdict
from typing import Self

import apache_beam as beam

from kernelquarry.filters.licence_policy import LicencePolicy
from kernelquarry.filters.optout import OptOut
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.parts import Part
from kernelquarry.transforms.stage_transform import StageContext, StageTransform, report

from .corpus import Corpus
from .piece_cache import read_once


class ReadCorpus(StageTransform):
    """Shards of a corpus -> an outcome for each Python file.

    A shard is cut where its reader runs, and its pieces are spread over all workers.
    """

    def __init__(
        self, corpus: Corpus, opt_out: OptOut, policy: LicencePolicy, fingerprint: str, part: Part | None = None
    ) -> None:
        super().__init__()
        self._corpus, self._opt_out, self._policy = corpus, opt_out, policy
        self._fingerprint, self._part = fingerprint, part

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        assert context.corpus is not None and context.opt_out is not None
        return cls(context.corpus, context.opt_out, context.settings.licence, context.fingerprint.key, context.part)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        assert context.corpus is not None and context.opt_out is not None
        policy = canonical(asdict(context.settings.licence))
        return {**context.corpus.digests(), "opt-out.txt": context.opt_out.digest, "licence-policy": policy}

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        shards = list(self._corpus.shards())
        if self._part is not None:
            shards = [shard for number, shard in enumerate(shards) if self._part.holds(number)]
        return (
            begin
            | "Shards" >> beam.Create(shards)
            | "Cut" >> beam.FlatMap(lambda shard: shard.pieces())
            | "Spread" >> beam.Reshuffle()
            | "Read files" >> beam.FlatMap(read_once, self._opt_out, self._policy, self._fingerprint)
            | "Report" >> beam.Map(lambda outcome: report("read", outcome))
        )
