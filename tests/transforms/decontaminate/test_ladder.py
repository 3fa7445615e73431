"""Each rung finds its kind of overlap, and clean rows pass all rungs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from factories import GET_INPUTS, MODULE_CODE

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.decontaminate import (
    Hit,
    Ladder,
    Problem,
    Rung,
    Thresholds,
    fingerprint_of,
    parse_hits,
    read_index,
    render_hits,
    shipped,
    write_index,
)
from kernelquarry.transforms.decontaminate.benchmark_index import FORMAT

GRAPH = json.dumps([["input"], ["aten.sin", [0]], ["aten.cos", [1]], ["aten.exp", [2]]])
LONGER = json.dumps([["input"], ["aten.tan", [0]], ["aten.sin", [1]], ["aten.cos", [2]], ["aten.exp", [3]]])
RENAMED = MODULE_CODE.replace("bias", "b").replace("weight", "w").replace("features", "f")
OTHER = """import torch


class Model(torch.nn.Module):
    def forward(self, left, right):
        return torch.where(left > 0, torch.lgamma(right), left.cumsum(dim=-1))
"""
BEHAVIOURS = ("ab" * 8, "cd" * 8)
PROBLEM = Problem("bench", "level1/1_Scale", fingerprint_of(MODULE_CODE, GRAPH, BEHAVIOURS))
LADDER = Ladder([PROBLEM])


def rungs(code: str, graph: str = "[]", behaviours: tuple[str, ...] = (), ladder: Ladder = LADDER) -> set[str]:
    hits = ladder.climb(fingerprint_of(code, graph, behaviours))
    assert all(hit.problem == PROBLEM.id for hit in hits)
    return {hit.rung.value for hit in hits}


TEXTUAL = {"exact", "ngrams_10", "ngrams_13", "minhash", "renamed", "erased"}
UNLIKE = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("code", "graph", "behaviours", "found"),
    [
        (MODULE_CODE + GET_INPUTS, "[]", (), TEXTUAL),
        (MODULE_CODE.replace("import torch\n", "import math\nimport torch\n"), "[]", (), TEXTUAL),
        (RENAMED, "[]", (), {"renamed", "erased"}),
        (MODULE_CODE.replace("= 8", "= 64"), "[]", (), TEXTUAL - {"exact", "renamed"}),
        (UNLIKE, GRAPH, (), {"signature"}),
        (UNLIKE, LONGER, (), {"composed"}),
        (UNLIKE, "[]", ("00" * 8, "cd" * 8), {"behaviour"}),
        (UNLIKE, "[]", ("ef" * 8,), set()),
        (OTHER, "[]", (), set()),
    ],
)  # fmt: skip
def test_rungs(code: str, graph: str, behaviours: tuple[str, ...], found: set[str]) -> None:
    assert rungs(code, graph, behaviours) == found


def test_a_small_problem_is_not_searched_for_within_rows() -> None:
    small = json.dumps([["input"], ["aten.sin", [0]], ["aten.cos", [1]]])
    ladder = Ladder([replace(PROBLEM, fingerprint=fingerprint_of(UNLIKE, small))])
    assert rungs(OTHER, GRAPH, ladder=ladder) == set()
    assert rungs(OTHER, small, ladder=ladder) == {"signature"}


def test_a_problem_that_is_a_small_part_of_a_row_is_no_hit() -> None:
    nodes = [["input"], *([f"aten.{name}", [i]] for i, name in enumerate(["sin", "cos", "exp", *["tan"] * 4]))]
    assert rungs(OTHER, json.dumps(nodes)) == set()
    assert rungs(OTHER, json.dumps(nodes), ladder=Ladder([PROBLEM], Thresholds(composed_share=0.4))) == {"composed"}


def test_runs_that_many_problems_share_are_no_evidence() -> None:
    problems = [replace(PROBLEM, name=f"{i}") for i in range(5)]
    hits = Ladder(problems).climb(fingerprint_of(MODULE_CODE.replace("relu", "gelu")))
    assert not {hit.rung for hit in hits} & {Rung.NGRAMS_10, Rung.NGRAMS_13}


def test_without_benchmarks_nothing_is_found() -> None:
    assert Ladder([]).climb(fingerprint_of(MODULE_CODE, GRAPH, BEHAVIOURS)) == ()


def test_evidence_is_read_back() -> None:
    hits = (Hit(Rung.RENAMED, "bench/level1/1_Scale", 1.0), Hit(Rung.MINHASH, "other/2", 0.75))
    assert render_hits(hits) == "renamed bench/level1/1_Scale 1.00; minhash other/2 0.75"
    assert parse_hits(render_hits(hits)) == hits


def test_an_index_keeps_fingerprints_and_no_text(tmp_path: Path) -> None:
    problems = [PROBLEM, replace(PROBLEM, name="level1/2_Other", fingerprint=fingerprint_of(OTHER))]
    path = tmp_path / "bench.index.jsonl"
    about = write_index(path, "bench", "2.0", problems)
    assert (about.problems, about.ran) == (2, 1)
    assert read_index(path) == (about, tuple(problems))
    assert not {"relu", "weight", "features", "forward"} & set(path.read_text().split('"'))
    assert shipped(tmp_path)[-1] == path
    assert Ladder(read_index(path)[1]).climb(fingerprint_of(MODULE_CODE))


@pytest.mark.parametrize("text", ["", "{}", "not JSON", '{"benchmark":"a"}\n'])
def test_malformed_indexes(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.index.jsonl").write_text(text)
    with pytest.raises(UserError, match="index-benchmarks"):
        read_index(tmp_path / "a.index.jsonl")


def test_an_index_of_another_format_or_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bench.index.jsonl"
    write_index(path, "bench", "2.0", [PROBLEM])
    text = path.read_text()
    path.write_text(text.replace(f'"format":{FORMAT}', '"format":1'))
    with pytest.raises(UserError, match="index of format 1"):
        read_index(path)
    path.write_text(text.partition("\n")[0] + "\n")
    with pytest.raises(UserError, match="0 of 1 problems"):
        read_index(path)


def test_paths_are_counted() -> None:
    assert PROBLEM.fingerprint.paths == Counter(["sin", "cos", "exp", "sin>cos", "cos>exp", "sin>cos>exp"])
