"""Calls of layers of `torch.nn` on meta tensors, from the attributes that the constructor gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from .recording import call_torch
from .values import Device, Foreign, Layer, Native, Unsupported


def call_layer(layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a layer of `torch.nn`. Raises: Raised, Unsupported."""
    return call_torch(layer.path, _revived(layer), args, kwargs)


def _revived(layer: Layer) -> nn.Module:
    """The layer as a module, without running its constructor."""
    name = layer.path.removeprefix("torch.nn.")
    kind = getattr(nn, name, None) if name != layer.path else None
    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        raise Unsupported(f"a call of a {layer.path or 'module of another type'}")
    module = kind.__new__(kind)
    nn.Module.__init__(module)
    for attribute, value in layer.attributes.items():
        if attribute in layer.layers:
            module._modules[attribute] = _revived(value) if isinstance(value, Layer) else None
        elif isinstance(value, Native | Device | Foreign):
            continue
        else:
            vars(module)[attribute] = value
    vars(module)["training"] = False
    return module
