"""Constructor arguments of layers of `torch.nn`, read back from an instance."""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch
from torch import nn

from ..probing.guarded_call import result_or_none

_LEFT_OUT = frozenset({"self", "inplace", "device", "dtype"})
_INPLACE = re.compile(r"(, )?inplace=True")


def constructor_arguments(layer: nn.Module) -> dict[str, Any] | None:
    """The arguments that differ from their defaults, by parameter; None if they do not rebuild the layer."""
    cls = type(layer)
    if getattr(nn, cls.__name__, None) is not cls or (any(layer.children()) and cls is not nn.MultiheadAttention):
        return None
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        if name in _LEFT_OUT or parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            continue
        value = _argument(layer, name, parameter.default)
        if value is inspect.Parameter.empty or not _is_plain(value):
            return None
        if value != parameter.default or type(value) is not type(parameter.default):
            arguments[name] = value
    return arguments if result_or_none(lambda: _rebuilds(layer, arguments)) else None


def _argument(layer: nn.Module, name: str, default: Any) -> Any:
    value = getattr(layer, name, default)
    if name == "bias" and not isinstance(value, bool):
        held = getattr(layer, "in_proj_bias", None) if isinstance(layer, nn.MultiheadAttention) else value
        return held is not None
    if isinstance(value, tuple) and len(set(value)) == 1 and type(layer).__name__[-2:] in ("1d", "2d", "3d"):
        return value[0]
    if isinstance(value, tuple) and len(value) == 1:  # normalized_shape
        return value[0]
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _rebuilds(layer: nn.Module, arguments: dict[str, Any]) -> bool:
    with torch.device("meta"):
        again = type(layer)(**arguments)
    shapes, others = ({name: t.shape for name, t in one.state_dict().items()} for one in (layer, again))
    return shapes == others and _INPLACE.sub("", repr(layer)) == _INPLACE.sub("", repr(again))
