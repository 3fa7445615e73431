"""The job `trace`: a candidate's forward as programs for an executor; no GPU is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .calls import InputSpec, ModuleSource, StateEntry
from .codegen import KernelSource
from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A call on inputs that hold zeros."""

    args: str
    kwargs: str
    inputs: tuple[InputSpec, ...]
    strided: bool = False
    optional: bool = False  # the candidate may raise
    trial: int = 0  # number of the configuration that autotuned kernels take


@dataclass(frozen=True, slots=True)
class TraceRequest:
    module: ModuleSource
    target: str
    calls: tuple[TracedCall, ...]
    deferred: bool = False  # leave the binaries to the job `codegen`


@dataclass(frozen=True, slots=True)
class TraceReply:
    """A program for each call, or why there is none: `load_error`, `untraceable` or `refused`.

    Binaries come as `binary.<sha256>`, constants as `constant.<call>.<storage>`. A deferred kernel has no binary; its
    `sha256` is a key of `sources`. The host reads programs and kernels with `executor/program.py`.
    """

    load_error: str = ""
    state: dict[str, StateEntry] = field(default_factory=dict)
    snapshot: Any = None  # the module's state as data, see `guest/candidate/snapshot.py`
    programs: tuple[Any, ...] = ()
    kernels: tuple[Any, ...] = ()
    sources: dict[str, KernelSource] = field(default_factory=dict)  # of the deferred kernels
    operators: tuple[str, ...] = ()  # that ran outside of the kernels
    untraceable: str = ""
    refused: tuple[int, ...] = ()  # optional calls on which the candidate raised


TRACE = GuestKind("trace", TraceRequest, TraceReply, "trace")
