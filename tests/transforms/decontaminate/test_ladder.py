"""Each rung finds its kind of overlap, and clean rows pass all rungs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from factories import GET_INPUTS, MODULE_CODE

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.decontaminate import (
    Hit,
    Ladder,
    Origin,
    Problem,
    Rung,
    Thresholds,
    fingerprint_of,
    parse_hits,
    problems_of,
    read_index,
    render_hits,
    shipped,
    write_index,
)
from kernelquarry.transforms.decontaminate.benchmark_index import FORMAT, SHIPPED, fingerprinting_code
from kernelquarry.transforms.decontaminate.module_fingerprint import LEAST, RUN, packed
from kernelquarry.transforms.similarity.form import runs, tokens


def chain(*names: str) -> str:
    """The graph of operators that follow each other."""
    return json.dumps([["input"], *([f"aten.{name}", [i]] for i, name in enumerate(names))])


GRAPH = chain("sin", "cos", "exp")
OTHER = """import torch


class Model(torch.nn.Module):
    def forward(self, left, right):
        return torch.where(left > 0, torch.lgamma(right), left.cumsum(dim=-1))
"""
BEHAVIOURS = ("ab" * 8, "cd" * 8)
LONG_CODE = MODULE_CODE + "\n".join(f"SIZE_{i} = {i} * {i + 7} + {i % 5} - 0.{i}" for i in range(12)) + "\n"
RENAMED = LONG_CODE.replace("bias", "b").replace("weight", "w").replace("features", "f").replace("SIZE_", "S")
ORIGIN = Origin("bench", "owner/bench", "1a2b3c", "MIT")


def problem(code: str = LONG_CODE, graph: str = GRAPH, name: str = "level1/1_Scale") -> Problem:
    (found,) = problems_of("bench", {name: fingerprint_of(code, (graph,), BEHAVIOURS, is_row=False)})
    return found


PROBLEM = problem()
LADDER = Ladder([PROBLEM])
UNLIKE = "def f(x):\n    return x\n"


def rungs(code: str, graph: str = "[]", behaviours: tuple[str, ...] = (), ladder: Ladder = LADDER) -> set[str]:
    hits = ladder.climb(fingerprint_of(code, (graph,), behaviours))
    assert all(hit.problem == PROBLEM.id for hit in hits)
    return {hit.rung.value for hit in hits}


@pytest.mark.parametrize(
    ("code", "graph", "behaviours", "found"),
    [
        (LONG_CODE + GET_INPUTS, "[]", (), {"source", "ngrams"}),
        (LONG_CODE.replace("import torch\n", "import math\nimport torch\n"), "[]", (), {"source", "ngrams"}),
        (RENAMED, "[]", (), {"source"}),
        (LONG_CODE.replace("= 8", "= 64"), "[]", (), {"source", "ngrams"}),
        (LONG_CODE + "EXTRA = [SIZE_0 for _ in range(3)]\n", "[]", (), {"ngrams"}),
        (UNLIKE, GRAPH, (), {"operators"}),
        (UNLIKE, chain("tan", "sin", "cos", "exp"), (), {"one_added"}),
        (UNLIKE, chain("sin", "tan", "cos", "exp"), (), {"one_added"}),
        (UNLIKE, chain("sin", "cos", "exp", "tan"), (), {"one_added"}),
        (UNLIKE, chain("tan", "sin", "cos", "exp", "tan"), (), set()),
        (UNLIKE, chain("sin", "cos"), (), set()),
        (UNLIKE, "[]", ("00" * 8, "cd" * 8), {"behaviour"}),
        (UNLIKE, "[]", ("ef" * 8,), set()),
        (OTHER, "[]", (), set()),
    ],
)  # fmt: skip
def test_rungs(code: str, graph: str, behaviours: tuple[str, ...], found: set[str]) -> None:
    assert rungs(code, graph, behaviours) == found


@pytest.mark.parametrize(
    ("operators", "shared", "is_found"), [(3, 1, True), (18, 1, True), (19, 1, False), (19, 2, False), (19, 3, True)]
)
def test_a_much_larger_module_must_share_most_behaviours(operators: int, shared: int, is_found: bool) -> None:
    """A module with more than six times the problem's operators; of its four behaviours, the problem has `shared`."""
    known = (*BEHAVIOURS, "ef" * 8)
    (found,) = problems_of("bench", {"1": fingerprint_of(LONG_CODE, (GRAPH,), known, is_row=False)})
    row = (*known[:shared], *(f"{i:016x}" for i in range(4 - shared)))
    graph = chain(*("tan" for _ in range(operators)))
    hits = Ladder([found]).climb(fingerprint_of(OTHER, (graph,), row))
    assert [hit.rung.value for hit in hits] == ["behaviour"] * is_found


@pytest.mark.parametrize("names", [("native_batch_norm",), ("native_batch_norm", "relu")])
def test_a_problem_of_one_layer_or_two_is_found_as_a_whole_module_only(names: tuple[str, ...]) -> None:
    """A block with a batch norm is no copy of the problem of a batch norm."""
    ladder = Ladder([problem(LONG_CODE, chain(*names))])
    assert rungs(OTHER, chain(*names), BEHAVIOURS, ladder) == {"behaviour"}
    assert rungs(OTHER, chain("convolution", *names), ladder=ladder) == set()
    assert rungs(OTHER, chain("convolution", *names), ladder=Ladder(ladder.problems, Thresholds(graph_least=1))) == (
        {"one_added"}
    )


