"""Decide which modules are copies, which of them are kept, and which belong to one cluster.

The steps of the transform (`DeduplicateModules`), in order:

1. `form_all` computes the form of each module. Modules with the same `exact` digest share one form (`pick_form`).
2. Forms that share a key, or that are similar, are linked as copies.
3. `settle` decides alone for each connected component of copies which members stay.
4. The remaining modules are linked again, now as kin. A connected component of kin is a cluster (`name_cluster`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from kernelquarry.filters.families import is_held_out
from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.similarity.form import COPIES, Form, form_of, similarity
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of

ClusterOrDrop = str | Dropped  # the cluster of a module that stays, or the outcome of a copy
_MAX_PAIRWISE = 2000  # sources that are compared each with each: half a minute


@dataclass(frozen=True, slots=True)
class Member:
    """The part of a module that `settle` needs. It is small because a whole component must fit in memory."""

    id: str
    rank: tuple[Any, ...]
    form: Form
    eldest: str  # smallest id among the module and its dropped copies
    is_held_out: bool = False  # for tests, by its operators


def form_all(modules: Iterable[Probed]) -> list[Member | Errored]:
    """The member of each module, or `Errored` where its code does not parse."""
    return [_form(module) for module in modules]


def _form(module: Probed) -> Member | Errored:
    signature = signature_of(paths_of(module.graph))
    try:
        form = form_of(module.python_code, module.behaviour, signature)
        form = replace(form, **_origin(module))
        return Member(module.id, rank(module), form, module.id, is_held_out(module.operators))
    except (SyntaxError, RecursionError) as error:
        return Errored(module.id, type(error).__name__, str(error))


def _origin(module: Probed) -> dict[str, Any]:
    """Fields of the module's form."""
    if not module.module.slice_of:
        return {}
    (origin,) = module.module.slice_of
    return {"is_slice": True, "origin": origin.signature if origin.modules == 1 else ""}


def pick_form(forms: Iterable[Form]) -> Form:
    """The form that represents all modules of one source.

    Modules of one source may differ in behaviour and signature because probing also reads annotations.
    """
    return max(forms, key=lambda form: (not form.is_slice, form.behaviour, form.signature))


def settle(group: Sequence[Member]) -> list[Member | Dropped]:
    """Keep the best members of a component of copies, and drop every member that copies a kept one.

    More than one member may stay because the two ends of a chain need not be copies of each other. Among members that
    are equal in licence and number of workloads, the one with the fewest copies comes first: it displaces the fewest.
    """
    kept: list[Member] = []
    copies: defaultdict[str, list[str]] = defaultdict(list)
    dropped: list[Dropped] = []
    counts = _count_copies([member.form for member in sorted(group, key=lambda member: member.rank)])
    for member in sorted(group, key=lambda member: (member.rank[:3], counts[member.form.renamed], member.rank[3:])):
        original = next((other for other in kept if COPIES.holds(member.form, other.form)), None)
        if original is None:
            kept.append(member)
        else:
            evidence = f"{original.id}, similarity {similarity(member.form, original.form):.3f}"
            dropped.append(Dropped(member.id, _drop_reason(member.form, original.form), evidence))
            copies[original.id].append(member.id)
    return [*(replace(member, eldest=min([member.id, *copies[member.id]])) for member in kept), *dropped]


def _count_copies(forms: Sequence[Form]) -> Counter[str]:
    """Number of copies of each source, by its `renamed` digest: renamed copies count as one source.

    Empty where the sources are too many to compare.
    """
    sources = {form.renamed: form for form in forms}
    if len(sources) > _MAX_PAIRWISE:
        return Counter()
    pairs = combinations(sources.values(), 2)
    return Counter(form.renamed for pair in pairs if COPIES.holds(*pair) for form in pair)


def name_cluster(cluster: Sequence[Member]) -> list[tuple[str, str]]:
    """(module id, cluster id) for each member. The cluster id also depends on members that were dropped as copies."""
    name = cluster_id([member.eldest for member in cluster], any(member.is_held_out for member in cluster))
    return [(member.id, name) for member in cluster]


def outcome_of(module: Probed, decision: ClusterOrDrop) -> Outcome[Probed]:
    return Kept(replace(module, cluster=decision)) if isinstance(decision, str) else decision


def rank(probed: Probed) -> tuple[Any, ...]:
    """Sort key of a module among its copies; the smallest stays.

    A module comes before a slice, then one with a known licence, then more workloads, then shorter code, then the id.
    """
    return (
        bool(probed.module.slice_of),
        probed.module.licence.spdx == "NOASSERTION",
        -len(probed.workloads),
        len(probed.python_code),
        probed.id,
    )


def _drop_reason(a: Form, b: Form) -> Reason:
    if a.exact == b.exact:
        return Reason.DUPLICATE_EXACT
    if a.renamed == b.renamed:
        return Reason.DUPLICATE_RENAMED
    return Reason.DUPLICATE_BEHAVIOUR if a.behaviour and a.behaviour == b.behaviour else Reason.DUPLICATE_NEAR
