"""Finds copies, and decides which of them stay.

In steps that a distributed engine can take one by one: each source's `form_of` gives grouping keys; each
group is compared in full for its `links`; linked forms make `clusters`; each cluster is settled alone
(`settle`). A form stands for all pairs with the same `exact` digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair, Purity

from .cluster import Components, links
from .form import Form, are_copies, form_of, similarity


def deduplicate(pairs: Iterable[Pair]) -> list[Outcome[Pair]]:
    """One outcome a pair, sorted by id: `Kept` with its cluster, or `Dropped` with what it copies."""
    outcomes: list[Outcome[Pair]] = []
    members: defaultdict[str, list[Pair]] = defaultdict(list)  # exact digest -> pairs
    forms: dict[str, Form] = {}
    for pair in pairs:
        try:
            form = form_of(pair.python_code)
        except (SyntaxError, RecursionError) as error:
            outcomes.append(Errored(pair.id, type(error).__name__, str(error)))
            continue
        forms[form.exact] = form
        members[form.exact].append(pair)
    together: defaultdict[str, list[tuple[Pair, Form]]] = defaultdict(list)
    for exact, cluster in clusters(forms).items():
        together[cluster] += [(pair, forms[exact]) for pair in members[exact]]
    for cluster_members in together.values():
        outcomes += settle(cluster_members)
    return sorted(outcomes, key=_outcome_order)


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


def settle(cluster: Sequence[tuple[Pair, Form]]) -> list[Outcome[Pair]]:
    """Keep the best pairs of a cluster that are no copies of each other, drop those that copy one of them.

    A chain of copies may connect what is not alike, so that more than one pair may stay. They keep the
    cluster's name, and with it one split.
    """
    name = cluster_id([pair.id for pair, _ in cluster])
    stay: list[tuple[Pair, Form]] = []
    outcomes: list[Outcome[Pair]] = []
    for pair, form in sorted(cluster, key=lambda member: rank(member[0])):
        original = next(((other, like) for other, like in stay if are_copies(form, like)), None)
        if original is None:
            stay.append((pair, form))
            outcomes.append(Kept(replace(pair, cluster=name)))
        else:
            evidence = f"{original[0].id}, similarity {similarity(form, original[1]):.3f}"
            outcomes.append(Dropped(pair.id, _relation(form, original[1]), evidence))
    return outcomes


def rank(pair: Pair) -> tuple[Any, ...]:
    """The smallest stays: pure before mixed, shape-general, with a licence that was found, short, then by id."""
    source = pair.source
    return (
        pair.purity is not Purity.PURE,
        not pair.shape_general,
        pair.licence.spdx == "NOASSERTION",
        len(pair.python_code),
        pair.id,
        (source.package, source.revision, source.path),  # the same pair may have been found in two places
    )


def _relation(a: Form, b: Form) -> Reason:
    if a.exact == b.exact:
        return Reason.DUPLICATE_EXACT
    return Reason.DUPLICATE_RENAMED if a.renamed == b.renamed else Reason.DUPLICATE_NEAR


def _outcome_order(outcome: Outcome[Pair]) -> tuple[str, bool, str]:
    match outcome:
        case Kept(pair):
            return (pair.id, False, "")
        case Dropped(id, _, evidence):
            return (id, True, evidence)
        case Errored(id, error, _):
            return (id, True, error)
