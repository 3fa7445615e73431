"""A module under test: constructed from its source and given a state, alike for the reference and the candidate."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any

import torch
from numpy.random import seed as seed_numpy  # numpy imports this module late: in each guest
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource, StateEntry
from kernelquarry.pipeline.sandbox.protocol import octets

from ..lib.load_source import load_source

_SEED = 0  # both constructors draw their initial values from it
_SUMS = 13


def construct(source: ModuleSource, name: str) -> nn.Module:
    """The module, its source loaded from a file of this name.

    Raises:
        Exception: whatever the source or the constructor raises.
        TypeError: the entry point returns something other than a module.
    """
    return instance(vars(load_source(source.code, name)), source)


def instance(namespace: dict[str, Any], source: ModuleSource) -> nn.Module:
    """A new module of a source that is loaded; see `construct`."""
    random.seed(_SEED)
    seed_numpy(_SEED)
    torch.default_generator.manual_seed(_SEED)  # `torch.manual_seed` formats a traceback for each kind of device
    if torch.version.cuda or torch.version.hip:
        torch.cuda.manual_seed_all(_SEED)
    module = namespace[source.entry_point](*eval(source.init_args, {"torch": torch, "nn": nn} | namespace))
    if not isinstance(module, nn.Module):
        raise TypeError(f"{source.entry_point} is a {type(module).__name__}, not a module")
    nn.Module.eval(module)
    return module if source.dtype == "float32" else nn.Module.to(module, getattr(torch, source.dtype))


def state(module: nn.Module) -> dict[str, Tensor]:
    """Copies of the entries of the module's state that are tensors, by name."""
    entries = sorted(module.state_dict().items())
    return {name: value.detach().clone() for name, value in entries if isinstance(value, Tensor)}


def digests(module: nn.Module) -> dict[str, StateEntry]:
    """Shape, dtype and digest of each entry of the module's state."""
    return {name: _digest(value) for name, value in state(module).items()}


def _digest(value: Tensor) -> StateEntry:
    shape, dtype, sums = tuple(value.shape), str(value.dtype).removeprefix("torch."), tuple[float, ...]()
    norm = 0.0
    if value.is_floating_point():
        numbers = value.detach().cpu().double().flatten()
        if numbers.norm().isfinite():  # else there is nothing to compare but the bytes
            norm, sums = float(numbers.norm()), tuple(float(numbers[at::_SUMS].sum()) for at in range(_SUMS))
    return StateEntry(shape, dtype, sha256(value), norm, sums)


def sha256(value: Tensor) -> str:
    """Digest of a tensor's bytes, on whichever device they are."""
    return hashlib.sha256(octets(value.detach().cpu()).numpy().tobytes()).hexdigest()


def load_state(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Overwrite the entries of the state that `weights` has; the others keep their values.

    A module's own `load_state_dict` is not used: it may compute entries from others, and an executor, which has the
    values alone, could not.
    """
    nn.Module.load_state_dict(module, {**module.state_dict(), **weights}, strict=True)


def fits(module: nn.Module, weights: Mapping[str, Tensor]) -> bool:
    """True if the state has an entry of the name, shape and dtype of each of the weights."""
    entries = module.state_dict()
    return all(
        name in entries and entries[name].shape == value.shape and entries[name].dtype == value.dtype
        for name, value in weights.items()
    )
