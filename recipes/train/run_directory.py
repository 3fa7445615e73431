"""The folder of a training, with one folder for each stage.

out/train/smollm2-135m/sft/recipe.json       recipe and dataset
                           checkpoint-100/   a killed training resumes from the last one
                           curves.jsonl, curves.png
                           adapter/          of LoRA, in parts of at most 16 MiB
                           model/            written last, renamed into place
                       grpo/...
                       evaluation/...
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import write_text
from kernelquarry.recipes.config import Recipe
from kernelquarry.recipes.generate.adapters import is_adapter, save_adapter

_WRITTEN_LAST = "trainer_state.json"


def claim(folder: Path, stage: str, recipe: Recipe, dataset: str) -> Path:
    """The folder of a stage. The first call records recipe and dataset there.

    Raises:
        UserError: the stage was started with another recipe or dataset.
    """
    path = folder / stage / "recipe.json"
    current = {"recipe": recipe.model_dump(mode="json"), "dataset": dataset}
    if path.is_file():
        recorded = json.loads(path.read_text())
        if recorded != current:
            difference = _difference(recorded, current)
            raise UserError(f"{folder / stage} was begun with another {difference}: give another --out")
    else:
        write_text(path, json.dumps(current, indent=1))
    return folder / stage


def _difference(recorded: dict[str, Any], current: dict[str, Any], prefix: str = "") -> str:
    """The first key whose value differs, with both values."""
    for key in sorted(recorded.keys() | current.keys()):
        old, new = recorded.get(key), current.get(key)
        if isinstance(old, dict) and isinstance(new, dict) and old != new:
            return _difference(old, new, f"{prefix}{key}.")
        if old != new:
            return f"{prefix}{key} ({old}, not {new})"
    return "recipe"


def is_finished(stage: Path) -> bool:
    return (stage / "model" / "config.json").is_file()


def last_checkpoint(stage: Path) -> str | None:
    """The newest complete checkpoint. Incomplete ones, which a kill leaves behind, are removed."""
    checkpoints = sorted(stage.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]), reverse=True)
    for path in checkpoints:
        try:
            json.loads((path / _WRITTEN_LAST).read_text())
        except (OSError, ValueError):
            shutil.rmtree(path)
            continue
        return str(path)
    return None


def trained_model(stage: Path) -> str:
    """The stage's model, or its adapter if only that was brought here; "" if the stage is not finished."""
    if is_finished(stage):
        return str(stage / "model")
    return str(stage / "adapter") if is_adapter(stage / "adapter") else ""


def save_model(trainer: Any, tokenizer: Any, stage: Path, base: str) -> None:
    """Write the trained model to `stage/model`, with adapters merged. The folder appears complete or not at all.

    The adapter alone, and the tokenizer, are in `stage/adapter`. `base`: the model that was trained.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    if hasattr(model, "peft_config") and trainer.accelerator.is_main_process:
        save_adapter(model, base, stage / "adapter")
        tokenizer.save_pretrained(stage / "adapter")
    model = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    model.generation_config.do_sample = True  # else servers decode greedily, and all samples are equal
    partial, final = stage / f".model.{os.getpid()}.tmp", stage / "model"
    if trainer.is_fsdp_enabled:
        trainer.save_model(str(partial))
    elif trainer.accelerator.is_main_process:
        model.save_pretrained(partial)
    if trainer.accelerator.is_main_process:
        tokenizer.save_pretrained(partial)
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
    trainer.accelerator.wait_for_everyone()
