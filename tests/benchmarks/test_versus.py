"""Several judges of the same candidates: KernelBench's evaluator is a double, in a checkout of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pages
import pytest
import versus
from corpus import load_case

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.jsonl_append import add_line

PACKAGE = {
    "__init__.py": "from . import utils\n",
    "utils.py": (
        "from dotenv import load_dotenv\nfrom litellm import completion\nfrom openai import OpenAI\n\nload_dotenv()\n"
    ),
    "kernel_static_checker.py": (
        "def validate_kernel_static(code, backend, precision):\n"
        "    found = ['contains pass'] if 'pass' in code else []\n"
        "    return not found, found, []\n"
    ),
    "eval.py": """
import torch
from pydantic import BaseModel


class Result(BaseModel):
    correctness: bool = False
    metadata: dict = {}


def eval_kernel_against_ref(reference, candidate, num_correct_trials, measure_performance, device, backend, precision):
    assert (num_correct_trials, measure_performance, backend, precision) == (5, False, "triton", torch.float32)
    theirs, ours = {}, {}
    exec(reference, theirs)
    exec(candidate, ours)
    inputs = theirs["get_inputs"]()
    if torch.allclose(theirs["Model"]()(*inputs), ours["ModelNew"]()(*inputs)):
        return Result(correctness=True, metadata={})
    return Result(correctness=False, metadata={"correctness_issue": "Output mismatch", "max_difference": ["0.5", "1"]})
""",
}
REFERENCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.ones(3)]


def get_init_inputs():
    return []
"""
RIGHT = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x + x\n"


@pytest.fixture
def checkout(tmp_path: Path) -> dict[str, str]:
    package = tmp_path / "checkout" / "src" / "kernelbench"
    package.mkdir(parents=True)
    for name, text in PACKAGE.items():
        (package / name).write_text(text)
    return versus.read_checkout(tmp_path / "checkout")


def entry(code: str, name: str = "case") -> versus.Entry:
    return versus.Entry(versus.EVIL, "numerics", name, REFERENCE, code)


def test_kernelbench_judges_in_a_guest(checkout: dict[str, str]) -> None:
    codes = (
        RIGHT,
        RIGHT.replace("x + x", "x + 3"),
        RIGHT.replace("return x + x", "raise OSError('no')"),
        "import os; os._exit(0)",
    )
    codes += (f"{RIGHT}    pass\n",)
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        right, off, raising, dying, flagged = (versus.by_kernelbench(entry(code), sandbox, checkout) for code in codes)
        own = versus.by_kernelbench(versus.own_answer(REFERENCE), sandbox, checkout)
    assert right == own == {"accepted": True, "why": "", "static": []}
    assert off == {"accepted": False, "why": "Output mismatch; 0.5", "static": []}
    assert (raising["accepted"], raising["why"]) == (False, "OSError: no")
    assert dying["accepted"] is False
    assert dying["why"].startswith("crashed: ")
    assert flagged == {"accepted": True, "why": "", "static": ["contains pass"]}


def test_a_folder_without_the_evaluator_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no eval.py"):
        versus.read_checkout(tmp_path)


def test_ours_and_allclose_judge_cases() -> None:
    entries = {e.name: e for corpus in ("evil", "honest") for e in versus.of_cases(corpus, gpus=False)}
    wrong, right = entries["returns_zeros"], entries["softmax"]
    assert (wrong.group, right.group) == (load_case("evil", "returns_zeros").group, "honest")
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        assert versus.by_ours(wrong, sandbox)["accepted"] is False
        assert versus.by_ours(right, sandbox) == {"accepted": True, "why": ""}
        assert versus.by_allclose(wrong, sandbox)["accepted"] is False
        assert versus.by_allclose(right, sandbox) == {"accepted": True, "why": ""}


def test_a_launch_that_only_the_sandbox_refuses_is_no_verdict() -> None:
    assert versus.verdict(False, "Fault: a cluster, which guests do not give")["accepted"] is None
    assert versus.verdict(False, "Output mismatch")["accepted"] is False


def test_a_run_resumes_and_judges_each_control_once() -> None:
    control = versus.own_answer(REFERENCE)
    entries = [control, entry(RIGHT, "one"), control, entry(RIGHT, "two")]
    judges = {"ours": "ours 1", "kernelbench": "kernelbench 1"}
    work = versus.plan(entries, judges, set())
    assert [(piece.judge, piece.entry.name) for piece in work] == [
        ("kernelbench", ""),
        *((judge, name) for name in ("one", "two") for judge in judges),
    ]
    left = versus.plan(entries, judges | {"ours": "ours 2"}, {piece.key for piece in work})
    assert [(piece.judge, piece.entry.name) for piece in left] == [("ours", "one"), ("ours", "two")], "changed code"


