"""Other formulas than PyTorch's own for its operators, as a candidate may use them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from ..lib.dispatch_mode import DispatchMode

aten = torch.ops.aten


class Formulas(DispatchMode):
    """Computes the operators of a table by its formulas; if `recursive`, also the operators in the formulas."""

    def __init__(self, table: Mapping[Any, Callable[..., Any]], recursive: bool = False) -> None:
        super().__init__()
        self._table, self._recursive = table, recursive

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._table:
            with self if self._recursive else nullcontext():
                result = self._table[func](*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


def decomposed() -> Formulas:
    """PyTorch's own decompositions, which differ for infinities: in `inf - inf`, or `0 * inf`."""
    return Formulas(decomposition_table, recursive=True)


def textbook() -> Formulas:
    """Textbook formulas, which subtract nearly equal numbers where the result is small.

    PyTorch has precise functions in their place. Triton's language has none, so kernels use the formulas.
    """
    return Formulas(_TEXTBOOK)


class AlternateTieBreaks(Formulas):
    """Swaps the indices of equal values in the results of sorts, maxima and minima, and rounds the other way.

    `indirect` is set when the operand of the former is none of `inputs`: values that are computed may be equal on
    another machine. Of equal inputs, PyTorch's maximum is the first. Computed values that are rounded to an integer
    are moved across the nearest boundary, if they are as near to it as an error may bring them.
    """

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__(_ALTERNATE_TIES)
        self._inputs, self.indirect = [value.flatten() for value in inputs], False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _ALTERNATE_TIES:
            computed = self._is_computed(args[0])
            if func in _FIRST and not computed:
                return func(*args, **(kwargs or {}))
            self.indirect |= computed
        elif func in _BOUNDARIES and _rounds(func, args[0], kwargs or {}) and self._is_computed(args[0]):
            args = (_across(args[0], _BOUNDARIES[func]), *args[1:])
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _is_computed(self, operand: Tensor) -> bool:
        alike = (value for value in self._inputs if value.dtype == operand.dtype)
        return not any(torch.equal(operand.flatten(), value) for value in alike)


def _off(value: Tensor) -> Tensor:
    """Move values by a unit in the last place, up or down, as libraries round functions; half values stay."""
    if value.dtype in (torch.float16, torch.bfloat16):
        return value
    up = torch.randint(0, 2, value.shape, generator=torch.Generator().manual_seed(0), dtype=torch.bool)
    limit = torch.tensor(torch.inf, dtype=value.dtype)
    return torch.nextafter(value, torch.where(up, limit, -limit))


def _exp(x: Tensor) -> Tensor:
    return _off(x.exp())


def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return torch.where(x * beta > threshold, x, _off(1 + (x * beta).exp()).log() / beta)


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    """The result, and the buffer that PyTorch keeps for the gradient."""
    small = (-x.abs()).exp()
    return x.clamp(max=0) - _off(1 + small).log(), small


def _elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return torch.where(x > 0, x * scale, (_exp(x * input_scale) - 1) * (alpha * scale))


def _tanh(x: Tensor) -> Tensor:
    return 2 * _off((2 * x).sigmoid()) - 1


def _log2_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """In base two, less the logarithm of the sum of the row's exponentials."""
    x = (x.float() if half_to_float else x) * math.log2(math.e)
    largest = x.amax(dim, keepdim=True)
    return x - (largest + (x - largest).exp2().sum(dim, keepdim=True).log2())


def _log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return _log2_softmax(x, dim, half_to_float) * math.log(2)


def _softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return _log2_softmax(x, dim, half_to_float).exp2()


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """The result in base two, divided by the sum of the row's exponentials at last, and the logarithm of that sum."""
    is_plain = not dropout_p and query.dtype == torch.float32 and query.shape[:-2] == key.shape[:-2]
    if not (is_plain and query.numel() and query.shape[-1] == value.shape[-1]):
        return NotImplemented
    to_base = math.log2(math.e)
    scores = (query @ key.mT) * ((query.shape[-1] ** -0.5 if scale is None else scale) * to_base)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    if attn_mask is not None:
        is_kept = attn_mask.dtype == torch.bool
        scores = torch.where(attn_mask, scores, -torch.inf) if is_kept else scores + attn_mask * to_base
    largest = scores.amax(-1, keepdim=True)
    if not torch.isfinite(largest).all():
        return NotImplemented
    weights = (scores - largest).exp2()
    total = weights.sum(-1, keepdim=True)
    result = (weights @ value) / total
    return torch.empty_like(query).copy_(result), (largest + total.log2()).squeeze(-1) / to_base


