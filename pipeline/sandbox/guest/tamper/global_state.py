"""Detect changes that a candidate makes to global state: settings, warnings, and attributes of modules."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch
from torch import nn
from triton.runtime.jit import KernelInterface

_SHARED = ("torch", "triton", "kernelquarry", "builtins", "collections", "copy", "functools", "math", "operator")
_ATTENTION = ("flash", "mem_efficient", "math", "cudnn")
_CUDNN = ("enabled", "benchmark", "deterministic", "allow_tf32")
_CLASSES = (torch.Tensor, nn.Module, nn.Parameter, torch.autograd.Function, torch.Generator, KernelInterface)


def settings() -> dict[str, Any]:
    """PyTorch's global settings by name, and the warnings that raise."""
    return {
        "gradients": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "precision of float32 products": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "seed": torch.initial_seed(),
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "hooks of what is saved": torch._C._autograd._top_saved_tensors_default_hooks(True),
        "kernels of attention": tuple(getattr(torch.backends.cuda, f"{name}_sdp_enabled")() for name in _ATTENTION),
        "cuDNN": tuple(getattr(torch.backends.cudnn, name) for name in _CUDNN),
        "checks of sparse tensors": torch.sparse.check_sparse_tensor_invariants.is_enabled(),
        "warnings that raise": [each for each in warnings.filters if each[0] == "error"],
    }


def changed(before: dict[str, Any]) -> str:
    """The first setting that differs from `before`; "" if none does."""
    now = settings() if before else {}
    return next((f"{name}: {now[name]}, was {old}" for name, old in before.items() if now[name] != old), "")


class Shared:
    """Snapshot of the functions, methods and classes of shared modules."""

    def __init__(self) -> None:
        owners: list[Any] = [
            module for name, module in sys.modules.items() if module is not None and name.split(".")[0] in _SHARED
        ]
        owners += [each for kind in _CLASSES for each in _with_subclasses(kind)]
        self._before = [(owner, _functions(owner)) for owner in owners]

    def changed(self) -> str:
        """The first attribute that was replaced since; "" if none was."""
        for owner, before in self._before:
            now = vars(owner)
            for name, value in before.items():
                if now.get(name) is not value:
                    return f"{owner.__name__}.{name}"
        return ""


# Methods that a module may override: checks call them, or users print them.
_OWN = frozenset(
    "__init__ __call__ __repr__ _get_name _load_from_state_dict _save_to_state_dict apply buffers children cuda eval "
    "extra_repr forward load_state_dict modules named_buffers named_children named_modules named_parameters parameters "
    "requires_grad_ state_dict to train zero_grad".split()
)


def redefined(module: nn.Module) -> str:
    """The first method of `nn.Module` that the module, or one in it, overrides and no check calls; "" for none."""
    for each in nn.Module.modules(module):
        for name in sorted(vars(nn.Module).keys() - _OWN):
            kinds = (kind for kind in type(each).__mro__ if name in vars(kind))
            owner = next(kinds).__module__ if name not in vars(each) else ""
            if owner.split(".")[0] != "torch" and callable(getattr(each, name)):
                return f"{type(each).__name__}.{name}"
    return ""


def _with_subclasses(kind: type) -> list[type]:
    """The class and its subclasses in shared modules."""
    found, waiting = dict[type, None](), [kind]
    while waiting:
        each = waiting.pop()
        if each not in found and each.__module__.split(".")[0] in _SHARED:
            found[each] = None
            waiting += type.__subclasses__(each)
    return list(found)


def _functions(owner: Any) -> dict[str, Any]:
    special = isinstance(owner, type)  # a class has its methods and properties, whatever their type
    return {name: value for name, value in vars(owner).items() if special or callable(value)}
