"""Supervised training of a tiny model."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, TrainerCallback

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.config import load_recipe
from kernelquarry.recipes.generate import adapters
from kernelquarry.recipes.generate.models import load_model, load_tokenizer
from kernelquarry.recipes.train import sft
from kernelquarry.recipes.train.callbacks import SkipNonFiniteSteps
from kernelquarry.recipes.train.curves import series
from kernelquarry.recipes.train.data import sft_rows
from kernelquarry.recipes.train.run_directory import last_checkpoint
from kernelquarry.recipes.train.sft import train
from kernelquarry.recipes.train.trainer import TrainingJob, advise_on_memory


def history(stage: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (stage / "curves.jsonl").read_text().splitlines()]


def test_the_loss_falls_and_the_model_is_saved(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    job = TrainingJob(load_recipe(recipe_file), str(dataset), tmp_path / "out")
    trained = train(job)
    assert trained.done and trained.steps == 6
    losses = [value for _, value in series(history(trained.stage), "loss")]
    assert len(losses) == 6 and losses[-1] < losses[0] - 0.3
    assert series(history(trained.stage), "eval_loss")
    assert (trained.stage / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in trained.stage.glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-4"]
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert AutoModelForCausalLM.from_pretrained(trained.model).num_parameters() > 1000
    assert "generation" in AutoTokenizer.from_pretrained(trained.model).chat_template
    assert train(job).steps == 0  # the stage is finished


def test_a_stopped_training_resumes(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file)
    stopped = train(TrainingJob(recipe, str(dataset), tmp_path / "out", minutes=1e-9))
    assert not stopped.done and stopped.steps == 1 and not stopped.model.exists()
    half = stopped.stage / "checkpoint-4"  # an incomplete checkpoint, as a kill leaves it
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"cut off")
    whole = train(TrainingJob(recipe, str(dataset), tmp_path / "whole"))
    resumed = train(TrainingJob(recipe, str(dataset), tmp_path / "out"))
    assert resumed.done and resumed.steps == 6
    losses = [dict(series(history(t.stage), "loss")) for t in (whole, resumed)]
    assert losses[0][6] == pytest.approx(losses[1][6], abs=1e-4)


def test_answers_may_begin_with_a_plan(
    dataset: Path, recipe_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats: list[Any] = []
    monkeypatch.setattr(sft, "sft_rows", lambda rows, *others: chats.append(rows) or sft_rows(rows, *others))
    for thinking in ("false", "true"):
        changes = [f"sft.thinking={thinking}", "sft.steps=1", "model.context=3000"]
        train(TrainingJob(load_recipe(recipe_file, changes), str(dataset), tmp_path / thinking))
    plain, _, planned, _ = chats
    assert [chat[:2] for chat in plain] == [chat[:2] for chat in planned]
    for old, new in zip(plain, planned, strict=True):
        assert new[2]["content"].startswith("<think>\nThe module runs ")
        assert read_answer(new[2]["content"]) == read_answer(old[2]["content"])


def test_renamed_copies_lengthen_an_epoch(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    epochs = []
    for copies in (0, 2):
        recipe = load_recipe(recipe_file, [f"sft.renamed={copies}", "sft.steps=1"])
        trained = train(TrainingJob(recipe, str(dataset), tmp_path / str(copies)))
        epochs.append(series(history(trained.stage), "epoch")[-1][1])
    assert epochs[1] < epochs[0] / 2


def test_incomplete_checkpoints_are_ignored(tmp_path: Path) -> None:
    for step, text in ((2, "{}"), (4, '{"glob'), (10, None)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if text is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(text)
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-2")
    assert last_checkpoint(tmp_path / "none") is None


def test_lora_adapters_are_merged(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    changes = ("sft.lora.rank=2", "sft.lora.alpha=4", "sft.steps=1", "sft.packing=false")
    trained = train(TrainingJob(load_recipe(recipe_file, changes), str(dataset), tmp_path / "out"))
    assert not list(trained.model.glob("adapter*"))
    assert json.loads((trained.model / "generation_config.json").read_text())["do_sample"]  # for servers
    assert (trained.model / "model.safetensors").is_file()


def test_an_adapter_travels_without_its_model(
    dataset: Path, recipe_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    monkeypatch.setattr(adapters, "_PART", 2000)
    changes = ("sft.lora.rank=2", "sft.lora.alpha=4", "sft.steps=1")
    trained = train(TrainingJob(load_recipe(recipe_file, changes), str(dataset), tmp_path))
    folder = tmp_path / "carried"
    shutil.copytree(trained.stage / "adapter", folder)
    parts = sorted(folder.glob("*.safetensors"))
    assert len(parts) > 1 and all(part.stat().st_size < 4000 for part in parts)
    merged = dict(load_model(str(folder)).named_parameters())
    before = dict(load_model(str(tiny_model)).named_parameters())
    whole = dict(load_model(str(trained.model)).named_parameters())
    assert any(not torch.equal(before[name], weight) for name, weight in whole.items())
    for name, weight in whole.items():
        torch.testing.assert_close(merged[name], weight, rtol=0, atol=2e-3)  # the adapter is rounded to bfloat16
    assert "generation" in load_tokenizer(str(folder)).chat_template
    shutil.move(tiny_model, tmp_path / "moved")
    try:
        with pytest.raises(UserError, match="no such model"):
            load_model(str(folder))
        assert load_model(str(folder), base=str(tmp_path / "moved")).num_parameters() > 1000
    finally:
        shutil.move(tmp_path / "moved", tiny_model)
    save_file({f"other.{name}": weight for name, weight in load_file(parts[0]).items()}, parts[0])
    with pytest.raises(UserError, match="adapter of another model"):
        load_model(str(folder))
    parts[0].unlink()
    with pytest.raises(UserError, match="some are missing"):
        load_model(str(folder))


def test_another_recipe_does_not_resume(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    train(TrainingJob(load_recipe(recipe_file, ("sft.steps=1",)), str(dataset), tmp_path / "out"))
    with pytest.raises(UserError, match=r"recipe\.sft\.steps \(1, not 6\)"):
        train(TrainingJob(load_recipe(recipe_file), str(dataset), tmp_path / "out"))


def test_a_step_with_nan_gradients_is_skipped(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    class MakeNan(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            weight = next(model.parameters())
            weight.register_hook(lambda gradient: gradient * (math.nan if state.global_step == 1 else 1.0))

    trained = train(TrainingJob(load_recipe(recipe_file), str(dataset), tmp_path, callbacks=(MakeNan(),)))
    steps = [json.loads(line) for line in (trained.stage / "curves.jsonl").read_text().splitlines()]
    norms = [step["grad_norm"] for step in steps if "grad_norm" in step]
    assert sum(map(math.isnan, norms)) == 1 < len(norms)
    weights = AutoModelForCausalLM.from_pretrained(trained.model).parameters()
    assert all(weight.isfinite().all() for weight in weights)


def test_lasting_nan_gradients_end_the_training() -> None:
    callback, state = SkipNonFiniteSteps("grpo"), SimpleNamespace(global_step=9)
    for norm in (math.nan, math.nan, math.nan, math.nan, 1.0, math.inf, math.inf, math.inf, math.inf):
        callback.on_log(None, state, None, {"grad_norm": norm})
    with pytest.raises(UserError, match=r"steps up to 9 are numbers: lower grpo\.learning_rate"):
        callback.on_log(None, state, None, {"grad_norm": math.nan})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("needs_gpu=true",), "needs a GPU"),
        (("sft.batch=3", "sft.per_device=2"), "no multiple of per_device"),
        (("model.context=20",), r"rows are longer than model\.context allows"),
        (("model.name=package:no_such_package",), "no package with a model"),
        (("model.name=/no/such/model",), "no such model: run `make train`"),
    ],
)
def test_invalid_settings_raise_a_user_error(
    dataset: Path, recipe_file: str, tmp_path: Path, changes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train(TrainingJob(load_recipe(recipe_file, changes), str(dataset), tmp_path / "out"))


def test_an_out_of_memory_error_names_settings() -> None:
    import torch

    with pytest.raises(UserError, match=r"lower sft\.per_device"), advise_on_memory("sft"):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
