"""Supervised training on verified pairs, by TRL's trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.records import Pair

from .augment import renamed
from .data import Fitted, fit_chats, for_sft, load_pairs, sft_rows, trainable
from .trainer import TrainingJob, TrainResult, lora_config, train_stage, trainer_arguments

_VALIDATION_ROWS = 64  # most rows for the validation loss


def train(job: TrainingJob) -> TrainResult:
    """Train on the chats of the train split that fit into the model's context. Raises: UserError."""
    recipe = job.recipe

    def make_trainer(model: Any, tokenizer: Any, stage: Path) -> Any:
        from trl import SFTConfig, SFTTrainer

        section, pairs = recipe.sft, load_pairs(job.dataset, recipe.held_out)

        def fitted(rows: list[Pair]) -> Fitted:
            return fit_chats(rows, tokenizer, recipe.model.context, section.thinking)

        rows = fitted(for_sft(trainable(pairs), recipe.fresh)).take("model.context", recipe.rows)
        copies = fitted(list(renamed(rows, section.renamed))).pairs
        validation = fitted([pair for pair in trainable(pairs) if pair.split == "validation"]).pairs[:_VALIDATION_ROWS]
        config = SFTConfig(
            **trainer_arguments(section, recipe.model, stage, section.batch),
            max_length=recipe.model.context,
            packing=section.packing,
            eval_packing=False,
            assistant_only_loss=True,
            eval_strategy="steps" if validation else "no",
            eval_steps=section.save_steps,
            per_device_eval_batch_size=section.per_device,
        )
        return SFTTrainer(
            model=model,
            args=config,
            train_dataset=sft_rows([*rows, *copies], section.thinking),
            eval_dataset=sft_rows(validation, section.thinking) if validation else None,
            processing_class=tokenizer,
            peft_config=lora_config(section),
        )

    return train_stage("sft", job, recipe.sft, make_trainer)
