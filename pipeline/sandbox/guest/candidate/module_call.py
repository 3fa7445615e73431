"""A module under test: constructed from its source, given a state, called and looked at.

The reference's and the candidate's guests both use this, so that what the host compares was made alike.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from kernelquarry.pipeline.sandbox.protocol import octets

from ..lib.load_source import load_source
from ..lib.pytree import fill, flatten
from .fake_cuda import is_marked, is_on_host
from .input_layouts import offset, strided
from .launch_log import entries, session

_SEED = 0  # both constructors draw their initial values from it
# What a call is recorded for, and whether its inputs take gradients.
AROUND: Mapping[str, tuple[Callable[[], AbstractContextManager[Any]], bool]] = {
    "": (torch.no_grad, False),
    "gradients": (torch.enable_grad, True),
    "inference": (torch.inference_mode, False),
}


_SUMS = 13


class Derived(Tensor):
    """As what shards, traces or names tensors derives of them."""


def construct(code: str, name: str, entry_point: str, init_args: str, dtype: str = "float32") -> nn.Module:
    """`entry_point(*init_args)` in eval mode; `init_args` is the Python source of a list. Cast to `dtype`, a half one.

    Raises:
        Exception: whatever the source or the constructor raises.
        TypeError: the entry point makes something else than a module.
    """
    return instance(vars(load_source(code, name)), entry_point, init_args, dtype)


def instance(namespace: dict[str, Any], entry_point: str, init_args: str, dtype: str = "float32") -> nn.Module:
    """As `construct`, of a file that is loaded: another module beside those that it made before."""
    random.seed(_SEED)
    np.random.seed(_SEED)
    torch.manual_seed(_SEED)
    module = namespace[entry_point](*eval(init_args, {"torch": torch, "nn": nn} | namespace))
    if not isinstance(module, nn.Module):
        raise TypeError(f"{entry_point} is a {type(module).__name__}, not a module")
    nn.Module.eval(module)
    return module if dtype == "float32" else nn.Module.to(module, getattr(torch, dtype))


def constructed(request: Mapping[str, Any], code: str, name: str) -> nn.Module:
    """As `construct`, of `code`, by the entry point, arguments and dtype that the guest's request names."""
    return construct(code, name, request["entry_point"], request["init_args"], request["dtype"])


def state(module: nn.Module) -> dict[str, Tensor]:
    """Copies of the entries of the module's state that are tensors, by name."""
    entries = sorted(module.state_dict().items())
    return {name: value.detach().clone() for name, value in entries if isinstance(value, Tensor)}


def digests(module: nn.Module) -> dict[str, dict[str, Any]]:
    """Shape, dtype and hash of the values of each entry of the module's state; of finite numbers also what `sums` they
    have, every so many of them, and their `norm`."""
    return {name: _digest(value) for name, value in state(module).items()}


def _digest(value: Tensor) -> dict[str, Any]:
    digest = {"shape": list(value.shape), "dtype": _name(value.dtype), "sha256": sha256(value)}
    if not value.is_floating_point():
        return digest
    numbers = value.detach().cpu().double().flatten()
    if not numbers.norm().isfinite():  # of which there is nothing to compare but the bits
        return digest
    return digest | {"norm": float(numbers.norm()), "sums": [float(numbers[at::_SUMS].sum()) for at in range(_SUMS)]}


def sha256(value: Tensor) -> str:
    """Of the values, wherever they are: a constructor may have put itself on a GPU."""
    return hashlib.sha256(octets(value.detach().cpu()).numpy().tobytes()).hexdigest()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def load_state(module: nn.Module, drawn: Mapping[str, Tensor]) -> None:
    """Overwrite the entries in `drawn`, by name; those not in it keep their present values.

    A module's own way to load may compute entries from others, which an executor, that has the values alone, could not
    follow.
    """
    nn.Module.load_state_dict(module, {**module.state_dict(), **drawn}, strict=True)


def fits(module: nn.Module, drawn: Mapping[str, Tensor]) -> bool:
    """Every tensor in `drawn` has an entry of its name, shape and dtype in the module's state."""
    state = module.state_dict()
    return all(
        name in state and state[name].shape == value.shape and state[name].dtype == value.dtype
        for name, value in drawn.items()
    )


