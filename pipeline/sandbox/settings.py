"""Settings of the sandbox, and the choice of GPUs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from kernelquarry.pipeline.schema.errors import UserError

from . import layers


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    workers: int = 2  # guests at once
    python: str = sys.executable  # of an environment with torch and triton
    scratch: str = ""  # folder for the guests' files; "": the system's temporary folder
    require: tuple[str, ...] = ()  # layers without which no guest runs
    kernels: str = ""  # folder of the cache of compiled kernels; "": none
    gpus: tuple[int, ...] = ()  # the driver's numbers of the GPUs that execute kernels; empty: kernels are interpreted

    def __post_init__(self) -> None:
        unknown = set(self.require) - set(layers.NAMES)
        if unknown:
            raise UserError(f"no such layers: {', '.join(sorted(unknown))}: choose from {', '.join(layers.NAMES)}")
        if self.workers < 1:
            raise ValueError(f"{self.workers} workers")


def choose_gpus(choice: str) -> tuple[int, ...]:
    """The driver's numbers of the GPUs in "all", "none" or a list such as "0,2". Creates no CUDA context.

    As in torch, the list counts the GPUs that `CUDA_VISIBLE_DEVICES` shows. Guests and executors start without that
    variable, so they need the driver's own numbers.

    Raises:
        UserError: the list is malformed, a GPU in it is missing, or the variable names GPUs by other than numbers.
    """
    if choice == "none":
        return ()
    import torch  # takes seconds, which settings without GPUs avoid

    number = torch.cuda.device_count()
    named = tuple(range(number)) if choice == "all" else name_gpus(choice)
    if missing := [ordinal for ordinal in named if ordinal >= number]:
        raise UserError(f"--gpus {choice}: there is no GPU {missing[0]}; torch {torch.__version__} finds {number} here")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not named:
        return named
    names = [name.strip() for name in visible.split(",")]
    if not all(name.isdecimal() for name in names[:number]):
        raise UserError(f"CUDA_VISIBLE_DEVICES={visible}: name GPUs by their numbers, such as 0,1")
    return tuple(int(names[ordinal]) for ordinal in named)


def name_gpus(choice: str) -> tuple[int, ...]:
    """Numbers of GPUs for workers on other machines, where "all" is the first GPU of each. Raises UserError."""
    if choice in ("all", "none"):
        return (0,) if choice == "all" else ()
    parts = choice.split(",")
    if not all(part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise UserError(f"--gpus {choice}: give all, none, or numbers such as 0,1")
    return tuple(map(int, parts))
