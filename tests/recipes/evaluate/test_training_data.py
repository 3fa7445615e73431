"""A model is not scored on problems that its training data holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelquarry.pipeline.cli.training import evaluate
from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.evaluate.training_data import check_unseen

Train = Callable[[str, str], None]


@pytest.fixture
def train(tmp_path: Path, pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> Train:
    """Makes the folder of a stage that was trained on pairs, the first of which matches a problem."""
    monkeypatch.chdir(tmp_path)

    def make(stage: str, problem: str) -> None:
        data = f"data-{stage}"
        first = replace(pairs[0], matched_problems=(problem,) if problem else ())
        write_rows(tmp_path / data, Path("data/pairs"), Pair, [first, *pairs[1:]])
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "recipe.json").write_text(json.dumps({"recipe": {}, "dataset": data}))

    return make


@pytest.mark.parametrize(("suite", "levels", "is_refused"), [
    ("kernelbench", (1, 2), True),
    ("kernelbench", (2, 3), False),
    ("tritonbench-t", (), False),
])  # fmt: skip
def test_labelled_rows_and_their_level(suite: str, levels: tuple[int, ...], is_refused: bool, train: Train) -> None:
    train("sft", "kernelbench/level1/19_ReLU")
    train("grpo", "")
    for model in ("sft/model", "grpo/model"):  # the second goes on from the first
        if is_refused:
            with pytest.raises(UserError, match=f"{model}: its training data data-sft holds .*level1/19_ReLU"):
                check_unseen(model, suite, levels)
        else:
            check_unseen(model, suite, levels)


def test_other_models_are_scored(train: Train, caplog: pytest.LogCaptureFixture) -> None:
    train("grpo", "tritonbench-t/abs")
    check_unseen("owner/model", "tritonbench-t", ())
    with pytest.raises(UserError, match="tritonbench-t/abs"):
        check_unseen("grpo/model", "tritonbench-t", ())
    Path("grpo", "recipe.json").write_text(json.dumps({"dataset": "no/such/folder/at/all"}))
    check_unseen("grpo/model", "tritonbench-t", ())
    assert "cannot be compared with tritonbench-t: no/such/folder/at/all: no dataset folder" in caplog.text


def test_the_command_refuses_before_it_reads_the_benchmark(train: Train) -> None:
    train("sft", "kernelbench/level1/19_ReLU")
    with pytest.raises(UserError, match="holds copies of problems"):
        evaluate("sft/model", suite="kernelbench", source="nowhere", level=None, gpus="none", workers=1)
