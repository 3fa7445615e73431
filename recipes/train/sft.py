"""Supervised training on verified pairs, by TRL's trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.records import Pair

from .augment import renamed
from .data import Fitted, fit_chats, for_sft, load_pairs, sft_rows, taught
from .trainer import Ask, Trained, arguments, lora_config, train_stage

_HELD_OUT = 64  # rows of the validation split that the loss is looked at on


def train(ask: Ask) -> Trained:
    """Train on the chats of the dataset's train split that fit into the context. Raises: UserError."""
    recipe = ask.recipe

    def make(model: Any, tokenizer: Any, stage: Path) -> Any:
        from trl import SFTConfig, SFTTrainer

        section, pairs = recipe.sft, load_pairs(ask.dataset, recipe.held_out)

        def fitted(rows: list[Pair]) -> Fitted:
            return fit_chats(rows, tokenizer, recipe.model.context, section.thinking)

        own = fitted(for_sft(taught(pairs), recipe.fresh)).some("model.context", recipe.rows)
        others = fitted(list(renamed(own, section.renamed))).pairs
        seen = fitted([pair for pair in taught(pairs) if pair.split == "validation"]).pairs[:_HELD_OUT]
        config = SFTConfig(
            **arguments(section, recipe.model, stage, section.batch),
            max_length=recipe.model.context,
            packing=section.packing,
            eval_packing=False,
            assistant_only_loss=True,
            eval_strategy="steps" if seen else "no",
            eval_steps=section.save_steps,
            per_device_eval_batch_size=section.per_device,
        )
        return SFTTrainer(
            model=model,
            args=config,
            train_dataset=sft_rows([*own, *others], section.thinking),
            eval_dataset=sft_rows(seen, section.thinking) if seen else None,
            processing_class=tokenizer,
            peft_config=lora_config(section),
        )

    return train_stage("sft", ask, recipe.sft, make)
