"""The host's comparison of a candidate with the reference: contract first, then values. Reports numbers.

The oracle is the reference in float64. The tolerance is measured, not chosen: eager float32 runs of the reference, one
on the trial's own values and two on values moved by units in the last place, show the error that honest arithmetic
makes on this module and these inputs. A candidate may make `FACTOR` times that error, and at least `FACTOR` unit
roundoffs times the square root of the number of summed terms. Errors are compared

- for the whole tensor and for every slice along every axis, each relative to the root mean square of
  the oracle there, so that a wrong row does not hide behind larger ones;
- for single elements, of which nine in ten must be within their own bound, so that a loss of precision
  does not hide behind a few huge values.

In float16 and bfloat16 this tolerance holds for the sums, which are float32 there too. The dtype's own roundings are
added to it: `ROUNDINGS` times the error of the eager run in that dtype, and at least that many of its unit roundoffs,
whatever the number of terms. A sum in half precision, and bfloat16 in place of float16, exceed it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .observation import Observation
from .protocol import octets

torch.set_num_threads(1)  # of the host: records are judged in parallel, and their tensors are small

FACTOR = 8.0
ROUNDINGS = 4.0  # bfloat16 rounds eight times as coarsely as float16
_BULK = 0.9  # share of the elements that must be within their own bound
_BULK_LEAST = 64  # elements: in smaller tensors that share is not meaningful
CANCELS = 2.0**-48  # of the usual scale: float64 values that are as small are what rounding left
_TINY = 1e-30  # replaces a tolerance of 0, which would divide by 0


@dataclass(frozen=True, slots=True)
class Measure:
    """The worst error of a comparison. Errors are relative to the oracle's scale at that place."""

    error: float
    honest_error: float
    tolerance: float
    where: str

    @property
    def ratio(self) -> float:
        return self.error / self.tolerance

    @property
    def passes(self) -> bool:
        return self.error <= self.tolerance


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a call's values, with its expected value."""

    name: str  # "output 0[3, 17]"
    expected: float  # the oracle's
    actual: float


def contract_difference(reference: Observation, candidate: Observation, strided: bool = False) -> str:
    """The first difference between the candidate's call and the reference's in float32, apart from values; "" if none.

    For `strided` inputs the layout of the outputs is not compared: a view has the layout of its input.
    """
    if candidate.tree != reference.tree or len(candidate.outputs) != len(reference.outputs):
        return f"returns {candidate.tree[:200]} in place of {reference.tree[:200]}"
    for index, (new, old) in enumerate(zip(candidate.outputs, reference.outputs, strict=True)):
        if new.shape != old.shape:
            return f"output {index} has shape {tuple(new.shape)} in place of {tuple(old.shape)}"
        if new.dtype != old.dtype:
            return f"output {index} is {new.dtype} in place of {old.dtype}"
        if new.dtype == torch.bool and bool((octets(new) > 1).any()):
            return f"output {index} has bytes that are neither true nor false"
        if not strided and not _as_dense(tuple(old.shape), candidate.strides[index], reference.strides[index]):
            return f"output {index} has strides {candidate.strides[index]} in place of {reference.strides[index]}"
        if candidate.shares[index] not in ("", reference.shares[index]):
            return f"output {index} shares memory with {candidate.shares[index]}"
    if sorted(candidate.mutated) != sorted(reference.mutated):
        return f"changes inputs {sorted(candidate.mutated)} in place of {sorted(reference.mutated)}"
    if candidate.changed.keys() != reference.changed.keys():
        return f"changes state {sorted(candidate.changed)} in place of {sorted(reference.changed)}"
    for name, value in candidate.changed.items():
        if value.shape != reference.changed[name].shape or value.dtype != reference.changed[name].dtype:
            return f"leaves {name} as {tuple(value.shape)} of {value.dtype}"
    if candidate.trained != reference.trained:
        return f"changes gradients of state {candidate.trained} in place of {reference.trained}"
    return ""


def _as_dense(shape: tuple[int, ...], new: tuple[int, ...], old: tuple[int, ...]) -> bool:
    """True if `new` is contiguous or equal to the reference's strides `old`; dimensions of size 1 do not count."""
    contiguous = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    real = [axis for axis, size in enumerate(shape) if size > 1]
    return 0 in shape or any(all(new[a] == wanted[a] for a in real) for wanted in (contiguous, old))


def same_bytes(left: Observation, right: Observation) -> bool:
    """True if all values are equal to the bit: NaN equals itself, and 0.0 differs from -0.0."""
    return len(left.values) == len(right.values) and all(
        same_bits(a, b) for a, b in zip(left.values, right.values, strict=True)
    )


def same_bits(left: Tensor, right: Tensor) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and torch.equal(octets(left), octets(right))


