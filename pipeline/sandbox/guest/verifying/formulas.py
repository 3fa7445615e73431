"""A reference computed by other formulas than PyTorch's own, as a candidate may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Formulas(TorchDispatchMode):
    """Operators of the table are computed by its formulas."""

    def __init__(self, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._table = table

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._table:
            with self:
                result = self._table[func](*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


def decomposed() -> Formulas:
    """PyTorch's own decompositions, where it has one. Equal on numbers, they differ in what they make of infinities: of
    `inf - inf`, of `0 * inf`."""
    return Formulas(decomposition_table)


def textbook() -> Formulas:
    """As books write them, with a difference of two numbers that are nearly equal where the result is small: PyTorch
    has functions of their own for these, and Triton's language has not, so this is how kernels are written."""
    return Formulas(_TEXTBOOK)


def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return torch.where(x * beta > threshold, x, (1 + (x * beta).exp()).log() / beta)


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    """And what PyTorch keeps for its gradient."""
    small = (-x.abs()).exp()
    return x.clamp(max=0) - (1 + small).log(), small


def _elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return torch.where(x > 0, x * scale, ((x * input_scale).exp() - 1) * (alpha * scale))


def _celu(x: Tensor, alpha: float = 1) -> Tensor:
    return _elu(x, alpha, input_scale=1 / alpha)


def _tanh(x: Tensor) -> Tensor:
    return 2 * (2 * x).sigmoid() - 1


def _of_floats(formula: Callable[..., Any]) -> Callable[..., Any]:
    def by_formula(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return formula(x, *args, **kwargs) if x.is_floating_point() else NotImplemented

    return by_formula


def _in_place(formula: Callable[..., Any]) -> Callable[..., Any]:
    def into(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return x.copy_(formula(x, *args, **kwargs)) if x.is_floating_point() else NotImplemented

    return into


_WRITTEN: dict[str, Callable[..., Tensor]] = {
    "expm1": lambda x: x.exp() - 1,
    "log1p": lambda x: (1 + x).log(),
    "sinh": lambda x: (x.exp() - (-x).exp()) / 2,
    "tanh": _tanh,
    "asinh": lambda x: x.sign() * (x.abs() + (x * x + 1).sqrt()).log(),
    "atanh": lambda x: ((1 + x) / (1 - x)).log() / 2,
    "elu": _elu,
    "celu": _celu,
}
_TEXTBOOK: dict[Any, Callable[..., Any]] = {
    **{getattr(aten, name).default: _of_floats(formula) for name, formula in _WRITTEN.items()},
    **{getattr(aten, f"{name}_").default: _in_place(formula) for name, formula in _WRITTEN.items()},
    aten.softplus.default: _of_floats(_softplus),
    aten.mish.default: _of_floats(lambda x: x * _tanh(_softplus(x))),
    aten.log_sigmoid_forward.default: _of_floats(_log_sigmoid),
}


def warm() -> None:
    """The first decomposition of a process imports much of PyTorch."""
    with torch.no_grad(), decomposed():
        image = torch.ones(1, 1, 2, 2)
        torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bilinear")
        torch.nn.functional.max_pool2d(image, 2)
