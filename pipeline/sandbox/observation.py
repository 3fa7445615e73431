"""Observations of calls of `forward`, read from a guest's reply after a check of its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelquarry.pipeline.schema.ids import canonical

from .jobs.calls import ObservedCall
from .protocol import Tensors

if TYPE_CHECKING:
    import torch


class MalformedReply(ValueError):
    """A guest's reply does not have the form that its job defines."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One call of `forward`, as a guest describes it (`guest/candidate/candidate_call.py`)."""

    tree: str  # canonical JSON of the result, in which {"tensor": i} stands for outputs[i]
    outputs: tuple[torch.Tensor, ...]  # contiguous copies
    strides: tuple[tuple[int, ...], ...]  # of the original outputs
    shares: tuple[str, ...]  # the tensor that each output shares memory with, "" for none
    mutated: Mapping[int, torch.Tensor]  # new values of the inputs that the call changed
    changed: Mapping[str, torch.Tensor]  # new values of the state that the call changed
    trained: tuple[str, ...]  # names of the state whose gradient or `requires_grad` the call changed

    @property
    def values(self) -> tuple[torch.Tensor, ...]:
        """All tensors that the call computed: its outputs, then the inputs that it changed."""
        return (*self.outputs, *(self.mutated[index] for index in sorted(self.mutated)))

    def name_of(self, value: int) -> str:
        """The name of one of the `values`: "output 0", or "input 2" for a changed input."""
        number = value - len(self.outputs)
        return f"output {value}" if number < 0 else f"input {sorted(self.mutated)[number]}"


def read_observation(call: ObservedCall | None, tensors: Tensors, prefix: str) -> Observation:
    """A call with its tensors, which are named `<prefix>.output.<i>` and `<prefix>.mutated.<i>`.

    Raises:
        MalformedReply: the call or a tensor is missing, or they do not fit together.
    """
    if call is None:
        raise MalformedReply(f"no call {prefix}")
    outputs = [require_tensor(tensors, f"{prefix}.output.{i}") for i in range(len(call.strides))]
    if len(call.shares) != len(outputs) or any(len(n) != t.ndim for n, t in zip(call.strides, outputs, strict=True)):
        raise MalformedReply("the description does not fit the outputs")
    inputs = len(call.mutated)
    return Observation(
        tree=canonical(call.tree),
        outputs=tuple(outputs),
        strides=call.strides,
        shares=call.shares,
        mutated={index: require_tensor(tensors, f"{prefix}.mutated.{i}") for i, index in enumerate(call.mutated)},
        changed={name: require_tensor(tensors, f"{prefix}.mutated.{i}") for i, name in enumerate(call.changed, inputs)},
        trained=call.trained,
    )


def expect(value: Any, kind: type) -> Any:
    """Returns `value`. Raises `MalformedReply` unless it has exactly this type."""
    if type(value) is not kind:
        raise MalformedReply(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


def require_tensor(tensors: Tensors, name: str) -> torch.Tensor:
    """The tensor of that name. Raises: MalformedReply: there is none."""
    if name not in tensors:
        raise MalformedReply(f"no tensor {name}")
    return tensors[name]
