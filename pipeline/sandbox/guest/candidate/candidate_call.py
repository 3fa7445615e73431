"""One call of a module under test: its weights, the layout of its inputs, and its observed results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from kernelquarry.pipeline.sandbox.jobs.calls import CONSTRUCTOR, STATE_SETS, ObservedCall, TrialCall

from ..lib.pytree import fill, flatten
from .fake_cuda import is_on_host
from .input_layouts import offset, strided
from .launch_log import entries, session
from .module_setup import load_state


@dataclass(frozen=True, slots=True)
class CallResult:
    """An observed call with its tensors."""

    observed: ObservedCall
    values: list[Tensor]  # copies of the outputs
    changed: list[Tensor]  # copies of the inputs, then of the state, that the call changed
    outputs: list[Tensor]  # the outputs themselves, detached

    def tensors(self, prefix: str) -> dict[str, Tensor]:
        """Copies on the CPU by their names in a reply; see `ObservedCall`."""
        return name_tensors(prefix, self.values, self.changed)


def name_tensors(prefix: str, outputs: Sequence[Tensor], changed: Sequence[Tensor] = ()) -> dict[str, Tensor]:
    """Copies on the CPU by their names in a reply; see `ObservedCall`."""
    named = {f"{prefix}.output.{i}": tensor for i, tensor in enumerate(outputs)}
    named |= {f"{prefix}.mutated.{i}": tensor for i, tensor in enumerate(changed)}
    return {name: _bytes(tensor).to("cpu", copy=True).view(tensor.dtype) for name, tensor in named.items()}


def weight_sets(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The sets of weights of a request, by name."""
    sets: dict[str, dict[str, Tensor]] = {key: {} for key in (*map(str, range(STATE_SETS)), CONSTRUCTOR)}
    for name, value in tensors.items():
        if name.startswith("state."):
            _, key, entry = name.split(".", 2)
            sets.setdefault(key, {})[entry] = value
    return sets


def other_weights(tensors: Mapping[str, Tensor], call: CandidateCall) -> dict[str, Tensor]:
    """The set of weights of the trials that the call does not have; {} if no weights are drawn."""
    sets = weight_sets(tensors)
    return next(sets[key] for key in map(str, range(STATE_SETS)) if key != call.trial.state)


