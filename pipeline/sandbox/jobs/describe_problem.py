"""The job `describe_problem`: calls, constructor's arguments and state of a problem in KernelBench's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .calls import InputSpec
from .kind import GuestKind
from .reference import REFERENCE


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Largest module and call that a problem may have; larger ones get smaller sizes."""

    parameters: int  # elements of parameters and buffers
    elements: int  # of the inputs, and written by all operators of one forward
    flops: int  # floating-point operations of one forward


@dataclass(frozen=True, slots=True)
class ProblemRequest:
    code: str  # source with `Model`, `get_inputs` and `get_init_inputs`
    limits: SizeLimits | None = None  # None: none, and forward is not called
    resize: bool = True  # make the sizes smaller if the given ones exceed the limits; False: fail
    more_calls: int = 0  # calls at other sizes to look for
    # Sizes of the constructor that the source has above one of these numbers stay above it.
    above: tuple[int, ...] = ()
    unit: int = 1  # sizes of further calls are multiples of it; 0: the last axes of the inputs keep their sizes


@dataclass(frozen=True, slots=True)
class ProblemCall:
    tensors: tuple[InputSpec, ...]
    names: tuple[str, ...]  # of these tensors: those of forward's arguments, or with their numbers
    args: Any  # JSON list of positional arguments; {"tensor": i} stands for tensor i


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
class ProblemShape:
    """A `CallShape`."""

    call: str
    shape: tuple[int, ...]
    dtype: str
    further: tuple[tuple[int, ...], ...] = ()  # at the varying sizes of each of the reply's calls; () if unknown


@dataclass(frozen=True, slots=True)
class ProblemReply:
    """Without a `failure`, all other fields are set. The reply's tensors are the inputs of the first call,
    unless they are ordinary."""

    failure: str = ""  # why the problem cannot be used
    code: str = ""  # the source, with smaller sizes if the given ones exceed the limits
    init_args: str = ""  # Python source of a list
    calls: tuple[ProblemCall, ...] = ()  # the first is that of `get_inputs`
    state: tuple[ProblemState, ...] = ()
    operators: tuple[str, ...] = ()  # of PyTorch that forward calls
    given: ProblemCall | None = None  # the call of `get_inputs` at the sizes of the source; None if unknown
    given_init_args: str = ""  # Python source of a list; "" if unknown
    given_shapes: tuple[ProblemShape, ...] = ()  # that its calls give; () if unknown
    structure: str = ""  # of an input's values, which other draws lack: "input 0 is 50 % zeros"
    strided: bool = False  # an input of the first call is not contiguous


DESCRIBE_PROBLEM = GuestKind(
    "describe_problem", ProblemRequest, ProblemReply, "describe_problem", shares=REFERENCE.name
)
