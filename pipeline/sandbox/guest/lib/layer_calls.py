"""Replace the calls of all layers for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def layers_called_by(call: Callable[..., Any]) -> Iterator[None]:
    """Within the context, `layer(*args)` is `call(original, layer, *args)`; `original` calls a layer as before."""
    original = nn.Module.__call__

    def replaced(layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return call(original, layer, *args, **kwargs)

    nn.Module.__call__ = replaced  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = original  # type: ignore[method-assign]
