"""Finds copies, and decides which of them stay.

In steps that a distributed engine can take one by one: each source's `form_of` gives keys; sources that share a key
are linked, at once or after a comparison in full; links are connected to clusters; each cluster is settled alone
(`settle`). A form stands for all modules with the same `exact` digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.signature import paths_of, signature_of

from .cluster import Link, Place, compare, connect, same_key
from .form import Form, are_copies, form_of, similarity

Fate = str | Dropped  # the cluster of a module that stays, or why it does not


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of a module where clusters are settled: little, since many are together there."""

    id: str
    rank: tuple[Any, ...]
    form: Form


def deduplicate(modules: Iterable[Probed]) -> list[Outcome[Probed]]:
    """One outcome a module, sorted by id: `Kept` with its cluster, or `Dropped` with what it copies."""
    outcomes: list[Outcome[Probed]] = []
    known: dict[str, Probed] = {}
    members: list[Member] = []
    for module in modules:
        (formed,) = form_all([module])
        if isinstance(formed, Errored):
            outcomes.append(formed)
        else:
            members.append(formed)
            known[module.id] = module
    forms: defaultdict[str, list[Form]] = defaultdict(list)
    for member in members:
        forms[member.form.exact].append(member.form)
    places = connect(links(map(one_of, forms.values())))
    clusters: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        clusters[place_of(member.form, places).kin].append(member)
    for cluster in clusters.values():
        outcomes += [outcome_of(known[id], fate) for id, fate in settle(cluster, places)]
    return sorted(outcomes, key=_id)


def form_all(modules: Iterable[Probed]) -> list[Member | Errored]:
    """What is compared of each module."""
    return [_formed(module) for module in modules]


def _formed(module: Probed) -> Member | Errored:
    signature = signature_of(paths_of(module.graph))
    try:
        return Member(module.id, rank(module), form_of(module.python_code, module.behaviour, signature))
    except (SyntaxError, RecursionError) as error:
        return Errored(module.id, type(error).__name__, str(error))


def one_of(forms: Iterable[Form]) -> Form:
    """That stands for all forms of one source: probing looks at annotations too, so they may differ in evidence."""
    return max(forms, key=lambda form: (form.behaviour, form.signature))


def links(forms: Iterable[Form]) -> list[Link]:
    """All that connect forms with different `exact` digests."""
    copies, kin, bands = (defaultdict[str, list[Form]](list) for _ in range(3))
    for form in forms:
        for groups, keys in ((copies, form.copy_keys), (kin, form.kin_keys), (bands, form.bands)):
            for key in keys:
                groups[key].append(form)
    found = [link for group in bands.values() for link in compare(group)]
    for groups, are in ((copies, True), (kin, False)):
        for group in groups.values():
            found += same_key([form.exact for form in group], are)
    return found


def place_of(form: Form, places: Mapping[str, Place]) -> Place:
    return places.get(form.exact) or Place(form.exact, form.exact)


def settle(cluster: Sequence[Member], places: Mapping[str, Place]) -> list[tuple[str, Fate]]:
    """Keep the best modules of a cluster of kin that are no copies of each other, drop those that copy one of them.

    A chain of copies may connect what is not alike, so that more than one may stay. All that stay have the cluster's
    name, and with it one split.
    """
    name = cluster_id([member.id for member in cluster])
    stay: defaultdict[str, list[Member]] = defaultdict(list)  # by component of copies
    fates: list[tuple[str, Fate]] = []
    for member in sorted(cluster, key=lambda member: member.rank):
        rivals = stay[place_of(member.form, places).copies]
        original = next((other for other in rivals if are_copies(member.form, other.form)), None)
        if original is None:
            rivals.append(member)
            fates.append((member.id, name))
        else:
            evidence = f"{original.id}, similarity {similarity(member.form, original.form):.3f}"
            fates.append((member.id, Dropped(member.id, _relation(member.form, original.form), evidence)))
    return fates


def outcome_of(module: Probed, fate: Fate) -> Outcome[Probed]:
    return Kept(replace(module, cluster=fate)) if isinstance(fate, str) else fate


def rank(probed: Probed) -> tuple[Any, ...]:
    """The smallest stays: with a licence that was found, with more workloads, short, then by id."""
    return (
        probed.module.licence.spdx == "NOASSERTION",
        -len(probed.workloads),
        len(probed.python_code),
        probed.id,
    )


def _relation(a: Form, b: Form) -> Reason:
    if a.exact == b.exact:
        return Reason.DUPLICATE_EXACT
    if a.renamed == b.renamed:
        return Reason.DUPLICATE_RENAMED
    return Reason.DUPLICATE_BEHAVIOUR if a.behaviour and a.behaviour == b.behaviour else Reason.DUPLICATE_NEAR


def _id(outcome: Outcome[Probed]) -> str:
    return outcome.record.id if isinstance(outcome, Kept) else outcome.id