def selected(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of a request whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def call(
    module: nn.Module,
    trial: Mapping[str, Any],
    inputs: Sequence[Tensor],
    mode: AbstractContextManager[Any] | None = None,
    gradient: Tensor | None = None,
    used: list[Tensor] | None = None,
    chained: bool = False,
    way: Callable[..., Any] | None = None,
) -> tuple[dict[str, Any], list[Tensor], list[Tensor], list[Tensor]]:
    """Call `forward` on private copies of `inputs`, laid out as `trial` says, inside `mode`; describe what came of it.

    Returns the description, copies of the outputs, of the inputs and then of the state that the call changed, and the
    outputs themselves.
    The description has the `tree` of the result; for each output its `strides` and what it `shares`
    memory with (`input 0`, `state proj.weight`, `output 1`); the numbers of the inputs that were
    `mutated`; the names of the state that `changed`.

    With `gradient`, the numbers of the gradients of its outputs, the call is followed by its backward, and the result
    is the pair of the outputs and of the gradients: a list of those of the inputs, and a dict of those of the
    parameters; None stands for what gets none. `used` are the tensors that an earlier call was given, empty if there
    was none: this call is given the same, with the values of `inputs`. What is `chained` gives its own outputs to the
    next call instead, as a stack of layers does, where they are like an input. `way` is what is called in the module's
    place; a trial may say that inputs that are `alike` are one tensor, that they are of a `derived` class, or
    `parameters` with gradients, and what is recorded `around` the call, one of `AROUND`: nothing, if it does not say.

    Raises:
        TypeError: the result holds something else than plain tensors, numbers, strings and containers, or a tensor that
            is not on the GPU, where one is pretended; or an input or an output has attributes that PyTorch did not set.
    """
    around, taking = AROUND[trial.get("around", "")] if gradient is None else (torch.enable_grad, False)
    with around():
        given = [_laid_out(tensor, trial, taking) for tensor in inputs]
    if trial.get("alike"):
        given = [next(each for each in given if _same(each, value)) for value in given]
    if used:
        given = [_overwritten(old, new) for old, new in zip(used, given, strict=True)]
    elif used is not None:
        used += given
    args, kwargs = fill(json.loads(trial["args"]), given), fill(json.loads(trial["kwargs"]), given)
    given = given if gradient is None else [value.requires_grad_(value.is_floating_point()) for value in given]
    session.begin(module, given)
    outputs: list[Tensor] = []
    ends: dict[str, Tensor] = {}
    with around(), mode or nullcontext():  # around all that a module or its result could have made its own
        state = entries(module)
        before = {name: value.detach().clone() for name, value in state.items()}
        trained = {name: _taking(value) for name, value in state.items()}
        tree = flatten((way or module)(*args, **kwargs), outputs)
        results = len(outputs)
        if used is not None and chained:
            _chain(used, outputs, state.values())
        if gradient is not None:
            ends = {f"gradient of output {i}": g for i, g in enumerate(_of_outputs(outputs, gradient)) if g is not None}
            tree = {"tuple": [tree, flatten(_gradients(module, given, outputs, list(ends.values())), outputs)]}
    if trial.get("derived"):
        outputs = [output.as_subclass(Tensor) if type(output) is Derived else output for output in outputs]
    if not all(type(output) in (Tensor, nn.Parameter) for output in outputs):
        raise TypeError("an output is a subclass of torch.Tensor")
    if any(map(is_marked, (*given, *outputs))):
        raise TypeError("an input or an output was given attributes")
    if any(is_on_host(output) and output.ndim for output in outputs):  # a lone number may be anywhere
        raise TypeError("an output is on the CPU")
    outputs = [output.detach() for output in outputs]
    values = [_bytes(output).clone().view(output.dtype) for output in outputs]
    after = [value.detach().clone() for value in given]
    # From here on code of the module's could run where nothing watches: to tell what is asked of its state, for one.
    owners = {_storage(value): f"state {name}" for name, value in state.items()}
    owners |= {_storage(value): f"input {index}" for index, value in enumerate(given)}
    owners |= {_storage(value): name for name, value in ends.items()}
    shares = [owners.get(_storage(output), "") if output.numel() else "" for output in outputs]
    for index, output in enumerate(outputs):
        above = (f"output {other}" for other in range(index) if _overlap(output, outputs[other]))
        shares[index] = shares[index] or next(above, "")
    mutated = [index for index, (new, old) in enumerate(zip(after, inputs, strict=True)) if not _same(new, old)]
    changed = _changed(state, before)
    description = {
        "tree": tree,
        "strides": [list((output if i < results else _plain(output)).stride()) for i, output in enumerate(outputs)],
        "shares": shares,
        "mutated": mutated,
        "changed": changed,
        "trained": _trained_otherwise(state, trained),
    }
    left = [after[index] for index in mutated] + [state[name].detach().clone() for name in changed]
    return description, values, left, outputs


def _chain(used: list[Tensor], outputs: Sequence[Tensor], state: Iterable[Tensor]) -> None:
    """Put each output in place of a tensor that the call was given and that it is like, if it has memory of its own."""
    taken = {_storage(value) for value in (*used, *state)}
    for output in outputs:
        likes = (place for place, old in enumerate(used) if (old.shape, old.dtype) == (output.shape, output.dtype))
        place = next(likes, None)
        if place is not None and output.is_contiguous() and _storage(output) not in taken:
            used[place] = output
            taken.add(_storage(output))


def _overwritten(old: Tensor, new: Tensor) -> Tensor:
    with torch.inference_mode(old.is_inference()):  # what was made there may be set there alone
        return old.copy_(new)


def _laid_out(tensor: Tensor, trial: Mapping[str, Any], taking: bool) -> Tensor:
    if trial["strided"]:
        return strided(tensor)
    made = tensor.clone() if trial.get("offset") is None else offset(tensor, trial["offset"])
    if taking and made.is_floating_point():
        made = made.requires_grad_().clone()
    if trial.get("parameters") and made.is_floating_point():
        made = nn.Parameter(made)
        made.grad = torch.empty_like(made)
    return made.as_subclass(Derived) if trial.get("derived") else made


def _of_outputs(outputs: Sequence[Tensor], numbers: Tensor) -> list[Tensor | None]:
    """A gradient for each output that takes one; not seen by the modes that watch the module."""
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
    """Of the inputs, and of the parameters by name."""
    parameters = dict(module.named_parameters())
    leaves = [*inputs, *parameters.values()]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    starts = [output for output in outputs if output.requires_grad]
    found = iter(torch.autograd.grad(starts, wanted, ends, allow_unused=True) if starts else [None] * len(wanted))
    each = [next(found) if leaf.requires_grad else None for leaf in leaves]
    return each[: len(inputs)], dict(zip(parameters, each[len(inputs) :], strict=True))


def _plain(gradient: Tensor) -> Tensor:
    """Contiguous, without values: the layout of a gradient is nobody's promise, as autograd lays out what it keeps."""
    return torch.empty(gradient.shape, device="meta")


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _overlap(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors' memory overlaps, from the first byte of each to its last."""
    return left.numel() > 0 < right.numel() and left.data_ptr() < _end(right) and right.data_ptr() < _end(left)


def _end(tensor: Tensor) -> int:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _changed(state: Mapping[str, Tensor], before: Mapping[str, Tensor]) -> list[str]:
    return sorted(name for name, value in state.items() if not _same(value, before[name]))


def _trained_otherwise(state: Mapping[str, Tensor], before: Mapping[str, tuple[bool, Tensor | None]]) -> list[str]:
    """What takes a gradient and did not, or the other way round, or has another one."""
    pairs = ((name, *_taking(value), *before[name]) for name, value in state.items())
    return sorted(name for name, takes, has, took, had in pairs if takes != took or has is not had)


def _taking(value: Tensor) -> tuple[bool, Tensor | None]:
    """Whether it takes a gradient, and which it has."""
    return value.requires_grad, value.grad if value.is_leaf else None


def _same(left: Tensor, right: Tensor) -> bool:
    """Equal values, NaN equal to NaN."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool(((left == right) | ((left != left) & (right != right))).all())


def _bytes(value: Tensor) -> Tensor:
    """Of a mask its bytes, to be copied as they are: PyTorch's own copies make true of all that is not 0."""
    return value.view(torch.uint8) if value.dtype == torch.bool else value


def pack(prefix: str, outputs: Sequence[Tensor], mutated: Sequence[Tensor]) -> dict[str, Tensor]:
    """Named for the reply, `<prefix>.output.<i>` and `<prefix>.mutated.<i>`; copies on the CPU."""
    named = {f"{prefix}.output.{i}": tensor for i, tensor in enumerate(outputs)}
    named |= {f"{prefix}.mutated.{i}": tensor for i, tensor in enumerate(mutated)}
    return {name: _bytes(tensor).to("cpu", copy=True).view(tensor.dtype) for name, tensor in named.items()}
