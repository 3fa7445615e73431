"""Parts of requests and replies that several jobs share: a module, a call of it, and what was observed of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STATE_SETS = 2  # sets of weights, named "0" and "1"; a trial takes the one of its seed
_MARGIN = 1 / 1024  # of a range, at each end: logarithms and quotients at the bounds are not finite
CONSTRUCTOR = "constructor"  # the set of weights that a module has when it is constructed; no tensor gives it


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module under test: `entry_point(*init_args)` of a source, in eval mode."""

    code: str
    entry_point: str
    init_args: str  # Python source of a list
    dtype: str = "float32"  # the module is cast to it, if it is float16 or bfloat16


def in_range(fractions: Any, low: float, high: float) -> Any:
    """A tensor or an array of numbers in the open range from `low` to `high`, at these fractions of it in [0, 1)."""
    return low + (high - low) * (_MARGIN + (1 - 2 * _MARGIN) * fractions)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A tensor that the guest makes itself. Integers are in [low, high); so are floats, unless `low` is `high`."""

    shape: tuple[int, ...]
    dtype: str
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class TrialCall:
    """One call on tensors of the message.

    Inputs are named `input.<trial>.<i>`, and weights `state.<set>.<name>`. If a backward pass follows, the tensor
    `gradient.<trial>` holds the gradients of the outputs.
    """

    args: str  # JSON; {"tensor": i} stands for input i
    kwargs: str
    inputs: int
    state: str  # name of the set of weights
    strided: bool  # inputs are not contiguous
    refusable: bool  # the reference may raise
    optional: bool  # the candidate may raise
    limit_s: float = 0.0  # CPU time for the reference's first run, beyond which the trial is refused; 0: no limit


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call of `forward`.

    Its tensors are named `<prefix>.output.<i>` and `<prefix>.mutated.<i>`: changed inputs, then changed state.
    """

    tree: Any  # the result; {"tensor": i} stands for output i
    strides: tuple[tuple[int, ...], ...]  # of each output
    shares: tuple[str, ...]  # what each output shares memory with: "input 0", "state proj.weight", "output 1" or ""
    mutated: tuple[int, ...] = ()  # numbers of the inputs that the call changed
    changed: tuple[str, ...] = ()  # names of the state that the call changed
    trained: tuple[str, ...] = ()  # names of the state whose gradient, or need of one, the call changed


@dataclass(frozen=True, slots=True)
class StateEntry:
    """An entry of a module's state as its constructor left it."""

    shape: tuple[int, ...]
    dtype: str
    sha256: str  # of its bytes
    norm: float = 0.0
    sums: tuple[float, ...] = ()  # of every 13th value, from each of the first 13; () where a value is not finite


Launch = tuple[str, tuple[int, ...]]  # kernel and grid