def arguments(call: Any, inputs: Sequence[Tensor]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a call that has `args` and `kwargs` as JSON."""
    return fill(json.loads(call.args), inputs), fill(json.loads(call.kwargs), inputs)


@dataclass(frozen=True, slots=True)
class CandidateCall:
    """A call of a trial. Options that are not in `trial` are for perturbations; the defaults are a trial's."""

    trial: TrialCall
    inputs: Sequence[Tensor]
    weights: Mapping[str, Tensor]
    gradient: Tensor | None = None  # numbers of the gradients of the outputs; the call is followed by its backward
    offset: int | None = None  # seed of the place of each input in a larger buffer
    alike: bool = False  # inputs of equal values are one tensor

    @classmethod
    def of_trial(
        cls,
        trials: Sequence[TrialCall],
        number: int,
        tensors: Mapping[str, Tensor],
        device: torch.device | None = None,
    ) -> CandidateCall:
        """The call of a trial on the tensors of a request."""
        trial = trials[number]
        inputs = [tensors[f"input.{number}.{i}"] for i in range(trial.inputs)]
        if device is not None:
            inputs = [value.to(device) for value in inputs]
        return cls(trial, inputs, weight_sets(tensors)[trial.state], tensors.get(f"gradient.{number}"))

    def load(self, module: nn.Module) -> None:
        """Give the module the call's weights."""
        load_state(module, self.weights)

    def run(self, module: nn.Module, mode: AbstractContextManager[Any] | None = None) -> CallResult:
        """Call the module inside `mode`, on private copies of the inputs, and observe the call.

        With `gradient` the result is a pair: the outputs; and the gradients, a list for the inputs and a dict for the
        parameters. None stands for a tensor that gets no gradient.

        Raises:
            TypeError: the result holds other objects than plain tensors, numbers, strings and containers, or a tensor
                that is not on the simulated GPU.
        """
        given = self._lay_out()
        args, kwargs = arguments(self.trial, given)
        if self.gradient is not None:
            given = [value.requires_grad_(value.is_floating_point()) for value in given]
        session.begin(module, given)
        outputs: list[Tensor] = []
        ends: dict[str, Tensor] = {}
        with (
            torch.set_grad_enabled(self.gradient is not None),
            mode or nullcontext(),
        ):  # around all that a module or its result could have made its own
            state = entries(module)
            before = {name: value.detach().clone() for name, value in state.items()}
            trained = {name: _training(value) for name, value in state.items()}
            tree = flatten(module(*args, **kwargs), outputs)
            results = len(outputs)
            if self.gradient is not None:
                starts = enumerate(_output_gradients(outputs, self.gradient))
                ends = {f"gradient of output {i}": value for i, value in starts if value is not None}
                tree = {"tuple": [tree, flatten(_gradients(module, given, outputs, list(ends.values())), outputs)]}
        _check_plain(outputs)
        outputs = [output.detach() for output in outputs]
        values = [_bytes(output).clone().view(output.dtype) for output in outputs]
        after = [value.detach().clone() for value in given]
        # From here on the module's code could run unwatched, if its state were asked for by its own methods.
        owners = {_storage(value): f"state {name}" for name, value in state.items()}
        owners |= {_storage(value): f"input {index}" for index, value in enumerate(given)}
        owners |= {_storage(value): name for name, value in ends.items()}
        mutated = [index for index, (new, old) in enumerate(zip(after, self.inputs, strict=True)) if not same(new, old)]
        changed = sorted(name for name, value in state.items() if not same(value, before[name]))
        observed = ObservedCall(
            tree=tree,
            strides=tuple(value.stride() for value in (*outputs[:results], *map(_contiguous, outputs[results:]))),
            shares=_shared(outputs, owners),
            mutated=tuple(mutated),
            changed=tuple(changed),
            trained=tuple(sorted(name for name, value in state.items() if _retrained(value, *trained[name]))),
        )
        copies = [after[index] for index in mutated] + [state[name].detach().clone() for name in changed]
        return CallResult(observed, values, copies, outputs)

    def _lay_out(self) -> list[Tensor]:
        with torch.no_grad():
            given = [self._copy(tensor) for tensor in self.inputs]
        if self.alike:
            given = [next(each for each in given if same(each, value)) for value in given]
        return given

    def _copy(self, tensor: Tensor) -> Tensor:
        if self.trial.strided:
            return strided(tensor)
        return tensor.clone() if self.offset is None else offset(tensor, self.offset)


def _check_plain(outputs: Sequence[Tensor]) -> None:
    if not all(type(output) in (Tensor, nn.Parameter) for output in outputs):
        raise TypeError("an output is a subclass of torch.Tensor")
    if any(is_on_host(output) and output.ndim for output in outputs):  # a lone number may be anywhere
        raise TypeError("an output is on the CPU")


def _output_gradients(outputs: Sequence[Tensor], numbers: Tensor) -> list[Tensor | None]:
    """A gradient for each output that takes one. The modes that watch the module do not see it being made."""
    found: list[Tensor | None] = []
    start = 0
    with _disable_current_modes():
        for output in outputs:
            places = torch.arange(start, start + output.numel()) % numbers.numel()
            values = numbers[places].reshape(output.shape).to(output.device, output.dtype)
            found.append(values if output.requires_grad else None)
            start += output.numel()
    return found


def _gradients(
    module: nn.Module, inputs: Sequence[Tensor], outputs: Sequence[Tensor], ends: Sequence[Tensor]
) -> tuple[list[Tensor | None], dict[str, Tensor | None]]:
    """Gradients of the inputs, and of the parameters by name."""
    parameters = dict(module.named_parameters())
    leaves = [*inputs, *parameters.values()]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    starts = [output for output in outputs if output.requires_grad]
    found = iter(torch.autograd.grad(starts, wanted, ends, allow_unused=True) if starts else [None] * len(wanted))
    each = [next(found) if leaf.requires_grad else None for leaf in leaves]
    return each[: len(inputs)], dict(zip(parameters, each[len(inputs) :], strict=True))


def _contiguous(tensor: Tensor) -> Tensor:
    """A tensor of the same shape without memory. Autograd decides the layout of gradients, so none is observed."""
    return torch.empty(tensor.shape, device="meta")


def _shared(outputs: Sequence[Tensor], owners: Mapping[int, str]) -> tuple[str, ...]:
    """The state, input, gradient or earlier output that each output shares memory with; "" for none."""
    shares: list[str] = []
    for index, output in enumerate(outputs):
        owner = owners.get(_storage(output), "") if output.numel() else ""
        earlier = (f"output {other}" for other in range(index) if _overlap(output, outputs[other]))
        shares.append(owner or next(earlier, ""))
    return tuple(shares)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _overlap(left: Tensor, right: Tensor) -> bool:
    """True if the memory of two tensors, from the first byte of each to its last, overlaps."""
    return left.numel() > 0 < right.numel() and left.data_ptr() < _end(right) and right.data_ptr() < _end(left)


def _end(tensor: Tensor) -> int:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _training(value: Tensor) -> tuple[bool, Tensor | None]:
    """True if the tensor takes a gradient, and its gradient."""
    return value.requires_grad, value.grad if value.is_leaf else None


def _retrained(value: Tensor, took: bool, had: Tensor | None) -> bool:
    takes, has = _training(value)
    return takes != took or has is not had


def same(left: Tensor, right: Tensor) -> bool:
    """True if shape, dtype and values are equal, NaN equal to NaN."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if torch.equal(left, right):
        return True
    return bool(((left == right) | ((left != left) & (right != right))).all())


def _bytes(value: Tensor) -> Tensor:
    """A mask as bytes, to be copied as they are: PyTorch's own copies turn all that is not 0 into 1."""
    return value.view(torch.uint8) if value.dtype == torch.bool else value
