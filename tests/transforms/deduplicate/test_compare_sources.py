"""Deduplication finds copies in any order of the modules, and keeps the best one."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from deduplicate_oracle import deduplicate
from factories import GET_INPUTS, LICENCE, MODULE_CODE, make_module, make_probed, make_workload
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed, SliceOrigin
from kernelquarry.transforms.deduplicate.cluster import Components, link_similar
from kernelquarry.transforms.deduplicate.compare_sources import rank
from kernelquarry.transforms.similarity.form import COPIES, KIN, THRESHOLD, Form, Relation, form_of, similarity
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of
from kernelquarry.transforms.split.assign_split import Shares, split_of

OPERATORS = ("relu", "tanh", "sigmoid", "exp", "sin", "cos", "abs", "erf")


def chain(*operators: str) -> str:
    """A module of many statements, each with an operator of its own."""
    lines = [f"        x{i + 1} = torch.{name}(x{i}) * self.scale + {i}" for i, name in enumerate(operators)]
    body = "\n".join(["    def forward(self, x0):", *lines, f"        return x{len(operators)}"])
    head = MODULE_CODE.partition("    def forward")[0]
    return head + body + "\n" + GET_INPUTS


def make(code: str = MODULE_CODE + GET_INPUTS, spdx: str = LICENCE.spdx, workloads: int = 2) -> Probed:
    module = make_module(code, licence=replace(LICENCE, spdx=spdx))
    return make_probed(module, python_code=code, workloads=(make_workload(),) * workloads)


LONG = chain(*(OPERATORS * 3))
EXACT = LONG.replace("    def forward", "    # the same\n    def forward").replace("(5, 8)", "(7, 8)")
RENAMED = re.sub(r"\bx(\d+)\b", r"value\1", LONG)
NEAR = LONG.replace("torch.erf(x7)", "torch.tan(x7)")
OTHER = chain("floor", "ceil", "frac", "sign")
GRAPHS = ('[["input"],["aten.relu",[0]]]', '[["input"],["input"],["aten.view",[1]],["aten.clamp_min",[2]]]')  # kin


def kept(outcomes: list[Outcome[Probed]]) -> list[Probed]:
    return [outcome.record for outcome in outcomes if isinstance(outcome, Kept)]


def dropped(outcomes: list[Outcome[Probed]]) -> list[Dropped]:
    return [outcome for outcome in outcomes if isinstance(outcome, Dropped)]


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        (EXACT, Reason.DUPLICATE_EXACT),
        (RENAMED, Reason.DUPLICATE_RENAMED),
        (NEAR, Reason.DUPLICATE_NEAR),
    ],
)
def test_a_dropped_copy_names_its_original_and_similarity(copy: str, reason: Reason) -> None:
    original, other, again = make(LONG), make(OTHER), make(copy)
    first, second = sorted((original, again), key=rank)
    outcomes = deduplicate([original, other, again])
    likeness = similarity(form_of(LONG), form_of(copy))
    assert {module.id for module in kept(outcomes)} == {first.id, other.id}
    assert dropped(outcomes) == [Dropped(second.id, reason, f"{first.id}, similarity {likeness:.3f}")]


def test_the_example_modules_have_the_intended_similarity() -> None:
    forms = {name: form_of(code) for name, code in dict(long=LONG, near=NEAR, renamed=RENAMED, other=OTHER).items()}
    assert THRESHOLD <= similarity(forms["long"], forms["near"]) < 1
    assert similarity(forms["long"], forms["renamed"]) < THRESHOLD
    assert similarity(forms["long"], forms["other"]) < THRESHOLD


def test_a_single_module_is_its_own_cluster() -> None:
    module = make()
    assert deduplicate([module]) == [Kept(replace(module, cluster=cluster_id([module.id])))]
    assert deduplicate([]) == []


def test_a_cluster_with_a_held_out_operator_is_for_tests() -> None:
    """Also the modules of the cluster that lack the operator."""
    held_out = replace(make(LONG), graph=GRAPHS[0], operators=("aten.cumprod",))
    modules = kept(deduplicate([held_out, replace(make(OTHER), graph=GRAPHS[1])]))
    clusters = {module.cluster for module in modules}
    assert len(modules) == 2 and len(clusters) == 1 and split_of(*clusters, Shares()) == "test"
    assert split_of(*clusters, Shares(0, 0)) == "test"


def test_the_cluster_id_depends_on_dropped_copies_too() -> None:
    modules = [make(code) for code in (LONG, EXACT, NEAR)]
    (survivor,) = kept(deduplicate(modules))
    assert survivor.cluster == cluster_id([module.id for module in modules])


def test_a_dropped_copy_does_not_connect_the_ends_of_a_chain() -> None:
    """Both ends of the chain copy the middle module, but not each other."""
    first = make(re.sub(r"torch\.\w+\((x[0-7])\)", r"torch.tan(\1)", LONG))
    last = make(re.sub(r"torch\.\w+\((x1[0-7])\)", r"torch.tan(\1)", LONG))
    between = make(LONG, workloads=1)
    forms = [form_of(module.python_code) for module in (first, between, last)]
    assert COPIES.holds(forms[0], forms[1]) and COPIES.holds(forms[1], forms[2]) and not KIN.holds(forms[0], forms[2])
    outcomes = deduplicate([first, between, last])
    assert [loss.id for loss in dropped(outcomes)] == [between.id]
    assert {module.id for module in kept(outcomes)} == {first.id, last.id}
    assert len({module.cluster for module in kept(outcomes)}) == 2


def test_most_modules_stay_when_one_module_copies_all() -> None:
    """The short module that copies all others is dropped, although it has the best rank."""
    thirds = "x[0-7]", "x(?:8|9|1[0-5])", "x(?:1[6-9]|2[0-3])"
    middle, *others = make(LONG), *(make(re.sub(rf"torch\.\w+\(({x})\)", r"torch.tan(\1)", LONG)) for x in thirds)
    others = [make(other.python_code + "# longer\n") for other in others]
    assert min([middle, *others], key=rank) is middle
    assert all(COPIES.holds(form_of(middle.python_code), form_of(other.python_code)) for other in others)
    assert not any(COPIES.holds(form_of(a.python_code), form_of(b.python_code)) for a, b in combinations(others, 2))
    assert {module.id for module in kept(deduplicate([middle, *others]))} == {other.id for other in others}


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from(OPERATORS[:3]), min_size=12, max_size=14), max_size=8))
def test_kept_modules_are_no_copies_and_dropped_modules_copy_a_kept_one(modules: list[list[str]]) -> None:
    modules = {module.id: module for module in (make(chain(*operators)) for operators in modules)}
    outcomes = deduplicate(modules.values())
    kept_forms = {module.id: form_of(module.python_code) for module in kept(outcomes)}
    assert not any(COPIES.holds(a, b) for a, b in combinations(kept_forms.values(), 2))
    for loss in dropped(outcomes):
        original = loss.evidence.partition(",")[0]
        assert COPIES.holds(form_of(modules[loss.id].python_code), kept_forms[original])


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (make(LONG + "# longer\n"), make(LONG, spdx="NOASSERTION")),
        (make(LONG + "# longer\n", workloads=3), make(LONG, workloads=2)),
        (make(LONG), make(LONG + "# longer\n")),
    ],
    ids=["licence", "workloads", "length"],
)
def test_the_module_with_the_better_rank_stays(better: Probed, worse: Probed) -> None:
    assert [module.id for module in kept(deduplicate([worse, better]))] == [better.id]


def test_a_module_that_does_not_parse_is_errored_and_the_others_are_kept() -> None:
    broken, fine = make("def ("), make()
    outcomes = deduplicate([broken, fine])
    (errored,) = [outcome for outcome in outcomes if isinstance(outcome, Errored)]
    assert (errored.id, errored.error) == (broken.id, "SyntaxError")
    assert [module.id for module in kept(outcomes)] == [fine.id]


POOL = [make(code) for code in (LONG, EXACT, RENAMED, NEAR, OTHER, MODULE_CODE)]
POOL += [make(LONG + "# other\n", spdx="NOASSERTION")]


@settings(max_examples=25)
@given(st.permutations(POOL))
def test_order_does_not_matter(modules: list[Probed]) -> None:
    outcomes = deduplicate(modules)
    assert outcomes == deduplicate(POOL)
    assert len(outcomes) == len(POOL)
    assert len({module.cluster for module in kept(outcomes)}) == len(kept(outcomes)) == 3


NODES = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)


def reachable(node: str, edges: list[tuple[str, str]]) -> set[str]:
    reached = {node}
    while more := {y for a, b in edges for x, y in ((a, b), (b, a)) if x in reached} - reached:
        reached |= more
    return reached


@given(NODES, st.data())
def test_components_equal_reachability(nodes: list[str], data: st.DataObject) -> None:
    edges = data.draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes))))
    components = Components(nodes)
    for a, b in edges:
        components.join(a, b)
    assert components.all() == {node: min(reachable(node, edges)) for node in nodes}


def form(name: str, shingles: frozenset[int] = frozenset({1}), **digests: str) -> Form:
    fields = {"renamed": name, "blind": name, "behaviour": "", "signature": "", **digests}
    return Form(exact=name, shingles=np.array(sorted(shingles), np.uint32).tobytes(), **fields)


@pytest.mark.parametrize("relation", [COPIES, KIN], ids=["copies", "kin"])
@given(st.lists(st.frozensets(st.integers(0, 9), min_size=1), max_size=8, unique=True))
def test_links_connect_exactly_the_related_forms(relation: Relation, sets: list[frozenset[int]]) -> None:
    forms = {str(i): form(str(i), shingles) for i, shingles in enumerate(sets)}
    pairs = [(a, b) for a in forms for b in forms if a < b and relation.holds(forms[a], forms[b])]
    found = [(link.a, link.b) for link in link_similar(forms.values(), relation)]
    assert set(found) <= set(pairs)
    assert all(reachable(name, found) == reachable(name, pairs) for name in forms)


def test_modules_with_the_same_behaviour_are_copies() -> None:
    one, same, other = (
        replace(make(code), behaviour=b) for code, b in ((LONG, "aa"), (OTHER, "aa"), (MODULE_CODE, "bb"))
    )
    outcomes = deduplicate([one, same, other])
    (loss,) = dropped(outcomes)
    assert loss.reason is Reason.DUPLICATE_BEHAVIOUR and len(kept(outcomes)) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (make(LONG), make(LONG.replace("+ 1", "+ 17").replace("+ 2", "+ 27"))),
        (replace(make(LONG), graph=GRAPHS[0]), replace(make(OTHER), graph=GRAPHS[1])),
    ],
    ids=["other numbers", "the same operators"],
)
def test_kin_share_a_cluster(one: Probed, other: Probed) -> None:
    if similarity(form_of(one.python_code), form_of(other.python_code)) >= THRESHOLD:  # shorten both
        one, other = (
            make(re.sub(r"        x(?!1 |2 )\d+ = .*\n", "", m.python_code).replace("return x24", "return x2"))
            for m in (one, other)
        )
    outcomes = deduplicate([one, other, make(MODULE_CODE)])
    assert len(kept(outcomes)) == 3
    clusters = {module.id: module.cluster for module in kept(outcomes)}
    assert clusters[one.id] == clusters[other.id] and len(set(clusters.values())) == 2


def test_similarity_also_splits_strings_into_words() -> None:
    """Long messages that differ in one word make copies, although they differ as whole tokens."""
    words = [" ".join(f"word{i}{k}" for k in range(40)) for i in range(9)]
    checks = [f'        assert x0.dim() > {i}, "{{}} {words[i]}"' for i in range(9)]
    head, _, tail = chain("relu", "tanh").partition("        x1 =")
    one, other = ("\n".join([head.rstrip(), *checks, f"        x1 ={tail}"]).replace("{}", name) for name in ("A", "B"))
    forms = form_of(one), form_of(other)
    assert similarity(*(replace(form, words=b"") for form in forms)) < 0.7 < THRESHOLD < similarity(*forms)
    assert COPIES.holds(*forms)


def make_slice(code: str, signature: str = "", modules: int = 2, **fields: Any) -> Probed:
    probed = make(code)
    origin = SliceOrigin("mod_x", "Net", signature, (), modules)
    return replace(probed, module=replace(probed.module, slice_of=(origin,)), **fields)


def test_slices_are_copies_by_name_blind_text_or_behaviour_alone() -> None:
    outcomes = deduplicate([make_slice(LONG), make_slice(NEAR), make_slice(RENAMED), make_slice(OTHER)])
    assert [loss.reason for loss in dropped(outcomes)] == [Reason.DUPLICATE_RENAMED]
    alike = [make_slice(code, behaviour="ab" * 8) for code in (LONG, OTHER)]
    assert [loss.reason for loss in dropped(deduplicate(alike))] == [Reason.DUPLICATE_BEHAVIOUR]


def test_a_module_stays_where_a_slice_is_its_copy() -> None:
    module = make(LONG + "# a comment makes it longer\n", spdx="NOASSERTION", workloads=1)
    outcomes = deduplicate([module, make_slice(RENAMED)])
    assert [one.id for one in kept(outcomes)] == [module.id]


@pytest.mark.parametrize(("modules", "clusters"), [(1, 1), (2, 2)])
def test_a_slice_that_one_module_alone_has_is_in_its_cluster(modules: int, clusters: int) -> None:
    graph = '[["input"],["aten.relu",[0]]]'
    module = replace(make(LONG), graph=graph)
    piece = make_slice(OTHER, signature_of(paths_of(graph)), modules)
    found = kept(deduplicate([module, piece]))
    assert len(found) == 2 and len({one.cluster for one in found}) == clusters