class ErrorBounds:
    """The tolerances around one trial of the reference, against which the values of calls are measured."""

    def __init__(
        self,
        oracle: Observation,
        honest: Sequence[Observation],
        terms: int,
        rounded: Observation | None = None,
        tied: Observation | None = None,
        any_integer: bool = False,
        any_special: bool = False,
        usual: ErrorBounds | None = None,
        cancels: float = CANCELS,
    ) -> None:
        """Measure the tolerances.

        Args:
            oracle: the float64 run.
            honest: float32 runs, that on the trial's own values first.
            terms: number of terms that are summed for one output element.
            rounded: for a half dtype, the run in it on the trial's own values, which is not among `honest`.
            tied: a run that breaks ties differently. Integers that differ in it may have any value.
            any_integer: all integers may have any value.
            any_special: elements that are infinite or NaN in the oracle may have any value.
            usual: bounds of a trial of the usual scale, which counts where this one's values cancel out: where no digit
                of an honest run is right, or they are at most the share `cancels` of that scale.
        """
        first = rounded or honest[0]
        every = [*honest, *([tied] if tied else [])]
        runs = zip(*(map(_real, run.values) for run in every), strict=True)
        scales = [each.scale for each in usual._bounds] if usual else []
        if len(scales) != len(first.values):
            scales = [0.0] * len(first.values)
        self._bounds: list[_Floating | _Discrete] = [
            _Floating(exact, each, terms, own if rounded else None, any_special, scale, cancels)
            if own.is_floating_point()
            else _Discrete(exact, [own, *each], _any_value(own, each[-1] if tied else own, any_integer))
            for exact, own, each, scale in zip(
                map(_real, oracle.values), map(_real, first.values), runs, scales, strict=True
            )
        ]

    @property
    def is_finite(self) -> bool:
        """True if at least nine in ten of the reference's floating-point values are finite."""
        return all(bounds.finite >= _BULK for bounds in self._bounds)

    @property
    def is_decided(self) -> bool:
        """True if at least nine in ten floating-point values can be compared: honest runs agree on what is finite."""
        return all(bounds.decided >= _BULK for bounds in self._bounds)

    def measure(self, values: Sequence[Tensor]) -> Measure:
        """The worst error over all tensors, which have the shapes of the reference's."""
        worst, found = self._worst(values)
        return Measure(found.error, found.honest_error, found.tolerance, f"output {worst}, {found.where}")

    def worst_element(self, observed: Observation) -> Element:
        """The element of the worst tensor that exceeds its own bound most; the first of equals."""
        number, _ = self._worst(observed.values)
        value, bounds = _real(observed.values[number]), self._bounds[number]
        at = int(bounds.deviations(value).argmax())
        index = [int(place) for place in torch.unravel_index(torch.tensor(at), value.shape)]
        expected, actual = (float(tensor.reshape(-1)[at]) for tensor in (bounds.oracle, value))
        return Element(f"{observed.name_of(number)}{index or ''}", expected, actual)

    def _worst(self, values: Sequence[Tensor]) -> tuple[int, Measure]:
        measures = [bounds.measure(_real(value)) for bounds, value in zip(self._bounds, values, strict=True)]
        worst = max(range(len(measures)), key=lambda i: measures[i].ratio)
        return worst, measures[worst]

    def unchanged(self, values: Sequence[Tensor]) -> list[int]:
        """Numbers of the tensors that pass when each is measured alone."""
        pairs = zip(self._bounds, values, strict=True)
        return [index for index, (bounds, value) in enumerate(pairs) if bounds.measure(_real(value)).passes]


