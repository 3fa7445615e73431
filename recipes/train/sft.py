"""Supervised training on verified pairs, by TRL's trainer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Pair

from .augment import renamed
from .data import Fitted, chat_of, fit_chats, for_sft, load_pairs, sft_rows, trainable
from .schedule import schedule
from .trainer import TrainingJob, TrainResult, lora_config, train_stage, trainer_arguments

_EVALUATION_STEPS = 100  # most steps between validation losses


def train(job: TrainingJob) -> TrainResult:
    """Train on the chats of the train split that fit into the model's context. Raises: UserError."""
    recipe = job.recipe

    def make_trainer(model: Any, tokenizer: Any, stage: Path) -> Any:
        from trl import SFTConfig, SFTTrainer

        # It advises against one sequence on a device, not knowing that sequences are packed before.
        logging.getLogger("trl.trainer.sft_trainer").setLevel(logging.ERROR)
        section = recipe.sft
        pairs = load_pairs(job.dataset, recipe.held_out, section.kernels)

        def fitted(rows: list[Pair]) -> Fitted:
            return fit_chats(rows, tokenizer, recipe.model.context, section.thinking)

        rows = fitted(for_sft(trainable(pairs), recipe.fresh, section.share)).take("model.context", recipe.rows)
        rows += fitted(list(renamed(rows, section.renamed))).pairs
        order = schedule(rows, section)
        if not order:
            raise UserError("no row is within the limits of sft.phases and sft.weights: change them with --set")
        held = [pair for pair in trainable(pairs) if pair.split == "validation"]
        validation = fitted(held).pairs[: section.validation]
        chats = [chat_of(pair, section.thinking) for pair in rows]
        validation_chats = [chat_of(pair, section.thinking) for pair in validation]
        config = SFTConfig(
            **trainer_arguments(section, recipe.model, stage, section.batch) | {"num_train_epochs": 1},
            max_length=None,  # longer rows were left out
            padding_free=True,
            train_sampling_strategy="sequential",
            eval_strategy="steps" if validation else "no",
            eval_steps=min(section.save_steps, _EVALUATION_STEPS),
            per_device_eval_batch_size=section.per_device,
        )
        return SFTTrainer(
            model=model,
            args=config,
            train_dataset=sft_rows(chats, order, tokenizer, recipe.model.context if section.packing else 0),
            eval_dataset=sft_rows(validation_chats, range(len(validation)), tokenizer, 0) if validation else None,
            processing_class=tokenizer,
            peft_config=lora_config(section),
        )

    return train_stage("sft", job, recipe.sft, make_trainer)
