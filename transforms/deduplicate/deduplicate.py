"""Finds copies, and decides which of them stay.

In steps that a distributed engine can take one by one: each source's `form_of` gives grouping keys; each
group is compared in full for its `links`; linked forms make `clusters`; each cluster is settled alone
(`settle`). A form stands for all modules with the same `exact` digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed

from .cluster import Components, links
from .form import Form, are_copies, form_of, similarity


def deduplicate(modules: Iterable[Probed]) -> list[Outcome[Probed]]:
    """One outcome a module, sorted by id: `Kept` with its cluster, or `Dropped` with what it copies."""
    outcomes: list[Outcome[Probed]] = []
    members: defaultdict[str, list[Probed]] = defaultdict(list)  # exact digest -> modules
    forms: dict[str, Form] = {}
    for module in modules:
        try:
            form = form_of(module.python_code)
        except (SyntaxError, RecursionError) as error:
            outcomes.append(Errored(module.id, type(error).__name__, str(error)))
            continue
        forms[form.exact] = form
        members[form.exact].append(module)
    together: defaultdict[str, list[tuple[Probed, Form]]] = defaultdict(list)
    for exact, cluster in clusters(forms).items():
        together[cluster] += [(module, forms[exact]) for module in members[exact]]
    for cluster_members in together.values():
        outcomes += settle(cluster_members)
    return sorted(outcomes, key=_id)


def clusters(forms: Mapping[str, Form]) -> dict[str, str]:
    """Each exact digest -> the smallest one that a chain of copies connects it with."""
    groups: defaultdict[str, list[Form]] = defaultdict(list)
    for form in forms.values():
        for key in form.keys:
            groups[key].append(form)
    components = Components(forms)
    for group in groups.values():
        for a, b in links(group):
            components.join(a, b)
    return components.all()


def settle(cluster: Sequence[tuple[Probed, Form]]) -> list[Outcome[Probed]]:
    """Keep the best modules of a cluster that are no copies of each other, drop those that copy one of them.

    A chain of copies may connect what is not alike, so that more than one may stay. They keep the
    cluster's name, and with it one split.
    """
    name = cluster_id([module.id for module, _ in cluster])
    stay: list[tuple[Probed, Form]] = []
    outcomes: list[Outcome[Probed]] = []
    for module, form in sorted(cluster, key=lambda member: rank(member[0])):
        original = next(((other, like) for other, like in stay if are_copies(form, like)), None)
        if original is None:
            stay.append((module, form))
            outcomes.append(Kept(replace(module, cluster=name)))
        else:
            evidence = f"{original[0].id}, similarity {similarity(form, original[1]):.3f}"
            outcomes.append(Dropped(module.id, _relation(form, original[1]), evidence))
    return outcomes


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
    return Reason.DUPLICATE_RENAMED if a.renamed == b.renamed else Reason.DUPLICATE_NEAR


def _id(outcome: Outcome[Probed]) -> str:
    return outcome.record.id if isinstance(outcome, Kept) else outcome.id