def test_copies_of_single_operators_can_be_kept() -> None:
    single = problem(UNLIKE, chain("relu"), "1_ReLU")
    row = fingerprint_of(OTHER, (), BEHAVIOURS)
    for least, removing in ((1, [single.id, PROBLEM.id]), (2, [PROBLEM.id])):
        ladder = Ladder([single, PROBLEM], Thresholds(least_operators=least))
        hits = ladder.climb(row)
        assert {hit.problem for hit in hits} == {single.id, PROBLEM.id}
        assert [hit.problem for hit in hits if ladder.removes(hit)] == removing


def test_a_short_problem_is_not_compared_by_its_runs() -> None:
    """The sample counts, not the text: a few runs that happen to agree are no evidence."""
    short = problem(MODULE_CODE)
    assert not short.fingerprint.runs and len(packed(PROBLEM.fingerprint.runs)) >= LEAST
    assert rungs(MODULE_CODE, ladder=Ladder([short])) == {"source"}


def test_runs_of_a_problem_do_not_overlap() -> None:
    """Whoever knows the tokens of one run has no hash of a run that continues it."""
    words = tokens(LONG_CODE)
    ordered = runs(words, RUN).tolist()
    kept = set(packed(PROBLEM.fingerprint.runs).tolist())
    places = [place for place, run in enumerate(ordered) if run in kept]
    assert len(places) <= len(ordered) // RUN + 1
    assert all(later - earlier >= RUN for earlier, later in pairwise(places))


def test_runs_that_problems_share_are_no_evidence() -> None:
    fingerprints = {str(i): fingerprint_of(LONG_CODE, is_row=False) for i in range(2)}
    assert all(not one.fingerprint.runs for one in problems_of("bench", fingerprints))


def test_without_benchmarks_nothing_is_found() -> None:
    assert Ladder([]).climb(fingerprint_of(MODULE_CODE, (GRAPH,), BEHAVIOURS)) == ()


def test_evidence_is_read_back() -> None:
    hits = (Hit(Rung.SOURCE, "bench/level1/1_Scale", 1.0), Hit(Rung.NGRAMS, "other/2", 0.75))
    assert render_hits(hits) == "source bench/level1/1_Scale 1.00; ngrams other/2 0.75"
    assert parse_hits(render_hits(hits)) == hits


def test_an_index_keeps_fingerprints_and_no_text(tmp_path: Path) -> None:
    problems = [PROBLEM, *problems_of("bench", {"level1/2_Other": fingerprint_of(OTHER, is_row=False)})]
    path = tmp_path / "bench.index.jsonl"
    about = write_index(path, ORIGIN, "2.0", problems)
    assert (about.problems, about.ran, about.commit, about.licence) == (2, 1, "1a2b3c", "MIT")
    assert read_index(path) == (about, tuple(problems))
    assert not {"relu", "weight", "features", "forward", "sin"} & set(path.read_text().split('"'))
    assert path in shipped(tmp_path)
    assert Ladder(read_index(path)[1]).climb(fingerprint_of(LONG_CODE))


def test_an_index_that_is_nearly_empty_has_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "bench.index.jsonl"
    many = problems_of("bench", {str(i): fingerprint_of(f"x = {i}", (GRAPH,), is_row=False) for i in range(10)})
    assert write_index(path, ORIGIN, "2.0", many).warning == ""
    assert "has 9 problems, of which 9 run" in write_index(path, ORIGIN, "2.0", many[:9]).warning


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.jsonl")), ids=lambda path: path.name)
def test_shipped_indexes_are_current(path: Path) -> None:
    """Whoever changes the code of fingerprints makes the indexes anew: `make indexes`."""
    about, problems = read_index(path)
    assert about.code == fingerprinting_code(), f"{path.name}: run `make indexes`"
    assert about.source.count("/") == 1 and len(about.commit) == 40 and about.licence
    assert about.problems > 10 and len({one.name for one in problems}) == len(problems)


def test_the_package_ships_the_benchmarks() -> None:
    names = {path.name.partition(".")[0] for path in shipped()}
    assert names == {"kernelbench", "robust-kbench", "tritonbench-g", "tritonbench-t"}


@pytest.mark.parametrize("text", ["", "{}", "not JSON", '{"benchmark":"a"}\n'])
def test_malformed_indexes(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.index.jsonl").write_text(text)
    with pytest.raises(UserError, match="index-benchmarks"):
        read_index(tmp_path / "a.index.jsonl")


def test_an_index_of_another_format_or_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bench.index.jsonl"
    write_index(path, ORIGIN, "2.0", [PROBLEM])
    text = path.read_text()
    path.write_text(text.replace(f'"format":{FORMAT}', '"format":1'))
    with pytest.raises(UserError, match="index of format 1"):
        read_index(path)
    path.write_text(text.partition("\n")[0] + "\n")
    with pytest.raises(UserError, match="0 of 1 problems"):
        read_index(path)