def _real(value: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones, along an additional last axis."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def _any_value(own: Tensor, tied: Tensor, any_integer: bool) -> Tensor:
    """Mask of the integer elements that may have any value."""
    if own.dtype == torch.bool:
        return torch.zeros_like(own)
    return torch.ones_like(own, dtype=torch.bool) if any_integer else own != tied


class _Discrete:
    """Bounds of an integer or boolean tensor: the oracle's value or an honest run's, or any value where `free`."""

    finite = decided = 1.0
    scale = 0.0

    def __init__(self, exact: Tensor, honest: Sequence[Tensor], free: Tensor) -> None:
        self._accepted = [exact.to(honest[0].dtype), *honest]
        self.oracle, self._free = self._accepted[0], free

    def measure(self, value: Tensor) -> Measure:
        wrong = self.deviations(value).mean().item() if value.numel() else 0.0
        return Measure(wrong, 0.0, 0.5 / max(1, value.numel()), "share of wrong elements")

    def deviations(self, value: Tensor) -> Tensor:
        """For each element, 1 if it is wrong and 0 if it is right."""
        right = torch.stack([value == accepted for accepted in self._accepted]).any(dim=0)
        return 1.0 - (right | self._free).double()


class _Floating:
    """Bounds of one floating-point tensor of the reference."""

    def __init__(
        self,
        exact: Tensor,
        honest: Sequence[Tensor],
        terms: int,
        rounded: Tensor | None,
        any_special: bool,
        scale: float,
        cancels: float,
    ) -> None:
        runs = torch.stack([run.double() for run in honest])
        self._eager = runs[0] if rounded is None else rounded.double()
        self._exact = self.oracle = exact.double()
        self._stable = torch.isfinite(runs).all(dim=0) & torch.isfinite(self._eager) & torch.isfinite(self._exact)
        if self._stable.all() or any_special:
            self._special = torch.zeros_like(self._stable)
        else:
            every = torch.cat([runs, self._eager[None]])
            self._special = (_finiteness(every) == _finiteness(self._exact)).all(dim=0) & ~torch.isfinite(self._exact)
        self._compared = int(self._stable.sum())  # elements
        self._exact = torch.where(self._stable, self._exact, 0.0)
        self._spread = torch.where(self._stable, (runs - self._exact).abs(), 0.0).amax(dim=0)
        roundoff = torch.finfo(honest[0].dtype).eps / 2
        self._floor = roundoff * math.sqrt(max(1, terms))
        squares = self._exact.square()
        rms = [self._rms(squares, axis) for axis in self._axes()]
        self.scale = float(rms[0])
        if self.scale <= max(cancels * scale, 2 * float(self._spread.max()) if self._compared else 0.0):
            self.scale = max(self.scale, scale)
        self._least = max(roundoff * self.scale, _TINY)  # one roundoff at the tensor's scale
        compared = self._exact if self._stable.all() else self._exact[self._stable]
        self._typical = float(compared.abs().median()) if self._compared else 0.0
        if self.scale > float(rms[0]):
            self._typical = self.scale
        own = torch.maximum(self._spread, self._floor * self._exact.abs())
        self._own_bound = FACTOR * torch.clamp(own, min=roundoff * self._typical)
        self._rounding = self._rounding_of(rounded)
        self._own_bound += ROUNDINGS * self._rounding
        self._slices = [self._slice_bounds(axis, own) for axis, own in zip(self._axes(), rms, strict=True)]

    def _rounding_of(self, rounded: Tensor | None) -> Tensor:
        """Rounding error of each element in a half dtype: that of the run `rounded`, and at least one unit roundoff."""
        if rounded is None:
            return torch.zeros_like(self._exact)
        limits = torch.finfo(rounded.dtype)
        seen = torch.where(self._stable, (self._eager - self._exact).abs(), 0.0)
        one = limits.eps / 2 * self._exact.abs().clamp(min=max(self._typical, limits.smallest_normal))
        return torch.maximum(seen, one)

    @property
    def finite(self) -> float:
        """Share of the elements that are finite in the oracle and in all honest runs."""
        return self._stable.double().mean().item() if self._stable.numel() else 1.0

    @property
    def decided(self) -> float:
        """Share of the elements that are finite in all runs, or the same infinity or NaN in all runs."""
        return (self._stable | self._special).double().mean().item() if self._stable.numel() else 1.0

    def _axes(self) -> list[int | None]:
        return [None, *range(self._exact.ndim)] if self._exact.ndim > 1 else [None]

    def _others(self, axis: int | None) -> list[int]:
        return [other for other in range(self._exact.ndim) if other != axis]

    def _rms(self, squares: Tensor, axis: int | None) -> Tensor:
        """Root mean square over the stable elements of each slice along `axis`, or of the whole tensor if None.

        The squares of the other elements are zero.
        """
        if not squares.numel():
            return torch.zeros(())
        dims = self._others(axis)
        if not dims:
            return squares.mean().sqrt()
        return (squares.sum(dim=dims) / self._stable.sum(dim=dims).clamp(min=1)).sqrt()

    def _largest(self, value: Tensor, axis: int | None) -> Tensor:
        dims = self._others(axis)
        return value.amax(dim=dims) if dims else value

    def _slice_bounds(self, axis: int | None, rms: Tensor) -> tuple[int | None, Tensor, Tensor, Tensor]:
        """Axis, scale, honest error and tolerance of the slices along an axis; the latter two relative to the scale."""
        if not self._exact.numel():
            return axis, torch.ones(1), torch.zeros(1), torch.ones(1)
        scale = rms.clamp(min=self._least).reshape(-1)
        honest = self._largest(self._spread, axis).reshape(-1) / scale
        honest = honest.clamp(min=float(honest.median()))  # a slice of few elements may have a small error by chance
        tolerance = FACTOR * honest.clamp(min=self._floor) + self._least / scale
        rounding = self._largest(self._rounding, axis).reshape(-1) / scale
        rounding = rounding.clamp(min=float(rounding.median()))
        tolerance += ROUNDINGS * rounding
        honest = torch.maximum(honest, rounding)
        return axis, scale, honest, tolerance

    def measure(self, value: Tensor) -> Measure:
        if not value.numel():
            return Measure(0.0, 0.0, 1.0, "empty")
        actual = value.double()
        if not self._same_specials(actual):
            return Measure(math.inf, 0.0, 1.0, "NaN or infinity in other places than the reference")
        error = torch.where(self._stable, (actual - self._exact).abs(), 0.0)
        found = [self._worst_slice(error, *slices) for slices in self._slices]
        if self._compared >= _BULK_LEAST:
            found.append(self._bulk(error))
        return max(found, key=lambda measure: measure.ratio)

    def _same_specials(self, actual: Tensor) -> bool:
        if not (torch.isfinite(actual) | ~self._stable).all():
            return False
        return torch.equal(_finiteness(self._eager[self._special]), _finiteness(actual[self._special]))

    def deviations(self, value: Tensor) -> Tensor:
        """Error of each element over its own bound; infinite where NaN or infinity is misplaced."""
        actual = value.double()
        error = torch.where(self._stable, (actual - self._exact).abs(), 0.0)
        other_kind = _finiteness(self._eager) != _finiteness(actual)
        misplaced = self._stable & ~torch.isfinite(actual) | self._special & other_kind
        return torch.where(misplaced, math.inf, self._own_ratio(error))

    def _own_ratio(self, error: Tensor) -> Tensor:
        return torch.where(error == 0, 0.0, error / self._own_bound)

    def _worst_slice(
        self, error: Tensor, axis: int | None, scale: Tensor, honest: Tensor, tolerance: Tensor
    ) -> Measure:
        relative = self._largest(error, axis).reshape(-1) / scale
        at = int((relative / tolerance).argmax())
        where = "whole" if axis is None else f"slice {at} of axis {axis}"
        return Measure(relative[at].item(), honest[at].item(), tolerance[at].item(), where)

    def _bulk(self, error: Tensor) -> Measure:
        """The error at the 90th percentile of the elements' errors over their own bounds."""
        ratio = torch.where(self._stable, self._own_ratio(error), -1.0).reshape(-1)  # -1: no bound
        left_out = ratio.numel() - self._compared
        at = int(ratio.kthvalue(left_out + math.ceil(_BULK * self._compared)).indices)
        deviation, honest, bound, exact = (
            float(value.reshape(-1)[at])
            for value in (error, torch.maximum(self._spread, self._rounding), self._own_bound, self._exact)
        )
        scale = max(abs(exact), self._typical, self._least)
        return Measure(deviation / scale, honest / scale, max(bound / scale, _TINY), "nine elements in ten")


def _finiteness(value: Tensor) -> Tensor:
    """0 for a finite element, 1 or -1 for an infinity, 2 for NaN."""
    return torch.where(value.isnan(), 2.0, torch.where(value.isinf(), value.sign(), 0.0))


def impostor_answers(
    eager: Observation, inputs: Sequence[Tensor], other_answers: Mapping[str, Observation]
) -> dict[str, list[Tensor]]:
    """Answers that need no work, by name.

    `eager` is the right answer; `other_answers` are the reference's answers to other inputs or with other weights. One
    of those is omitted if its shapes differ, or if it equals the right answer to the bit: then the difference between
    the two questions, such as an unused parameter, has no meaning to the module. The inputs are an answer if each
    output has an input of its shape.
    """
    values = eager.values
    answers: dict[str, list[Tensor]] = {
        "zeros": [torch.zeros_like(value) for value in values],
        "constant": [_mean(value, list(range(value.ndim))) for value in values],
        "batch_mean": [_mean(value, [0]) for value in values if value.ndim > 1 and len(value) > 1],
        "input": [alike for value in values for alike in [_alike(value, inputs)] if alike is not None],
    }
    for name, run in other_answers.items():
        fits = [other.shape for other in run.values] == [value.shape for value in values]
        if fits and not all(map(same_bits, run.values, values)):
            answers[name] = list(run.values)
    return {name: answer for name, answer in answers.items() if len(answer) == len(values)}


def _mean(value: Tensor, dims: list[int]) -> Tensor:
    if value.is_complex():
        return torch.view_as_complex(_mean(_real(value), dims))
    if value.numel() < 2 or not dims:
        return value.double() + 1.0  # the mean of a single number would be the right answer
    return value.double().nan_to_num(0.0, 0.0, 0.0).mean(dim=dims, keepdim=True).expand(value.shape).to(value.dtype)


def _alike(value: Tensor, inputs: Sequence[Tensor]) -> Tensor | None:
    return next((given for given in inputs if given.shape == value.shape and given.dtype == value.dtype), None)
