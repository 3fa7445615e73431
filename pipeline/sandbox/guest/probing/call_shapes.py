"""The shapes that the calls of a forward give, for prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..lib.layer_calls import layers_called_by
from ..lib.pytree import tensors_of

_MOST = 24  # calls


class CallShapes(TorchFunctionMode):
    """Records within the context the calls whose result has another shape than all tensors that they take.

    A layer of `torch.nn` is one call, `self.body[0].conv`; other calls have the name of their function, `flatten`.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self._paths = {id(layer): path for path, layer in module.named_modules() if path}
        self._inside = 0  # layers of `torch.nn` that are being called

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._inside:
            return func(*args, **kwargs)
        given = _shapes([*args, *kwargs.values()])  # before the call, which may change them
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        owner = getattr(func, "__self__", None)  # of an attribute's `__get__`
        self._note((getattr(owner, "__name__", name) if name == "__get__" else name).strip("_"), given, result)
        return result

    @contextmanager
    def with_layers(self) -> Iterator[None]:
        def call(original: Any, layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
            path = self._paths.get(id(layer), "")
            if self._inside or not path or not type(layer).__module__.startswith("torch.nn."):
                return original(layer, *args, **kwargs)
            given = _shapes([*args, *kwargs.values()])
            self._inside += 1
            try:
                result = original(layer, *args, **kwargs)
            finally:
                self._inside -= 1
            self._note(re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", f"self.{path}"), given, result)
            return result

        with layers_called_by(call), self:
            yield

    def with_results(self, results: Iterable[Tensor]) -> list[dict[str, Any]]:
        """The shapes found, and after them those of the forward's results."""
        return [*self.found, *(_shape_of("", tensor) for tensor in results)]

    def _note(self, call: str, given: set[torch.Size], result: Any) -> None:
        for tensor in _tensors(result)[:1]:
            made = _shape_of(call, tensor)
            if len(self.found) < _MOST and tensor.shape not in given and made not in self.found:
                self.found.append(made)


def with_further_shapes(
    first: Sequence[dict[str, Any]], further: Sequence[Sequence[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Add to each shape of one forward its shapes in further ones; none if one of these makes other calls."""
    calls = [[(each["call"], len(each["shape"])) for each in found] for found in (first, *further)]
    alike = all(found == calls[0] for found in calls)
    return [
        {**each, "further": [found[place]["shape"] for found in further] if alike else []}
        for place, each in enumerate(first)
    ]


def _shape_of(call: str, tensor: Tensor) -> dict[str, Any]:
    """A `CallShape` as JSON."""
    return {"call": call, "shape": [*tensor.shape], "dtype": str(tensor.dtype).removeprefix("torch.")}


def _tensors(values: Any) -> list[Tensor]:
    """The tensors in a value, except nested ones, which have no shape."""
    return [each for each in tensors_of(values) if not each.is_nested]


def _shapes(values: Any) -> set[torch.Size]:
    return {tensor.shape for tensor in _tensors(values)}
