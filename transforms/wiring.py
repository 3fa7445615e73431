"""The Beam transforms of the stages that look at more than one record at once.

Each makes (line of the funnel, outcome) pairs; the work itself is done by functions that know nothing of Beam.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np

from kernelquarry.filters.balance import NAMES, Caps, Keys, cap, keys_of
from kernelquarry.filters.optout import OptOut
from kernelquarry.pipeline.runtime import events
from kernelquarry.pipeline.runtime.multiprocess import OnAllCores
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.arrow import pack, unpack
from kernelquarry.pipeline.schema.distill_result import DistillResult
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.parts import Part
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, Pair, Probed, SourceFile, Verified

from .decontaminate import DEFAULT, Fingerprint, Hit, Ladder, Thresholds, render_hits
from .decontaminate.benchmark_index import read_all
from .decontaminate.controls import BENCHMARK, PREFIX, check
from .decontaminate.module_fingerprint import fingerprint_all
from .decontaminate.plant import Controls, plant
from .deduplicate.cluster import component_of, connect, link_key_holders, link_similar
from .deduplicate.compare_sources import ClusterOrDrop, Member, form_all, name_cluster, outcome_of, pick_form, settle
from .mine import mine_tree
from .read import Corpus, compositions, read_once
from .similarity.form import COPIES, KIN, Form, Relation

_BUCKETS = 1024  # that bands are grouped in
_KEY = 16  # hex digits of a source's digest that tell it from others
Tagged = tuple[str, Outcome[Any]]


def _report(stage: str, outcome: Outcome[Any]) -> Tagged:
    events.advance(stage, outcome.record.id if isinstance(outcome, Kept) else outcome.id, outcome)
    return stage, outcome


class ReadCorpus(beam.PTransform):
    """Shards of a corpus -> an outcome for each Python file.

    A shard is cut where its reader runs, and its pieces are spread over all workers.
    """

    def __init__(self, corpus: Corpus, opt_out: OptOut, fingerprint: str, part: Part | None = None) -> None:
        super().__init__()
        self._corpus, self._opt_out, self._fingerprint = corpus, opt_out, fingerprint
        self._part = part

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        shards = list(self._corpus.shards())
        if self._part is not None:
            shards = [shard for number, shard in enumerate(shards) if self._part.holds(number)]
        return (
            begin
            | "Shards" >> beam.Create(shards)
            | "Cut" >> beam.FlatMap(lambda shard: shard.pieces())
            | "Spread" >> beam.Reshuffle()
            | "Read files" >> beam.FlatMap(read_once, self._opt_out, self._fingerprint)
            | "Report" >> beam.Map(lambda outcome: _report("read", outcome))
        )


class MineTrees(beam.PTransform):
    """Source files -> an outcome for each file ("scan") and for each class found in them ("mine").

    Files are mined together with the rest of their package, since a class may need definitions of its
    neighbours. The same module found twice is kept once, where its source reference is the smallest.
    """

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        tagged = (
            files
            | "Tree" >> beam.Map(lambda file: ((file.source.package, file.source.revision), file))
            | "Gather trees" >> beam.GroupByKey()
            | "Mine" >> beam.FlatMapTuple(lambda _, tree: _mine(tree))
        )
        scanned = (
            tagged | "Files" >> beam.Filter(lambda pair: pair[0] == "scan") | "Files reported" >> beam.MapTuple(_report)
        )
        classes = tagged | "Classes" >> beam.Filter(lambda pair: pair[0] == "mine") | beam.Values()
        distinct = (
            classes
            | "By module" >> beam.Map(lambda outcome: (_identity(outcome), outcome))
            | "Gather copies" >> beam.GroupByKey()
            | "Keep one" >> beam.FlatMapTuple(lambda _, copies: keep_one(copies))
            | "Report" >> beam.Map(lambda outcome: _report("mine", outcome))
        )
        return (scanned, distinct) | beam.Flatten()


def _mine(tree: Iterable[SourceFile]) -> Iterator[Tagged]:
    files: dict[str, SourceFile] = {}
    for file in sorted(tree, key=lambda file: (file.id, file.source.sha256)):
        if files.setdefault(file.id, file) is not file:  # tables may hold a path twice, in places far apart
            yield "scan", Dropped(file.id, Reason.DUPLICATE_PATH, file.source.sha256[:16])
    result = mine_tree(list(files.values()))
    yield from (("scan", outcome) for outcome in result.files)
    for outcome in result.classes:
        yield "mine", _whole(outcome)


def _whole(outcome: Outcome[Module]) -> Outcome[Module]:
    """A class that a composition is made of is no module of its own: it was mined where it comes from."""
    if (
        isinstance(outcome, Kept)
        and compositions.is_composed(outcome.record)
        and outcome.record.name != compositions.NAME
    ):
        return Dropped(_place(outcome.record), Reason.PART_OF_COMPOSED, outcome.record.name)
    return outcome


def _identity(outcome: Outcome[Module]) -> str:
    return outcome.record.id if isinstance(outcome, Kept) else outcome.id


def keep_one(copies: Iterable[Outcome[Module]]) -> Iterator[Outcome[Module]]:
    """Of outcomes that share a module id, keeps the first by source and drops the others."""
    kept = [outcome.record for outcome in copies if isinstance(outcome, Kept)]
    yield from (outcome for outcome in copies if not isinstance(outcome, Kept))
    for index, module in enumerate(sorted(kept, key=_place)):
        if index == 0:
            yield Kept(module)
        else:
            yield Dropped(f"{_place(module)}", Reason.DUPLICATE_SOURCE, module.id)


def _place(module: Module) -> str:
    source = module.source
    return f"{source.package}@{source.revision}/{source.path}:{module.name}"


class DeduplicateModules(beam.PTransform):
    """Modules -> an outcome for each: kept with its cluster, or dropped as a copy of the one that stays.

    Sources are compared only with those that share a band, each distinct source once; modules themselves wait until
    their fate is known. What must be in one place are the links that were found.
    """

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        formed = modules | "Batch" >> beam.BatchElements(64, 512) | "Form" >> beam.ParDo(OnAllCores(form_all))
        errors = formed | "Errors" >> beam.Filter(lambda found: isinstance(found, Errored))
        members = formed | "Members" >> beam.Filter(lambda found: isinstance(found, Member))
        settled = members | "Copies" >> _Connect(COPIES) | "Settle" >> beam.FlatMap(settle)
        dropped = settled | "Copied" >> beam.Filter(lambda found: isinstance(found, Dropped))
        stay = settled | "Stay" >> beam.Filter(lambda found: isinstance(found, Member))
        fates = (
            dropped | "Dropped" >> beam.Map(lambda loss: (loss.id, loss)),
            stay | "Kin" >> _Connect(KIN) | "Name" >> beam.FlatMap(name_cluster),
        ) | "Fates" >> beam.Flatten()
        told = (
            {"module": modules | "By id" >> beam.Map(lambda module: (module.id, pack(module))), "fate": fates}
            | "With fate" >> beam.CoGroupByKey()
            | "Outcome" >> beam.FlatMapTuple(lambda _, found: map(_apply_decision, found["module"], found["fate"]))
        )
        outcomes = (errors, told) | beam.Flatten()
        return outcomes | "Report" >> beam.Map(lambda outcome: _report("deduplicate", outcome))


def _apply_decision(module: bytes, fate: ClusterOrDrop) -> Outcome[Probed]:
    return outcome_of(unpack(module, Probed), fate)


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
            | "Batch" >> beam.BatchElements(64, 512)
            | "By bucket" >> beam.FlatMap(_bands)
            | "Holders" >> beam.GroupByKey()
            | "Shared" >> beam.FlatMapTuple(lambda _, parts: _shared(parts))
        )
        return (
            {"forms": forms, "bands": shared}
            | "With bands" >> beam.CoGroupByKey()
            | "Spread"
            >> beam.FlatMapTuple(lambda _, found: [(band, form) for form in found["forms"] for band in found["bands"]])
            | "Neighbours" >> beam.GroupByKey()
            | "Compare" >> beam.FlatMapTuple(lambda _, forms: link_similar(forms, relation))
        )


def _bands(sources: Sequence[tuple[str, Form]]) -> list[tuple[int, bytes]]:
    """(bucket, its (band, source) as pairs of uint64): an element for each band would be most of what is grouped."""
    pairs = np.array([(_number(band), int(key, 16)) for key, form in sources for band in form.bands], np.uint64)
    buckets = pairs[:, 0] % np.uint64(_BUCKETS)
    return [(int(bucket), pairs[buckets == bucket].tobytes()) for bucket in np.unique(buckets)]


def _number(band: str) -> int:
    return int.from_bytes(blake2b(band.encode(), digest_size=8).digest())


def _shared(parts: Iterable[bytes]) -> list[tuple[str, str]]:
    """(source, band) for each source of the bands that several hold."""
    pairs = np.concatenate([np.frombuffer(part, np.uint64).reshape(-1, 2) for part in parts])
    bands, holders = np.unique(pairs[:, 0], return_counts=True)
    shared = pairs[np.isin(pairs[:, 0], bands[holders > 1])]
    return [(f"{source:016x}", f"{band:016x}") for band, source in shared.tolist()]


class DecontaminateModules(beam.PTransform):
    """Modules -> an outcome for each: kept, or dropped with what each rung of the ladder found.

    Planted controls go the same way beside them. *Fails when* a rung overlooks one (`ControlError`).
    """

    def __init__(self, indexes: tuple[Path, ...], sandbox: SandboxSettings, thresholds: Thresholds = DEFAULT) -> None:
        super().__init__()
        self._indexes, self._sandbox, self._thresholds = indexes, sandbox, thresholds

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        controls = modules.pipeline | "Once" >> beam.Create([self._sandbox]) | "Plant" >> beam.Map(_plant)
        planted = controls | "Planted rows" >> beam.FlatMap(lambda controls: controls.rows)
        climbed = (
            (modules, planted)
            | "With planted" >> beam.Flatten()
            | "Batch" >> beam.BatchElements(64, 512)
            | "Fingerprint" >> beam.ParDo(OnAllCores(fingerprint_all))
            | "Climb" >> beam.ParDo(_Climb(self._indexes, self._thresholds), beam.pvalue.AsSingleton(controls))
        )
        _ = (
            climbed
            | "Of planted" >> beam.Filter(lambda found: found[0].id.startswith(PREFIX))
            | "Found planted" >> beam.Map(lambda found: (found[0].id.removeprefix(PREFIX), found[1]))
            | "All planted" >> beam.combiners.ToDict()
            | "Check" >> beam.Map(check)
        )
        outcomes = (
            climbed
            | "Of rows" >> beam.Filter(lambda found: not found[0].id.startswith(PREFIX))
            | "Outcome" >> beam.MapTuple(_uncontaminated)
        )
        return outcomes | "Report" >> beam.Map(lambda outcome: _report("decontaminate", outcome))


def _plant(settings: SandboxSettings) -> Controls:
    with Sandbox(settings) as sandbox:
        return plant(sandbox)


class _Climb(beam.DoFn):
    """Each module with what the ladder finds; the ladder is built once in each worker."""

    def __init__(self, indexes: tuple[Path, ...], thresholds: Thresholds) -> None:
        self._indexes, self._thresholds = indexes, thresholds
        self._ladder: Ladder | None = None

    def process(
        self, found: tuple[Probed, Fingerprint], controls: Controls
    ) -> Iterator[tuple[Probed, tuple[Hit, ...]]]:
        if self._ladder is None:
            self._ladder = Ladder((*read_all(self._indexes)[1], *controls.problems), self._thresholds)
        module, fingerprint = found
        yield module, self._ladder.climb(fingerprint)


def _uncontaminated(module: Probed, hits: tuple[Hit, ...]) -> Outcome[Probed]:
    found = [hit for hit in hits if not hit.problem.startswith(f"{BENCHMARK}/")]
    return Dropped(module.id, Reason.CONTAMINATED, render_hits(found)) if found else Kept(module)


class BalancePairs(beam.PTransform):
    """Pairs -> an outcome for each: kept, or dropped as one too many of what it has in common with others.

    What is grouped, three times, are ids and keys; the pairs wait until their fate is known.
    """

    def __init__(self, caps: Caps) -> None:
        super().__init__()
        self._caps = caps

    def expand(self, pairs: beam.PCollection) -> beam.PCollection:
        rows, fates = pairs | "Keys" >> beam.Map(keys_of), []
        for name in NAMES:
            told = (
                rows
                | f"By {name}" >> beam.Map(lambda row, name: (getattr(row, name), row), name)
                | f"Of one {name}" >> beam.GroupByKey()
                | f"Cap {name}"
                >> beam.FlatMap(lambda group, name, most: cap(group[1], name, most), name, getattr(self._caps, name))
            )
            rows = told | f"Within {name}" >> beam.Filter(lambda end: isinstance(end, Keys))
            fates.append(told | f"Over {name}" >> beam.Filter(lambda end: isinstance(end, Dropped)))
        over = fates | "Fates" >> beam.Flatten() | "By fate" >> beam.Map(lambda end: (end.id, end))
        outcomes = (
            {"pairs": pairs | "By id" >> beam.Map(lambda pair: (pair.id, pack(pair))), "over": over}
            | "With fate" >> beam.CoGroupByKey()
            | "Outcome" >> beam.FlatMapTuple(lambda _, found: _balanced(found["pairs"], found["over"]))
        )
        return outcomes | "Report" >> beam.Map(lambda outcome: _report("balance", outcome))


def _balanced(pairs: Iterable[bytes], over: Iterable[Dropped]) -> list[Outcome[Pair]]:
    return [*over] or [Kept(unpack(pair, Pair)) for pair in pairs]


class TeachKernels(beam.PTransform):
    """Verified kernels -> themselves, with what models say of them, and an outcome for each answer ("distill").

    `teach` makes an outcome of each module's lesson, which is counted for itself; None passes all on as they are. A
    kernel goes on whatever became of its lesson. `modules` are read beside them: models are asked to write kernels of
    those that have none.
    """

    def __init__(self, teach: beam.PTransform | None = None, modules: beam.PTransform | None = None) -> None:
        super().__init__()
        self._teach, self._modules = teach, modules

    def expand(self, seeds: beam.PCollection) -> beam.PCollection:
        keyed = seeds | "By module" >> beam.Map(lambda seed: (seed.id, seed))
        if self._teach is None:
            lessons = keyed | "No lessons" >> beam.MapTuple(lambda id, _: (id, _report("teach", _no_lesson(id))[1]))
        else:
            taken = seeds if self._modules is None else (seeds, _bare(self._modules, keyed)) | "All" >> beam.Flatten()
            lessons = taken | self._teach | "Lessons" >> beam.Map(lambda outcome: (_lesson_id(outcome), outcome))
        joined = {"seeds": keyed, "lessons": lessons} | "Join" >> beam.CoGroupByKey()
        taught = joined | "Taught" >> beam.FlatMapTuple(lambda _, found: taught_in(found["seeds"], *found["lessons"]))
        return taught | "Report" >> beam.MapTuple(
            lambda line, outcome: (line, outcome) if line == "teach" else _report(line, outcome)
        )


def _bare(modules: beam.PTransform, seeds: beam.PCollection) -> beam.PCollection:
    """The modules without a verified kernel."""
    keyed = seeds.pipeline | "Modules" >> modules | "Modules by id" >> beam.Map(lambda module: (module.id, module))
    return (
        {"module": keyed, "seed": seeds}
        | "With their kernels" >> beam.CoGroupByKey()
        | "Without" >> beam.FlatMapTuple(lambda _, found: () if list(found["seed"]) else found["module"])
    )


def _no_lesson(id: str) -> Outcome[DistillResult]:
    return Kept(DistillResult(id, (), ()))


def _lesson_id(outcome: Outcome[DistillResult]) -> str:
    return outcome.record.id if isinstance(outcome, Kept) else outcome.id


def taught_in(seeds: Iterable[Verified], lesson: Outcome[DistillResult]) -> Iterator[Tagged]:
    """The lines of the funnel that one module's lesson makes. `seeds` are its verified kernel, or none."""
    yield "teach", lesson
    if not isinstance(lesson, Kept):
        yield from (("distill", Kept(seed)) for seed in seeds)
        return
    yield from (("distill", Kept(replace(seed, explanations=lesson.record.explanations))) for seed in seeds)
    for attempt in lesson.record.attempts:
        yield from (("distill", Kept(verified)) for verified in attempt.verified)
        yield from (("distill", loss.outcome) for loss in attempt.lost)
