"""Check that a call that runs is a task: finite, repeatable, and a function of its input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from ..lib import pytree
from .call_search import Caller
from .guarded_call import Unfit, seed
from .guess import Guess, draw


def results(caller: Caller, guess: Guess, tensors: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
    """(tree, tensors) of one call's result.

    Raises:
        Unfit: the call raised, or its result holds unsupported values or no floating-point tensor.
    """
    value, failure = caller.call_with(guess, tensors)
    if failure is not None:
        raise Unfit("no_workload", f"runs only once: {failure}")
    return flattened(value, guess)


def flattened(value: Any, guess: Guess) -> tuple[Any, list[Tensor]]:
    """(tree, tensors) of the result of a call.

    Raises:
        Unfit: the result holds unsupported values or no floating-point tensor.
    """
    found: list[Tensor] = []
    try:
        tree = pytree.flatten(value, found)
    except (TypeError, RecursionError) as error:  # a list may hold itself
        raise Unfit("no_tensor_output", str(error)) from error
    if not any(t.is_floating_point() and t.numel() for t in found):
        raise Unfit("no_tensor_output", f"{[str(t.dtype) for t in found]} from {[s.shape for s in guess.specs()]}")
    if any(t.is_sparse or t.is_complex() or t.is_quantized or t.is_nested for t in found):
        raise Unfit("no_tensor_output", "a sparse, complex, quantised or nested tensor")
    if any(t.is_floating_point() and t.itemsize == 1 for t in found):
        raise Unfit("no_tensor_output", "a tensor of eight-bit floats")  # of which PyTorch has few operators
    return tree, [t.detach() for t in found]


def check(caller: Caller, guess: Guess) -> None:
    """Raise `Unfit` with the reason if this call is no task."""
    inputs = draw(guess.specs(), 0)
    seed(1)
    first, views = _on_copies(caller, guess, inputs)
    seed(2)
    second, _ = _on_copies(caller, guess, inputs)
    _finite(first, guess)
    if not _all_same(first, second):
        changed = _changed_state(caller, guess, inputs)
        why = f"; a call changes {', '.join(changed[:3])}" if changed else ""
        raise Unfit("random", f"two calls in eval mode with the same input differ{why}")
    trivial = _trivial(caller, guess, inputs, first, views)
    if trivial is None:
        return
    with _perturbed(caller.module):  # trials draw other weights: an initial scale of 1 or 0 proves nothing
        first, views = _on_copies(caller, guess, inputs)
        if any(not t.isfinite().all() for t in first) or _trivial(caller, guess, inputs, first, views):
            raise trivial


def _changed_state(caller: Caller, guess: Guess, inputs: list[Tensor]) -> list[str]:
    """The names of the state that a call changes."""
    before = state_copy(caller.module)
    _on_copies(caller, guess, inputs)
    return [name for name, value in state(caller.module).items() if not _same(value, before.get(name))]


def _trivial(
    caller: Caller, guess: Guess, inputs: Sequence[Tensor], found: Sequence[Tensor], views: Sequence[bool]
) -> Unfit | None:
    """The reason why these results need no kernel, or None. `views` marks the results that are views of an input."""
    floats = [(t, view) for t, view in zip(found, views, strict=True) if t.is_floating_point()]
    if all(view or any(_same(t, i) for i in inputs) for t, view in floats):
        return Unfit("returns_input", f"{len(floats)} outputs equal to inputs, or views of them")
    other, _ = _on_copies(caller, guess, draw(guess.specs(), 3))
    if _all_same([t for t, _ in floats], [t for t in other if t.is_floating_point()]):
        return Unfit("constant_output", f"other inputs give the same {[tuple(t.shape) for t, _ in floats]}")
    return None


@contextmanager
def _perturbed(module: nn.Module) -> Iterator[None]:
    """Change every parameter within the context."""
    generator = torch.Generator().manual_seed(0)
    before = [(p, p.detach().clone()) for p in module.parameters() if p.is_floating_point()]
    with torch.no_grad():
        for parameter, value in before:
            parameter.copy_(value + torch.rand(value.shape, generator=generator) / 2 + 0.25)
        try:
            yield
        finally:
            for parameter, value in before:
                parameter.copy_(value)


def check_variation(value: Any, guess: Guess) -> None:
    """Raise `Unfit` if the result of the call is not finite."""
    _finite(flattened(value, guess)[1], guess)


def _on_copies(caller: Caller, guess: Guess, inputs: list[Tensor]) -> tuple[list[Tensor], list[bool]]:
    """(tensors of one call's result, for each True if it shares memory with an input).

    Raises:
        Unfit: as `results`, or the call changed an input.
    """
    copies = [t.clone() for t in inputs]
    _, found = results(caller, guess, copies)
    addresses = {_address(copy) for copy in copies}
    views = [_address(t) in addresses for t in found]
    found = [t.clone() for t in found]
    for spec, copy, original in zip(guess.specs(), copies, inputs, strict=True):
        if not _same(copy, original):
            raise Unfit("changes_input", f"forward changes {spec.name}")
    return found, views


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _finite(tensors: Sequence[Tensor], guess: Guess) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.is_floating_point() and not tensor.isfinite().all():
            share = 1 - tensor.isfinite().float().mean().item()
            shapes = [spec.shape for spec in guess.specs()]
            raise Unfit("not_finite", f"{share:.1%} of output {index} on normal inputs of shapes {shapes}")


def _all_same(ones: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(ones) == len(others) and all(_same(one, other) for one, other in zip(ones, others, strict=True))


def _same(one: Tensor, other: Tensor | None) -> bool:
    """Equal in shape, dtype and value; NaN equals NaN."""
    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if torch.equal(one, other):
        return True
    # As float64, since floats of 8 bits lack this function.
    return one.is_floating_point() and torch.equal(one.double().nan_to_num(0.25), other.double().nan_to_num(0.25))


def state(module: nn.Module) -> dict[str, Tensor]:
    """The module's tensors by name, detached.

    Raises:
        Unfit: a tensor gets its shape from the first input, or the module overrides `named_parameters`.
    """
    try:
        named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    except TypeError as error:  # an override with another signature
        raise Unfit("no_constructor_arguments", str(error)) from error
    lazy = [name for name, value in named if isinstance(value, UninitializedTensorMixin)]
    if lazy:  # its `state_dict` may raise
        raise Unfit("no_constructor_arguments", f"{lazy[0]} gets its shape from the first input")
    return {name: value.detach() for name, value in module.state_dict().items() if isinstance(value, Tensor)}


def state_copy(module: nn.Module) -> dict[str, Tensor]:
    """A copy of `state`."""
    return {name: value.clone() for name, value in state(module).items()}


def check_state(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """Raise `Unfit` if the states of two constructions from one seed differ: a tensor holds uninitialised memory."""
    differing = sorted(
        name for name in one.keys() | other.keys() if name not in one or not _same_bytes(one[name], other.get(name))
    )
    if differing:
        raise Unfit("random", f"two constructions from one seed differ in {', '.join(differing[:3])}")


def _same_bytes(one: Tensor, other: Tensor | None) -> bool:
    """True if both are `_same` and have NaN at the same places."""
    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one, other) or (_same(one, other) and torch.equal(one.isnan(), other.isnan()))
