"""Callbacks of the trainer: timing, checkpoints, steps with non-finite gradients, and a time limit."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from transformers import TrainerCallback

from kernelquarry.pipeline.schema.errors import UserError

_ENDS_AFTER = 5  # consecutive log entries with non-finite gradients


class Clock(TrainerCallback):
    """Adds `seconds` of training to each log entry, without the first step, in which layers compile."""

    started = 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.started = self.started or time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        state.log_history[-1]["seconds"] = time.monotonic() - self.started if self.started else 0.0


class NoLastCheckpoint(TrainerCallback):
    """Saves no checkpoint after the last step, since the model is written then: one of all weights has gigabytes."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_save &= state.global_step < state.max_steps


class SkipNonFiniteSteps(TrainerCallback):
    """Zeroes the gradients of a step in which one is NaN or infinite, since they would destroy all weights.

    Raises:
        UserError: the gradients of several log entries in a row are not finite.
    """

    def __init__(self, stage: str) -> None:
        self._stage, self._in_a_row = stage, 0

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        is_broken = ~torch.isfinite(norm.full_tensor() if isinstance(norm, DTensor) else norm)
        for gradient in gradients:  # a masked fill, since an `if` would wait for the GPU
            (gradient.to_local() if isinstance(gradient, DTensor) else gradient).masked_fill_(is_broken, 0.0)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if logs and "grad_norm" in logs:
            self._in_a_row = 0 if math.isfinite(logs["grad_norm"]) else self._in_a_row + 1
        if self._in_a_row == _ENDS_AFTER:
            raise UserError(
                f"no gradients of the {_ENDS_AFTER} steps up to {state.global_step} are numbers: "
                f"lower {self._stage}.learning_rate; the same command goes on from its checkpoint"
            )


class Deadline(TrainerCallback):
    """Saves a checkpoint and stops the training at a time of `time.monotonic()`."""

    def __init__(self, end: float) -> None:
        self._end = end

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if time.monotonic() >= self._end:
            control.should_save = control.should_training_stop = True
