"""The folder of a training: its recipe, its checkpoints, its curves, and, when it is over, its model.

out/train/smollm2-135m/recipe.json
                       sft/checkpoint-100/   what a killed training goes on from
                           curves.jsonl, curves.png
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
from kernelquarry.pipeline.schema.files import replace_file
from kernelquarry.recipes.config import Recipe

_WRITTEN_LAST = "trainer_state.json"


def claim(folder: Path, stage: str, recipe: Recipe, dataset: str) -> Path:
    """The folder of one stage, which goes on only with what it was begun with.

    Raises:
        UserError: it was begun with another recipe or dataset.
    """
    path = folder / stage / "recipe.json"
    asked = {"recipe": recipe.model_dump(mode="json"), "dataset": dataset}
    if path.is_file():
        begun = json.loads(path.read_text())
        if begun != asked:
            raise UserError(f"{folder / stage} was begun with another {_difference(begun, asked)}: give another --out")
    else:
        with replace_file(path) as stream:
            stream.write(json.dumps(asked, indent=1).encode())
    return folder / stage


def _difference(begun: dict[str, Any], asked: dict[str, Any], where: str = "") -> str:
    for key in sorted(begun.keys() | asked.keys()):
        old, new = begun.get(key), asked.get(key)
        if isinstance(old, dict) and isinstance(new, dict) and old != new:
            return _difference(old, new, f"{where}{key}.")
        if old != new:
            return f"{where}{key} ({old}, not {new})"
    return "recipe"


def finished(stage: Path) -> bool:
    return (stage / "model" / "config.json").is_file()


def last_checkpoint(stage: Path) -> str | None:
    """The newest checkpoint that is whole; one that a kill cut off is removed."""
    found = sorted(stage.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]), reverse=True)
    for path in found:
        try:
            json.loads((path / _WRITTEN_LAST).read_text())
        except (OSError, ValueError):
            shutil.rmtree(path)
            continue
        return str(path)
    return None


def save_model(trainer: Any, tokenizer: Any, stage: Path) -> None:
    """The trained model in `stage/model`, adapters merged into it. It appears whole or not at all."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    model = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    model.generation_config.do_sample = True  # or servers would give one answer to every sample
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
