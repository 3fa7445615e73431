"""The answers that a source records as right, and the count of those inside of the language."""

from __future__ import annotations

import json
from pathlib import Path

import inside
import pytest

from kernelquarry.pipeline.schema.errors import UserError

GOOD = "import torch\n\n\ndef f(x):\n    return torch.empty_like(x)\n"
BAD = "import os\n"


def _source(reader: str, count: int) -> inside.AnswerSource:
    return inside.AnswerSource("somebody/answers", "0" * 40, "MIT", reader, "", count, "ModelNew", fresh=True)


def _evaluations(root: Path) -> None:
    """Two right answers to one problem, of which the better is outside of the language, and a wrong one to another."""
    for problem, number, code, runs, score in (
        ("a", 1, GOOD, True, 0.5),
        ("a", 2, BAD, True, 2.0),
        ("b", 1, GOOD, False, 1),
    ):
        folder = root / "answers" / "results" / "level1" / problem
        for part in ("evaluation", "code"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "code" / f"{number}.py").write_text(code)
        evaluation = {"runnable": runs, "score": score, "candidate_file": f"candidates/{number}.py"}
        (folder / "evaluation" / f"eval_{number}.json").write_text(json.dumps(evaluation))


def test_the_best_right_answer_of_a_problem_counts(tmp_path: Path) -> None:
    _evaluations(tmp_path)
    found = inside.measure(_source("evaluations", 1), tmp_path)
    assert (found.answers, found.inside) == (1, 0)
    assert found.outside[0].startswith("an import from os")


def test_rows_of_a_table_say_which_answers_are_right(tmp_path: Path) -> None:
    folder = tmp_path / "answers" / "output" / "zeroshot" / "model" / "level1"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(GOOD + f"# {name}\n")
    (tmp_path / "answers" / "results").mkdir()
    rows = "Problem,Level,Correctness\na,level1,True\nb,level1,False\nc,level1,True\n"
    (tmp_path / "answers" / "results" / "zeroshot_model.csv").write_text(rows)
    assert inside.measure(_source("tables", 1), tmp_path) == inside.Measured(1, ())


def test_a_missing_checkout_and_another_commit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        inside.measure(_source("evaluations", 1), tmp_path)
    _evaluations(tmp_path)
    with pytest.raises(UserError, match="1 right answers in place of 2"):
        inside.measure(_source("evaluations", 2), tmp_path)


def test_each_source_has_a_reader() -> None:
    assert {source.reader for source in inside.sources()} <= inside.READERS.keys()
    assert {source.fresh for source in inside.sources()} == {False, True}
