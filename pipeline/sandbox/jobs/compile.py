"""The job `compile`: a candidate's launches, compiled for each target; nothing runs, and no GPU is needed."""

from __future__ import annotations

from dataclasses import dataclass, field

from .calls import Launch, ModuleSource, TrialCall
from .codegen import KernelSource
from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """Compile trial 0 and `more_trials` for each target."""

    module: ModuleSource
    trials: tuple[TrialCall, ...]
    targets: tuple[str, ...]
    more_trials: tuple[int, ...] = ()
    deferred: bool = False  # leave the binaries to the job `codegen`


@dataclass(frozen=True, slots=True)
class CompiledCall:
    trial: int
    error: str = ""  # of the compiler, or of the candidate; then nothing else is set
    launches: tuple[Launch, ...] = ()
    failed: tuple[str, ...] = ()  # messages of launches that raised
    without_room: bool = False  # a tuner's first choice does not fit the target

    @property
    def succeeded(self) -> bool:
        """True if every launch compiled."""
        return not self.error and not self.failed


@dataclass(frozen=True, slots=True)
class CompileReply:
    targets: dict[str, tuple[CompiledCall, ...]]
    sources: dict[str, KernelSource] = field(default_factory=dict)  # of the deferred kernels


COMPILE = GuestKind("compile", CompileRequest, CompileReply, "compile")
