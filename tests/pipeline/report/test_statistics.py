"""The page of statistics: every pair is in every histogram, and the nearest problem of KernelBench is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from factories import MODULE_CODE, make_pair, make_pairs

from kernelquarry.pipeline.check.kernelbench import KernelbenchProblem
from kernelquarry.pipeline.report.kernelbook import compare_with_kernelbook
from kernelquarry.pipeline.report.statistics import (
    difficulty_histograms,
    level_histograms,
    make_histogram,
    nearest_problems,
    render_statistics,
    size_histograms,
)
from kernelquarry.pipeline.schema.records import Measures, Purity, SliceOrigin, Tier
from tests.forked import Ended
from tests.pipeline.report.test_report import HOSTILE, Page

SAMPLE = Path(__file__).parents[3] / "examples" / "sample"
OTHER = """
import torch

class Model(torch.nn.Module):
    def forward(self, left, right):
        return torch.softmax(left @ right.transpose(-2, -1), dim=-1)
"""
PROBLEMS = [
    KernelbenchProblem(1, 7, "Softmax", OTHER),
    KernelbenchProblem(2, 3, "Scale", MODULE_CODE.replace("torch.relu", "torch.tanh")),
]


def test_a_bar_ends_at_its_edge_and_the_last_has_the_rest() -> None:
    found = make_histogram("", [1, 1.5, 2, 2.1, 1000, 5000], (1, 2, 1000))
    assert [(bar.label, bar.count) for bar in found.bars] == [("1", 1), ("2", 2), ("1k", 2), ("> 1k", 1)]
    assert (found.middle, found.number) == (2.05, 6)
    assert make_histogram("", [], (1,)).number == 0


def test_every_measured_pair_is_in_every_histogram() -> None:
    measures = Measures(operators=3, depth=2, kernels=1, tokens=400)
    pairs = [*(replace(pair, measures=measures) for pair in make_pairs(4)), make_pair(measures=Measures())]
    for one in (*size_histograms(pairs), *difficulty_histograms(pairs)):
        assert sum(bar.count for bar in one.bars) == one.number
    assert [one.number for one in difficulty_histograms(pairs)] == [4, 4, 4]
    assert [one.middle for one in difficulty_histograms(pairs)] == [3, 2, 1]
    middles = [one.middle for one in level_histograms()]
    assert middles == sorted(middles) and middles[0] == 1, "most problems of level 1 have one operator"


def test_the_nearest_problem_is_found_whatever_its_place() -> None:
    for problems in (PROBLEMS, PROBLEMS[::-1]):
        near, far = nearest_problems([make_pair(), make_pair(python_code="x = 1\n")], problems)
        assert near.problem.name == "Scale" and 0.5 < near.similarity < 1
        assert far.similarity < 0.1
    (equal,) = nearest_problems([make_pair(python_code=OTHER + "\ndef get_inputs():\n    return []\n")], PROBLEMS)
    assert equal.problem.name == "Softmax" and equal.similarity == 1
    (part,) = nearest_problems([make_pair(python_code="x = 1\ny = x + 2")], [replace(PROBLEMS[0], code="x = 1")])
    assert part.similarity < 0.5, "the text of the problem is a part of the row's"


def test_each_fact_about_kernelbook_has_ours() -> None:
    pure, mixed = make_pair(), make_pair(purity=Purity.MIXED)
    executed = make_pair(verdict=replace(pure.verdict, tiers=(Tier.EXECUTED,)))
    compared = {one.what: one for one in compare_with_kernelbook([pure, pure, mixed, executed], 5)}
    assert all(one.kernelbook and one.ours and one.source for one in compared.values())
    assert compared["rows that Triton alone computes"].our_share == 0.75
    assert compared["rows whose values were compared on a GPU"].our_share == 0.25
    assert compared["rows"].ours == "4" and compared["overlap with benchmarks"].ours.endswith(": 5")


def test_the_page_is_whole_and_escaped() -> None:
    origin = SliceOrigin("mod_1", "Net", "", (), 1)
    pairs = [*make_pairs(4), make_pair(module_name=HOSTILE, slice_of=(origin,), matched_problems=("a/b",))]
    page = Page(render_statistics("tiny", pairs, [], PROBLEMS))
    assert page.open == [] and page.count("script") == page.count("img") == 0
    text = " ".join(page.text.split())
    assert "pairs that match a single operator and are labelled: 1" in text and "cut from a module1 · 20.0 %" in text
    assert "level 2, 3 Scale" in text and "from 0.78 on" in text
    alone = " ".join(Page(render_statistics("tiny", pairs, [])).text.split())
    assert "name a checkout with --kernelbench" in alone and "nearest" not in alone


def test_the_command(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    page = tmp_path / "page.html"
    ended = invoke("stats", SAMPLE, "--out", page)
    assert ended.status == 0 and ended.out.strip() == str(page)
    assert "20verified pairs" in Page(page.read_text()).text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((".",), "holds no dataset"), ((SAMPLE, "--kernelbench", "."), "no problems of level 1, 2, 3")],
)
def test_bad_input_is_one_line(
    arguments: tuple[str | Path, ...],
    said: str,
    tmp_path: Path,
    invoke: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = invoke("stats", *arguments)
    assert ended.status == 1 and said in ended.err and ended.err.count("\n") <= 2
    assert not (tmp_path / "out").exists()
