"""Facts about a module that runs: its state, its outputs, and the operators of a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from ..lib.dispatch_mode import DispatchMode
from .guarded_call import TooBig

# Operators that become a kernel of their own, besides those with a formula for their floating-point operations.
_OWN_KERNELS = frozenset(
    """
    _adaptive_avg_pool2d _log_softmax _softmax all amax amin any argmax argmin avg_pool2d cat cumsum linalg_vector_norm
    logsumexp max max_pool2d_with_indices mean min native_group_norm native_layer_norm norm prod sort stack std sum topk
    upsample_bilinear2d var var_mean
    """.split()
)


class Census(DispatchMode):
    """Counts operators, the elements that they write, and floating-point operations within the context."""

    def __init__(self, most: float = math.inf) -> None:
        """Initialise.

        Args:
            most: number of contractions after which the next one raises `TooBig` instead of being computed.
        """
        super().__init__()
        self._most = most
        self.operators: set[str] = set()
        self.elements = 0
        self.flops = 0
        self.contractions = 0  # convolutions, matrix products, attentions
        self._launches: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        counter = flop_registry.get(func.overloadpacket)
        if counter:
            self.contractions += 1
            if self.is_cut:
                raise TooBig(f"more than {self._most} contractions")
        result = func(*args, **kwargs)
        self.operators.add(func._schema.name.replace("::", "."))
        if not func.is_view:
            self.elements += sum(t.numel() for t in _tensors(result))
        if counter or func.overloadpacket.__name__ in _OWN_KERNELS:
            shapes, named = _described(args), dict(zip(kwargs, _described(kwargs.values()), strict=True))
            self._launches.add(repr((func, shapes, list(named.values()))))
            if formula := getattr(counter, "__wrapped__", None):  # without a slow traversal of the arguments
                self.flops += formula(*shapes, **named, out_shape=_described([result])[0])
            elif counter:
                self.flops += counter(*args, **kwargs, out_val=result)
        return result

    @property
    def is_cut(self) -> bool:
        """True if the call was stopped, so that there are at least as many contractions as counted."""
        return self.contractions > self._most

    @property
    def kernels(self) -> int:
        """Estimate of the number of kernels: distinct (operator, sizes, settings), without elementwise operators.

        Elementwise operators are fused into other kernels.
        """
        return len(self._launches)


def _described(args: Iterable[Any]) -> list[Any]:
    """The arguments with shapes in place of tensors."""
    return [
        tuple(a.shape) if isinstance(a, Tensor) else _described(a) if isinstance(a, list | tuple) else a for a in args
    ]


def _tensors(result: Any) -> Sequence[Tensor]:
    if isinstance(result, Tensor):
        return (result,)
    return [t for t in result if isinstance(t, Tensor)] if isinstance(result, tuple | list) else ()


def state_specs(module: nn.Module) -> list[dict[str, Any]]:
    """One record for each entry of the `state_dict`, in its order."""
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    return [
        {
            "name": name,
            "kind": "parameter" if name in parameters else "buffer",
            "shape": list(value.shape),
            "dtype": str(value.dtype).removeprefix("torch."),
            **_statistics(value),
        }
        for name, value in module.state_dict().items()
        if isinstance(value, Tensor)
    ]


def _statistics(value: Tensor) -> dict[str, float]:
    """Statistics of the finite elements; a mask may hold -inf."""
    flat = value.detach().flatten()
    flat = (flat.real if flat.is_complex() else flat).to(torch.float64)
    flat = flat[flat.isfinite()]
    if flat.numel() == 0:
        return {"mean": 0.0, "std": 0.0, "minimum": 0.0}
    return {"mean": flat.mean().item(), "std": flat.std(correction=0).item(), "minimum": flat.min().item()}


def outputs(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """The tree of a result, with the shape and dtype of each tensor at its leaf."""
    if isinstance(tree, list):
        return [outputs(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {"tensor"}:
        tensor = tensors[tree["tensor"]]
        return {**tree, "shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
    return {key: value if key == "value" else outputs(value, tensors) for key, value in tree.items()}
