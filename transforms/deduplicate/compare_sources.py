"""Finds copies, and decides which of them stay.

In steps that a distributed engine can take one by one: each source's `form_of` gives keys; sources that share a key
are linked, at once or after a comparison in full; what links of copies connect is settled alone (`settle`). The modules
that stay are linked once more, now by what makes them kin, and what that connects is a cluster (`name_cluster`). A form
stands for all modules with the same `exact` digest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.similarity.form import COPIES, KIN, Form, Relation, form_of, similarity
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of

from .cluster import Link, compare, component_of, connect, same_key

Fate = str | Dropped  # the cluster of a module that stays, or why it does not
_MOST = 2000  # sources that are compared each with each: half a minute


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of a module where copies are settled: little, since many are together there."""

    id: str
    rank: tuple[Any, ...]
    form: Form
    eldest: str  # smallest id of it and of what copies it


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
    settled = [fate for group in _groups(members, COPIES) for fate in settle(group)]
    fates: dict[str, Fate] = {fate.id: fate for fate in settled if isinstance(fate, Dropped)}
    for cluster in _groups([member for member in settled if isinstance(member, Member)], KIN):
        fates.update(name_cluster(cluster))
    outcomes += [outcome_of(module, fates[id]) for id, module in known.items()]
    return sorted(outcomes, key=_id)


def _groups(members: Sequence[Member], relation: Relation) -> list[list[Member]]:
    """What a chain of `relation` connects."""
    forms: defaultdict[str, list[Form]] = defaultdict(list)
    for member in members:
        forms[member.form.exact].append(member.form)
    components = connect(links(map(one_of, forms.values()), relation))
    groups: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        groups[component_of(member.form, components)].append(member)
    return list(groups.values())


def form_all(modules: Iterable[Probed]) -> list[Member | Errored]:
    """What is compared of each module."""
    return [_formed(module) for module in modules]


def _formed(module: Probed) -> Member | Errored:
    signature = signature_of(paths_of(module.graph))
    try:
        return Member(module.id, rank(module), form_of(module.python_code, module.behaviour, signature), module.id)
    except (SyntaxError, RecursionError) as error:
        return Errored(module.id, type(error).__name__, str(error))


def one_of(forms: Iterable[Form]) -> Form:
    """That stands for all forms of one source: probing looks at annotations too, so they may differ in evidence."""
    return max(forms, key=lambda form: (form.behaviour, form.signature))


def links(forms: Iterable[Form], relation: Relation) -> list[Link]:
    """All that connect forms with different `exact` digests."""
    keys, bands = defaultdict[str, list[str]](list), defaultdict[str, list[Form]](list)
    for form in forms:
        for key in relation.keys(form):
            keys[key].append(form.exact)
        for band in form.bands:
            bands[band].append(form)
    found = [link for group in bands.values() for link in compare(group, relation)]
    return found + [link for group in keys.values() for link in same_key(group)]


def settle(group: Sequence[Member]) -> list[Member | Dropped]:
    """Of what a chain of copies connects, keep the best that are no copies of each other, and drop what copies one of
    them. The ends of a chain may not be alike, so that more than one may stay: of equals in licence and workloads,
    what is alike to few comes first, since it costs few others their place."""
    stay: list[Member] = []
    copies: defaultdict[str, list[str]] = defaultdict(list)
    dropped: list[Dropped] = []
    alike = _alike([member.form for member in sorted(group, key=lambda member: member.rank)])
    for member in sorted(group, key=lambda member: (member.rank[:2], alike[member.form.renamed], member.rank[2:])):
        original = next((other for other in stay if COPIES.holds(member.form, other.form)), None)
        if original is None:
            stay.append(member)
        else:
            evidence = f"{original.id}, similarity {similarity(member.form, original.form):.3f}"
            dropped.append(Dropped(member.id, _relation(member.form, original.form), evidence))
            copies[original.id].append(member.id)
    return [*(replace(member, eldest=min([member.id, *copies[member.id]])) for member in stay), *dropped]


def _alike(forms: Sequence[Form]) -> Counter[str]:
    """How many others each source copies, by `renamed`: renamed copies are one. Of too many sources, nothing."""
    sources = {form.renamed: form for form in forms}
    if len(sources) > _MOST:
        return Counter()
    pairs = combinations(sources.values(), 2)
    return Counter(form.renamed for pair in pairs if COPIES.holds(*pair) for form in pair)


def name_cluster(cluster: Sequence[Member]) -> list[tuple[str, str]]:
    """(id, cluster) of modules that a chain of kin connects. The name is of those too that were dropped as copies."""
    name = cluster_id([member.eldest for member in cluster])
    return [(member.id, name) for member in cluster]


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