def _of_floats(formula: Callable[..., Any]) -> Callable[..., Any]:
    def by_formula(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return formula(x, *args, **kwargs) if x.is_floating_point() else NotImplemented

    return by_formula


def _of_rows(formula: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *args: formula(x, *args) if x.numel() else NotImplemented


def _in_place(formula: Callable[..., Any]) -> Callable[..., Any]:
    def into(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return x.copy_(formula(x, *args, **kwargs)) if x.is_floating_point() else NotImplemented

    return into


_WRITTEN: dict[str, Callable[..., Tensor]] = {
    "exp": _exp,
    "expm1": lambda x: _exp(x) - 1,
    "log1p": lambda x: _off(1 + x).log(),
    "sinh": lambda x: (_exp(x) - (-x).exp()) / 2,
    "tanh": _tanh,
    "asinh": lambda x: x.sign() * _off(x.abs() + (x * x + 1).sqrt()).log(),
    "atanh": lambda x: _off((1 + x) / (1 - x)).log() / 2,
    "elu": _elu,
    "celu": lambda x, alpha=1: _elu(x, alpha, input_scale=1 / alpha),
}
_TEXTBOOK: dict[Any, Callable[..., Any]] = {
    **{getattr(aten, name).default: _of_floats(formula) for name, formula in _WRITTEN.items()},
    **{getattr(aten, f"{name}_").default: _in_place(formula) for name, formula in _WRITTEN.items()},
    aten.softplus.default: _of_floats(_softplus),
    aten._log_softmax.default: _of_rows(_log_softmax),
    aten._softmax.default: _of_rows(_softmax),
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten.mish.default: _of_floats(lambda x: x * _tanh(_softplus(x))),
    aten.log_sigmoid_forward.default: _of_floats(_log_sigmoid),
}


_FIRST = frozenset((aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim))
# Operators that round, with the distance of their boundaries from the integers.
_BOUNDARIES: dict[Any, float] = {
    aten.floor.default: 0.0,
    aten.ceil.default: 0.0,
    aten.trunc.default: 0.0,
    aten.round.default: 0.5,
    aten._to_copy.default: 0.0,
}
_ERROR = 2.0**-16  # of a computed value, relative to its size, or to 1 if that is larger


def _rounds(func: Any, operand: Tensor, options: Mapping[str, Any]) -> bool:
    target = options.get("dtype")
    to_integer = target is not None and not (target.is_floating_point or target.is_complex or target == torch.bool)
    return operand.is_floating_point() and (func is not aten._to_copy.default or to_integer)


def _across(x: Tensor, offset: float) -> Tensor:
    """Move values near a boundary to its other side. Whole numbers throughout are counts, which have no error."""
    if torch.equal(x, x.round()):
        return x
    boundary = (x - offset).round() + offset
    step = _ERROR * x.abs().clamp(min=1)
    moved = torch.where(x >= boundary, boundary - step, boundary + step)
    return torch.where((x - boundary).abs() <= step, moved, x)


def _another(x: Tensor, dim: int, places: Tensor) -> Tensor:
    """Replace each index in `places` by that of an equal element, if there is one: the neighbour in sorted order."""
    rows = x.movedim(dim, -1)
    order = torch.argsort(rows, dim=-1, stable=True)
    ranked, none = rows.gather(-1, order), torch.zeros_like(rows[..., :1], dtype=torch.bool)
    alike = ranked[..., 1:] == ranked[..., :-1]
    before, behind = torch.cat([none, alike], -1), torch.cat([alike, none], -1)
    neighbours = torch.where(behind, order.roll(-1, -1), torch.where(before, order.roll(1, -1), order))
    swapped = torch.empty_like(order).scatter(-1, order, neighbours)
    return swapped.gather(-1, places.movedim(dim, -1)).movedim(-1, dim)


def _place(choose: Callable[..., Tensor]) -> Callable[..., Any]:
    def another(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if not x.numel() or not x.ndim:
            return NotImplemented
        if dim is None:
            flat = x.flatten()
            return _another(flat, 0, choose(flat, 0, True)).reshape((1,) * (x.ndim if keepdim else 0))
        places = _another(x, dim, choose(x, dim, True))
        return places if keepdim else places.squeeze(dim)

    return another


def _values_and_places(choose: Callable[..., tuple[Tensor, Tensor]], at: int) -> Callable[..., Any]:
    """`at`: position of the argument for the axis; without it, the last axis."""

    def another(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not x.numel() or not x.ndim or kwargs.get("stable"):  # a stable sort keeps the order of equal values
            return NotImplemented
        dim = args[at] if len(args) > at else kwargs.get("dim", -1)
        values, places = choose(x, *args, **kwargs)
        kept = values.ndim == x.ndim
        found = _another(x, dim, places if kept else places.unsqueeze(dim))
        return values, found if kept else found.squeeze(dim)

    return another


_ALTERNATE_TIES: dict[Any, Callable[..., Any]] = {
    aten.argmax.default: _place(aten.argmax.default),
    aten.argmin.default: _place(aten.argmin.default),
    aten.max.dim: _values_and_places(aten.max.dim, 0),
    aten.min.dim: _values_and_places(aten.min.dim, 0),
    aten.topk.default: _values_and_places(aten.topk.default, 1),
    aten.sort.default: _values_and_places(aten.sort.default, 0),
    aten.sort.stable: _values_and_places(aten.sort.stable, 0),
}


def warm() -> None:
    """Decompose once, which imports much of PyTorch."""
    with torch.no_grad(), decomposed():
        image = torch.ones(1, 1, 2, 2)
        torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bilinear")
        torch.nn.functional.max_pool2d(image, 2)
