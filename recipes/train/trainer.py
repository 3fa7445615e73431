"""What supervised training and GRPO share: TRL's arguments, the way around a training, and what may go wrong in it."""

from __future__ import annotations

import importlib.util
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.config import ModelSection, OptimiserSection, Recipe
from kernelquarry.recipes.generate.models import load_model, load_tokenizer, resolve

from .curves import write_curves
from .run_directory import claim, finished, last_checkpoint, save_model

_logger = logging.getLogger(__name__)
_ENDS_AFTER = 5  # logged steps with gradients that are no numbers


@dataclass(frozen=True, slots=True)
class Ask:
    """What is to be trained, from what, where, and for how long."""

    recipe: Recipe
    dataset: str  # folder, or id on the Hub
    out: Path
    start: str = ""  # model to begin with in place of the recipe's
    minutes: float = 0.0  # after which a checkpoint is written and the training stops; 0 is never
    callbacks: tuple[Any, ...] = ()  # of the trainer, beside ours


@dataclass(frozen=True, slots=True)
class Trained:
    """How far a training is."""

    stage: Path
    done: bool
    steps: int
    seconds: float  # of this call

    @property
    def model(self) -> Path:
        return self.stage / "model"


def train_stage(name: str, ask: Ask, section: OptimiserSection, make: Callable[[Any, Any, Path], Any]) -> Trained:
    """Train one stage to its end, or until its time is up; a stage that is done is left alone.

    `make(model, tokenizer, folder)` gives the trainer.

    Raises:
        UserError: what was asked for cannot be done here.
    """
    stage = claim(ask.out, name, ask.recipe, ask.dataset)
    if finished(stage):
        _logger.info("%s is done: %s", name, stage / "model")
        return Trained(stage, True, 0, 0.0)
    check_device(ask.recipe, section)
    model_section = ask.recipe.model
    begun, path = time.monotonic(), ask.start or resolve(model_section.name)
    tokenizer = load_tokenizer(model_section, path)
    with suggesting(name):
        model = load_model(model_section, path)
        if section.compile:
            compile_layers(model)
        trainer = make(model, tokenizer, stage)
        for callback in (_clock(), skips_what_is_no_number(name), *ask.callbacks):
            trainer.add_callback(callback)
        if ask.minutes:
            trainer.add_callback(_deadline(begun + 60 * ask.minutes))
        trainer.train(resume_from_checkpoint=last_checkpoint(stage))
    state = trainer.state
    if trainer.accelerator.is_main_process:
        write_curves(stage, name, state.log_history)
    done = state.global_step >= state.max_steps
    if done:
        save_model(trainer, tokenizer, stage)
    return Trained(stage, done, state.global_step, time.monotonic() - begun)


def check_device(recipe: Recipe, section: OptimiserSection) -> None:
    """Raises: UserError: the recipe is for GPUs, and there is none."""
    import torch

    if recipe.needs_gpu and not torch.cuda.is_available():
        raise UserError("this recipe needs a GPU, and torch finds none: smollm2-135m-cpu runs without")


def arguments(section: OptimiserSection, model: ModelSection, stage: Path, sequences: int) -> dict[str, Any]:
    """Of TRL's configs, those that both trainings have; `sequences` a step, over all devices.

    Raises:
        UserError: the step cannot be shared by the devices.
    """
    import torch
    from accelerate import PartialState

    cuda, devices = torch.cuda.is_available(), PartialState().num_processes
    accumulation, rest = divmod(sequences, section.per_device * devices)
    if rest or not accumulation:
        told = f"{sequences} sequences a step are no multiple of per_device ({section.per_device}) times {devices}"
        raise UserError(f"{told} processes: change one of them with --set")
    return {
        "output_dir": str(stage),
        "learning_rate": section.learning_rate,
        "num_train_epochs": section.epochs,
        "max_steps": section.steps,
        "per_device_train_batch_size": section.per_device,
        "gradient_accumulation_steps": accumulation,
        "lr_scheduler_type": section.schedule,
        "warmup_steps": section.warmup,  # below 1, a share of the steps
        "weight_decay": section.weight_decay,
        "max_grad_norm": section.clip,
        "bf16": model.dtype == "bfloat16",
        "tf32": True if cuda and model.dtype == "float32" else None,  # torch 2.10 compiles nothing beside it
        "use_cpu": not cuda,
        "gradient_checkpointing": section.gradient_checkpointing,
        "use_liger_kernel": section.liger and cuda and importlib.util.find_spec("liger_kernel") is not None,
        "save_steps": section.save_steps,
        "save_total_limit": section.keep_checkpoints,
        "logging_steps": section.log_steps,
        # Neither looking for NaN nor copying a batch waits for the GPU, so that the next batch is made beside its work.
        "logging_nan_inf_filter": False,
        "accelerator_config": {"non_blocking": cuda},
        "report_to": section.report_to,
        "seed": section.seed,
        "disable_tqdm": None,
    }


def compile_layers(model: Any) -> None:
    """Each layer by torch.compile, for rows of any length; all share one graph, which is made in seconds."""
    for layer in model.base_model.layers:
        layer.compile(dynamic=True)


def lora_config(section: OptimiserSection) -> Any:
    """PEFT's config, None for all weights."""
    if section.lora is None:
        return None
    from peft import LoraConfig

    lora = section.lora
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.modules,
        task_type="CAUSAL_LM",
    )


@contextmanager
def suggesting(stage: str) -> Iterator[None]:
    """An error of memory becomes a line that names the knobs."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        told = str(error).splitlines()[0]
        knobs = f"lower {stage}.per_device or model.context, or set {stage}.gradient_checkpointing=true"
        raise UserError(f"the GPU's memory is full ({told}): {knobs}; the same command goes on from here") from None


def _clock() -> Any:
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        """Notes with each entry of the log how long this call trains, its first step left out: there layers compile."""

        began = 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = self.began or time.monotonic()

        def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            state.log_history[-1]["seconds"] = time.monotonic() - self.began if self.began else 0.0

    return Clock()


def skips_what_is_no_number(stage: str) -> Any:
    """A callback of the trainer: a step whose gradients hold NaN or infinity takes none of them.

    One such step would leave no number in the model. Many in a row are no accident, and end the training.
    """
    import torch
    from torch.distributed.tensor import DTensor
    from transformers import TrainerCallback

    class Skips(TrainerCallback):
        in_a_row = 0

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
            broken = ~torch.isfinite(norm.full_tensor() if isinstance(norm, DTensor) else norm)
            for gradient in gradients:  # nobody waits for the GPU to know whether
                (gradient.to_local() if isinstance(gradient, DTensor) else gradient).masked_fill_(broken, 0.0)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "grad_norm" in logs:
                self.in_a_row = 0 if math.isfinite(logs["grad_norm"]) else self.in_a_row + 1
            if self.in_a_row == _ENDS_AFTER:
                told = f"no gradients of the {_ENDS_AFTER} steps up to {state.global_step} are numbers"
                raise UserError(f"{told}: lower {stage}.learning_rate; the same command goes on from its checkpoint")

    return Skips()


def _deadline(end: float) -> Any:
    from transformers import TrainerCallback

    class Deadline(TrainerCallback):
        """Saves and stops when the time is up."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if time.monotonic() >= end:
                control.should_save = control.should_training_stop = True

    return Deadline()
