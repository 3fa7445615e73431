"""The Beam transforms of the stages that look at more than one record at once.

Each makes (line of the funnel, outcome) pairs; the work itself is done by functions that know nothing of Beam.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, Probed, SourceFile

from . import progress
from .deduplicate.cluster import Components, links
from .deduplicate.deduplicate import settle
from .deduplicate.form import Form, form_of
from .mine import mine_tree
from .read import Corpus, read_tree

Tagged = tuple[str, Outcome[Any]]


def _report(stage: str, outcome: Outcome[Any]) -> Tagged:
    progress.advance(stage, outcome.record.id if isinstance(outcome, Kept) else outcome.id, outcome)
    return stage, outcome


class ReadCorpus(beam.PTransform):
    """Packages and folders of a corpus -> an outcome for each Python file."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__()
        self._corpus = corpus

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            begin
            | "Trees" >> beam.Create(self._corpus.trees())
            | "Read files" >> beam.FlatMap(read_tree)
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
    result = mine_tree(sorted(tree, key=lambda file: file.id))
    yield from (("scan", outcome) for outcome in result.files)
    yield from (("mine", outcome) for outcome in result.classes)


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

    Sources are compared only with those that share a grouping key, each distinct source once; what must be in
    one place are the links that were found, not the sources.
    """

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        formed = modules | "Form" >> beam.Map(_with_form)
        errors = formed | "Errors" >> beam.Filter(lambda item: isinstance(item, Errored))
        members = formed | "Members" >> beam.Filter(lambda item: not isinstance(item, Errored))
        sources = (
            members
            | "By source" >> beam.MapTuple(lambda _, form: (form.exact, form))
            | "Sources" >> beam.GroupByKey()
            | "One each" >> beam.MapTuple(lambda exact, forms: (exact, next(iter(forms))))
        )
        shared = (  # most keys are held by one source alone: those go before whole forms are moved around
            sources
            | "By key" >> beam.FlatMapTuple(lambda exact, form: [(key, exact) for key in form.keys])
            | "Holders" >> beam.GroupByKey()
            | "Shared" >> beam.FlatMapTuple(_shared)
        )
        component_of = (
            {"forms": sources, "keys": shared}
            | "With keys" >> beam.CoGroupByKey()
            | "Spread"
            >> beam.FlatMapTuple(lambda _, found: [(key, form) for form in found["forms"] for key in found["keys"]])
            | "Neighbours" >> beam.GroupByKey()
            | "Compare" >> beam.FlatMapTuple(lambda _, forms: links(forms))
            | "All links" >> beam.combiners.ToList()
            | "Connect" >> beam.Map(_connect)
        )
        settled = (
            members
            | "To component" >> beam.Map(_in_component, beam.pvalue.AsSingleton(component_of))
            | "Clusters" >> beam.GroupByKey()
            | "Settle" >> beam.FlatMapTuple(lambda _, cluster: settle(list(cluster)))
        )
        outcomes = (errors, settled) | beam.Flatten()
        return outcomes | "Report" >> beam.Map(lambda outcome: _report("deduplicate", outcome))


def _with_form(module: Probed) -> tuple[Probed, Form] | Errored:
    try:
        return module, form_of(module.python_code)
    except (SyntaxError, RecursionError) as error:
        return Errored(module.id, type(error).__name__, str(error))


def _shared(key: str, holders: Iterable[str]) -> list[tuple[str, str]]:
    """(source, key) for each source, if there are several."""
    sources = list(holders)
    return [(source, key) for source in sources] if len(sources) > 1 else []


def _connect(links: list[tuple[str, str]]) -> dict[str, str]:
    found = Components({exact for link in links for exact in link})
    for a, b in links:
        found.join(a, b)
    return found.all()


def _in_component(member: tuple[Probed, Form], component_of: dict[str, str]) -> tuple[str, tuple[Probed, Form]]:
    exact = member[1].exact
    return component_of.get(exact, exact), member
