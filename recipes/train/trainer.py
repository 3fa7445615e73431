"""The part that supervised training and GRPO share: TRL's arguments, resuming, callbacks and error messages."""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.config import ModelSection, OptimiserSection, Recipe
from kernelquarry.recipes.generate.models import fast_dtype, load_model, load_tokenizer, resolve

from .curves import write_curves
from .run_directory import claim, is_finished, last_checkpoint, save_model

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training: recipe, data, folder and limits."""

    recipe: Recipe
    dataset: str  # folders or ids on the Hub, separated by commas
    out: Path
    start: str = ""  # initial model in place of the recipe's
    minutes: float = 0.0  # time limit after which a checkpoint is written; 0: none
    callbacks: tuple[Any, ...] = ()  # further callbacks of the trainer


@dataclass(frozen=True, slots=True)
class TrainResult:
    """State of a stage after a call of `train_stage`."""

    stage: Path
    done: bool
    steps: int
    seconds: float  # of this call

    @property
    def model(self) -> Path:
        return self.stage / "model"


def train_stage(
    name: str, job: TrainingJob, section: OptimiserSection, make_trainer: Callable[[Any, Any, Path], Any]
) -> TrainResult:
    """Train a stage ("sft" or "grpo") from its last checkpoint to its end or time limit. A finished stage is skipped.

    Args:
        make_trainer: called with model, tokenizer and the stage's folder; returns a trainer of TRL.

    Raises:
        UserError: the stage cannot be trained here with these settings.
    """
    import torch

    stage = claim(job.out, name, job.recipe, job.dataset)
    if is_finished(stage):
        _logger.info("%s is done: %s", name, stage / "model")
        return TrainResult(stage, True, 0, 0.0)
    if job.recipe.needs_gpu and not torch.cuda.is_available():
        raise UserError("this recipe needs a GPU, and torch finds none: smollm2-135m-cpu runs without")
    from .callbacks import Clock, Deadline, NoLastCheckpoint, SkipNonFiniteSteps

    model_section = job.recipe.model
    started, base = time.monotonic(), job.start or model_section.name
    path = resolve(base)
    tokenizer = load_tokenizer(path, model_section.chat)
    with advise_on_memory(name):
        # Trained weights are float32, since bfloat16 would lose small steps; the trainer computes in `model.dtype`.
        dtype = torch.float32 if section.lora is None else _dtype(model_section)
        model = load_model(path, dtype=dtype, attn_implementation=model_section.attention, use_cache=False)
        if section.compile:
            compile_layers(model)
        trainer = make_trainer(model, tokenizer, stage)
        for callback in (Clock(), NoLastCheckpoint(), SkipNonFiniteSteps(name), *job.callbacks):
            trainer.add_callback(callback)
        if job.minutes:
            trainer.add_callback(Deadline(started + 60 * job.minutes))
        trainer.train(resume_from_checkpoint=last_checkpoint(stage))
    state = trainer.state
    if trainer.accelerator.is_main_process:
        write_curves(stage, name, state.log_history)
    done = state.global_step >= state.max_steps
    if done:
        save_model(trainer, tokenizer, stage, base)
    return TrainResult(stage, done, state.global_step, time.monotonic() - started)


def trainer_arguments(section: OptimiserSection, model: ModelSection, stage: Path, sequences: int) -> dict[str, Any]:
    """Arguments that TRL's configs of both trainings share. `sequences`: number per step, over all devices.

    Raises:
        UserError: the devices cannot share the sequences evenly.
    """
    import torch
    from accelerate import PartialState

    cuda, devices = torch.cuda.is_available(), PartialState().num_processes
    accumulation, rest = divmod(sequences, section.per_device * devices)
    if rest or not accumulation:
        raise UserError(
            f"{sequences} sequences a step are no multiple of per_device ({section.per_device}) times {devices} "
            "processes: change one of them with --set"
        )
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
        "bf16": _dtype(model) == torch.bfloat16,
        "tf32": True if cuda and _dtype(model) == torch.float32 else None,  # torch 2.10 cannot compile with it
        "use_cpu": not cuda,
        "gradient_checkpointing": section.gradient_checkpointing,
        "use_liger_kernel": section.liger and cuda and importlib.util.find_spec("liger_kernel") is not None,
        "save_steps": section.save_steps,
        "save_total_limit": section.keep_checkpoints,
        "logging_steps": section.log_steps,
        # Neither a check for NaN nor the copy of a batch waits for the GPU, so the CPU prepares the next batch then.
        "logging_nan_inf_filter": False,
        "accelerator_config": {"non_blocking": cuda},
        "report_to": section.report_to,
        "seed": section.seed,
        "disable_tqdm": None,
    }


def _dtype(model: ModelSection) -> Any:
    """The dtype of the computation."""
    import torch

    return fast_dtype() if model.dtype == "auto" else getattr(torch, model.dtype)


def compile_layers(model: Any) -> None:
    """Compile each layer with torch.compile for rows of any length. All layers share one graph, compiled in seconds."""
    for layer in model.base_model.layers:
        layer.compile(dynamic=True)


def lora_config(section: OptimiserSection) -> Any:
    """PEFT's config; None if all weights are trained."""
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
def advise_on_memory(stage: str) -> Iterator[None]:
    """Turn an out-of-memory error of the GPU into a `UserError` that names the settings to lower."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        line = str(error).splitlines()[0]
        settings = f"lower {stage}.per_device or model.context, or set {stage}.gradient_checkpointing=true"
        raise UserError(f"the GPU's memory is full ({line}): {settings}; the same command goes on from here") from None
