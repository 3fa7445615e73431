"""Deduplication in one process, as an oracle for the distributed transform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Outcome
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.deduplicate.cluster import Link, component_of, connect, link_key_holders, link_similar
from kernelquarry.transforms.deduplicate.compare_sources import (
    ClusterOrDrop,
    Member,
    form_all,
    name_cluster,
    outcome_of,
    pick_form,
    settle,
)
from kernelquarry.transforms.similarity.form import COPIES, KIN, Form, Relation


def deduplicate(modules: Iterable[Probed]) -> list[Outcome[Probed]]:
    """One outcome a module, sorted by id: `Kept` with its cluster, or `Dropped` with the module that it copies."""
    known = {module.id: module for module in modules}
    formed = form_all(known.values())
    settled = [
        end for group in _components([m for m in formed if isinstance(m, Member)], COPIES) for end in settle(group)
    ]
    decisions: dict[str, ClusterOrDrop] = {end.id: end for end in settled if isinstance(end, Dropped)}
    for cluster in _components([member for member in settled if isinstance(member, Member)], KIN):
        decisions.update(name_cluster(cluster))
    outcomes: list[Outcome[Probed]] = [error for error in formed if isinstance(error, Errored)]
    outcomes += [outcome_of(known[id], decision) for id, decision in decisions.items()]
    return sorted(outcomes, key=lambda outcome: outcome.id)


def _components(members: Sequence[Member], relation: Relation) -> list[list[Member]]:
    """Members that a chain of `relation` connects."""
    forms: defaultdict[str, list[Form]] = defaultdict(list)
    for member in members:
        forms[member.form.exact].append(member.form)
    components = connect(_links(map(pick_form, forms.values()), relation))
    groups: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        groups[component_of(member.form, components)].append(member)
    return list(groups.values())


def _links(forms: Iterable[Form], relation: Relation) -> list[Link]:
    """Links between related forms with different `exact` digests."""
    keys, bands = defaultdict[str, list[str]](list), defaultdict[str, list[Form]](list)
    for form in forms:
        for key in relation.keys(form):
            keys[key].append(form.exact)
        for band in form.bands:
            bands[band].append(form)
    links = [link for group in bands.values() for link in link_similar(group, relation)]
    return links + [link for group in keys.values() for link in link_key_holders(group)]
