"""Commands of the recipes with a tiny model, and their one-line errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kernelquarry.pipeline.cli.app import app
from kernelquarry.pipeline.schema.errors import UserError
from tests.recipes.evaluate.test_evaluate import SOFTMAX

CUT = (
    "--set",
    "sft.steps=2",
    "--set",
    "grpo.steps=1",
    "--set",
    "evaluation.samples=2",
    "--set",
    "evaluation.new_tokens=8",
)


@pytest.fixture(autouse=True)
def _errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelquarry.pipeline.cli.failures.os._exit", _raise)


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code in (0, 1), result.output
    return result.output


def test_train_runs_all_stages_and_skips_finished_ones(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("train", "--config", recipe_file, "--dataset", dataset, "--out", out, "--gpus", "none", *CUT)
    output = run(*command)
    assert "| base |" in output and "| sft |" in output and "| grpo |" in output
    assert "**None of 4 answers is right.** Most frequent reasons: no_code (4)." in output
    assert "Training loss: " in output and "This model saw 2 steps." in output
    assert (out / "leaderboard.md").read_text().startswith("# Leaderboard")
    (results,) = json.loads((out / "evaluation" / "grpo" / "results.json").read_text())
    assert results["samples"] == 2 and results["strict"]["pass@1"]["value"] == 0.0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    assert run(*command).count("| base |") == 1
    assert {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")} == before
    (tmp_path / "module.py").write_text(SOFTMAX)
    model = out / "grpo" / "model"
    run("write", tmp_path / "module.py", "--model", model, "--new-tokens", "8", "--no-verify", "--gpus", "none")
    page = tmp_path / "page.md"
    run("leaderboard", out, "--out", page)
    assert page.read_text().count("| grpo |") == 1


def test_a_model_is_served_under_its_name(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    async def listen(*arguments: Any) -> None:
        calls.extend(arguments)

    monkeypatch.setattr("kernelquarry.recipes.generate.serve.serve", listen)
    run("serve", tiny_model, "--chat", "chatml.jinja", "--port", "0")
    model, *place = calls
    assert model.name == str(tiny_model) and place == ["127.0.0.1", 0]
    with pytest.raises(UserError, match="no such template"):
        run("serve", tiny_model, "--chat", "none.jinja")


def test_a_stage_stops_at_its_time_limit_and_resumes(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    out = ("--config", recipe_file, "--dataset", dataset, "--out", tmp_path)
    assert "stopped at step 1; the same command goes on" in run("sft", *out, "--minutes", "0.000001")
    assert str(tmp_path / "sft" / "model") in run("sft", *out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sft", "--config", "unknown"), "no such recipe"),
        (("sft", "--config", "smollm2-135m-cpu", "--dataset", "no/such/folder/at/all"), "no dataset folder"),
        (("sft", "--config", "autotriton-8b"), "needs a GPU"),
        (("grpo", "--config", "kernelllm-8b"), "needs a GPU"),
        (("evaluate", "model", "--suite", "unknown"), "there are modules, slices, easy, test, embedded"),
        (("evaluate", "no-model", "--suite", "embedded"), "no tokenizer"),
        (("write", "no_file.py"), "no such file"),
        (("leaderboard", "nowhere"), "holds no results"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelquarry.recipes.generate.models._CACHE", tmp_path)
    changes = (
        ("--set", f"model.name={tiny_model}", "--set", "model.chat=chatml.jinja") if "-cpu" in str(arguments) else ()
    )
    with pytest.raises(UserError, match=message):
        CliRunner().invoke(app, [*arguments, *changes], catch_exceptions=False)


def _raise(status: int) -> None:
    import sys

    error = sys.exc_info()[1]
    assert status == 1 and error is not None
    raise error
