"""The job `describe_problem`: the call, the constructor's arguments and the state of a benchmark's problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .calls import InputSpec
from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class ProblemRequest:
    code: str  # source with `Model`, `get_inputs` and `get_init_inputs`


@dataclass(frozen=True, slots=True)
class ProblemInput:
    tensor: InputSpec | None = None
    value: Any = None  # JSON, if the input is no tensor


@dataclass(frozen=True, slots=True)
class ProblemState:
    name: str
    kind: str  # parameter or buffer
    shape: tuple[int, ...]
    dtype: str
    mean: float
    std: float
    minimum: float


@dataclass(frozen=True, slots=True)
class ProblemReply:
    init_args: str  # Python source of a list
    inputs: tuple[ProblemInput, ...]  # positional arguments
    state: tuple[ProblemState, ...]


DESCRIBE_PROBLEM = GuestKind("describe_problem", ProblemRequest, ProblemReply, "describe_problem")
