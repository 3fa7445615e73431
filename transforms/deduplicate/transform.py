"""Stage `deduplicate`: modules -> distinct modules, each with its cluster."""

from __future__ import annotations

from typing import Self

import apache_beam as beam

from kernelquarry.pipeline.runtime.multiprocess import OnAllCores
from kernelquarry.pipeline.schema.arrow import pack, unpack
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Outcome
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.similarity.form import COPIES, KIN, Relation
from kernelquarry.transforms.stage_transform import StageContext, StageTransform, report

from .cluster import bands_by_bucket, component_of, connect, link_key_holders, link_similar, shared_bands
from .compare_sources import ClusterOrDrop, Member, form_all, name_cluster, outcome_of, pick_form, settle

_KEY = 16  # hex digits of a source's digest that tell it from others


class DeduplicateModules(StageTransform):
    """Modules -> an outcome for each: kept with its cluster, or dropped as a copy of the one that stays.

    Sources are compared only with those that share a band, each distinct source once; modules themselves wait until
    each has a decision. What must be in one place are the links that were found.
    """

    needs_all_records = True

    def __init__(self, slices: beam.PTransform | None = None) -> None:
        super().__init__()
        self._slices = slices

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        return cls(context.extra_records)

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        if self._slices is not None:
            modules = (modules, modules.pipeline | "Slices" >> self._slices) | "With slices" >> beam.Flatten()
        formed = modules | "Batch" >> beam.BatchElements(64, 512) | "Form" >> beam.ParDo(OnAllCores(form_all))
        errors = formed | "Errors" >> beam.Filter(lambda found: isinstance(found, Errored))
        members = formed | "Members" >> beam.Filter(lambda found: isinstance(found, Member))
        settled = members | "Copies" >> _Connect(COPIES) | "Settle" >> beam.FlatMap(settle)
        dropped = settled | "Copied" >> beam.Filter(lambda found: isinstance(found, Dropped))
        stay = settled | "Stay" >> beam.Filter(lambda found: isinstance(found, Member))
        decisions = (
            dropped | "Dropped" >> beam.Map(lambda loss: (loss.id, loss)),
            stay | "Kin" >> _Connect(KIN) | "Name" >> beam.FlatMap(name_cluster),
        ) | "Decisions" >> beam.Flatten()
        decided = (
            {"module": modules | "By id" >> beam.Map(lambda module: (module.id, pack(module))), "decision": decisions}
            | "With decision" >> beam.CoGroupByKey()
            | "Outcome" >> beam.FlatMapTuple(lambda _, found: map(_apply_decision, found["module"], found["decision"]))
        )
        outcomes = (errors, decided) | beam.Flatten()
        return outcomes | "Report" >> beam.Map(lambda outcome: report("deduplicate", outcome))


def _apply_decision(module: bytes, decision: ClusterOrDrop) -> Outcome[Probed]:
    return outcome_of(unpack(module, Probed), decision)


class _Connect(beam.PTransform):
    """Members -> lists of those that a chain of a relation connects."""

    def __init__(self, relation: Relation) -> None:
        super().__init__()
        self._relation = relation

    def expand(self, members: beam.PCollection) -> beam.PCollection:
        sources = (
            members
            | "By source" >> beam.Map(lambda member: (member.form.exact, member.form))
            | "Sources" >> beam.GroupByKey()
            | "One each" >> beam.MapTuple(lambda exact, forms: (exact, pick_form(forms)))
        )
        components = (
            (self._equal(sources), self._similar(sources))
            | "Links" >> beam.Flatten()
            | "All links" >> beam.combiners.ToList()
            | "Connect" >> beam.Map(connect)
        )
        return (
            members
            | "To component"
            >> beam.Map(
                lambda member, components: (component_of(member.form, components), member),
                beam.pvalue.AsSingleton(components),
            )
            | "Components" >> beam.GroupByKey()
            | "Of one" >> beam.MapTuple(lambda _, found: list(found))
        )

    def _equal(self, sources: beam.PCollection) -> beam.PCollection:
        """Links between sources that share a key."""
        keys = self._relation.keys
        return (
            sources
            | "By key" >> beam.FlatMapTuple(lambda exact, form: [(key, exact) for key in keys(form)])
            | "Equal" >> beam.GroupByKey()
            | "Link" >> beam.FlatMapTuple(lambda _, exacts: link_key_holders(list(exacts)))
        )

    def _similar(self, sources: beam.PCollection) -> beam.PCollection:
        """Links between sources that share a band and are similar."""
        relation = self._relation
        forms = sources | "Short keys" >> beam.MapTuple(lambda exact, form: (exact[:_KEY], form))
        shared = (  # most bands are held by one source alone: those go before whole forms are moved around
            forms
            | "Whole" >> beam.Filter(lambda named: not named[1].is_slice)
            | "Batch" >> beam.BatchElements(64, 512)
            | "By bucket" >> beam.FlatMap(bands_by_bucket)
            | "Holders" >> beam.GroupByKey()
            | "Shared" >> beam.FlatMapTuple(lambda _, parts: shared_bands(parts))
        )
        return (
            {"forms": forms, "bands": shared}
            | "With bands" >> beam.CoGroupByKey()
            | "Spread"
            >> beam.FlatMapTuple(lambda _, found: [(band, form) for form in found["forms"] for band in found["bands"]])
            | "Neighbours" >> beam.GroupByKey()
            | "Compare" >> beam.FlatMapTuple(lambda _, forms: link_similar(forms, relation))
        )