class Results:
    """A file of results, written line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        judges = {judge: f"{judge} 1" for judge in ("ours", "kernelbench", "allclose")}
        add_line(path, {"machine": "16 cores, GPU", "versions": {"torch": "2"}, "judges": judges})

    def add(self, id: str, judge: str, accepted: bool | None, code: int = 1, **fields: Any) -> None:
        about = {
            "key": f"{judge} {code} {id}",
            "judge": judge,
            "id": id,
            "corpus": id.split(":")[0],
            "class": "numerics",
        }
        add_line(self.path, about | {"control": "control:a", "accepted": accepted, "static": []} | fields)

    def add_all(self, id: str, ours: bool | None, kernelbench: bool, allclose: bool, **fields: Any) -> None:
        for judge, accepted in {"ours": ours, "kernelbench": kernelbench, "allclose": allclose}.items():
            self.add(id, judge, accepted, **fields)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    found = Results(tmp_path / "results.jsonl")
    for control, accepted in (("control:a", True), ("control:b", False)):
        found.add(control, "kernelbench", accepted)
        found.add(control, "allclose", True)
    return found


def row(summary: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in summary["classes"] if row["class"] == name)
    return found


def errors(summary: dict[str, Any], name: str) -> dict[str, int]:
    return {judge: row(summary, name)[judge]["errors"] for judge in versus.JUDGES}


def test_errors_are_wrong_acceptances_and_wrong_rejections(results: Results) -> None:
    results.add_all("evil:a", False, True, True)
    results.add_all("evil:b", False, False, True)
    results.add_all("evil:c", False, True, False, static=["contains pass"])
    results.add_all("honest:a", True, False, True, **{"class": "honest"})
    summary = versus.summarise(results.path)
    assert errors(summary, "evil: numerics") == {"ours": 0, "kernelbench": 2, "static": 1, "allclose": 2}
    assert errors(summary, "honest") == {"ours": 0, "kernelbench": 1, "static": 1, "allclose": 0}
    assert row(summary, "all wrong")["candidates"] == 3
    assert row(summary, "all wrong")["kernelbench"] == {"errors": 2, "rate": 66.6667, "low": 20.7655, "high": 93.851}


def test_a_candidate_counts_if_every_judge_can_judge_it(results: Results) -> None:
    results.add_all("evil:a", False, True, True)
    results.add_all("evil:b", False, False, True, control="control:b")  # KernelBench rejects its reference
    results.add_all("evil:c", None, True, True)
    results.add("evil:d", "ours", False)  # not reached by the others
    summary = versus.summarise(results.path)
    assert row(summary, "all evil")["candidates"] == 1
    assert summary["left_out"] == {"evil": 2}


def test_a_mutant_is_wrong_if_it_was_killed_or_has_a_witness(results: Results) -> None:
    about = {"class": "precision"}
    results.add_all("mutants:a", False, True, True, truth="killed", **about)
    results.add_all("mutants:b", True, False, True, truth="missed", **about)
    results.add_all("mutants:c", True, False, True, truth="equivalent", **about)
    results.add_all("mutants:d", False, False, False, truth="stillborn", **about)
    summary = versus.summarise(results.path)
    assert row(summary, "mutants: precision")["candidates"] == 2
    assert errors(summary, "all mutants") == {"ours": 1, "kernelbench": 1, "static": 1, "allclose": 2}
    assert summary["unproven"] == 1
    assert summary["disputed"] == {"kernelbench": ["mutants:c"], "static": ["mutants:c"], "allclose": []}


def test_verdicts_of_earlier_code_do_not_count(results: Results) -> None:
    results.add_all("evil:a", False, True, True)
    results.add("evil:a", "ours", True, code=0)
    assert errors(versus.summarise(results.path), "all evil")["ours"] == 0


def test_an_incomplete_file_is_not_recorded(results: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(versus, "RECORDED", tmp_path / "versus.json")
    results.add_all("evil:a", False, True, True)
    with pytest.raises(UserError, match="lacks a verdict on"):
        versus.write(results.path, "")
    assert not (tmp_path / "versus.json").exists()


def test_the_table_has_each_class_and_rate(results: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorded = tmp_path / "versus.json"
    monkeypatch.setattr(pages, "VERSUS", recorded)
    assert pages.render_versus_table() == ""
    assert "Not measured yet." in pages.render_versus()
    results.add_all("evil:a", False, True, False)
    results.add_all("honest:a", True, False, True)
    recorded.write_text(json.dumps(versus.summarise(results.path) | {"revision": "423217d"}))
    table = pages.render_versus_table()
    none, all_of = "0 (0.0 %; 0.0 to 79.3)", "1 (100.0 %; 20.7 to 100.0)"
    assert f"| all wrong: wrongly accepted | 1 | {none} | {all_of} | {all_of} | {none} |" in table
    assert f"| honest: wrongly rejected | 1 | {none} | {all_of} | {all_of} | {none} |" in table
    assert "16 cores, GPU; KernelBench at commit 423217d" in table
    assert table in pages.render_versus()
