"""Attributes and methods of the evaluator's values, for each of their types those that the language lists.

Layers of `torch.nn` are called on meta tensors, with the attributes that the constructor gave them.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from kernelquarry.filters.language import tables

from . import names
from .recording import call_torch, is_on_host
from .values import (
    Bound,
    Class,
    Config,
    Context,
    Descriptor,
    Device,
    Foreign,
    Layer,
    Native,
    Raised,
    Record,
    Unsupported,
)

if TYPE_CHECKING:
    from .expressions import Expressions

SEQUENTIAL = "torch.nn.Sequential"
_CONTAINERS = {"torch.nn.ModuleList", SEQUENTIAL, "torch.nn.ModuleDict", "torch.nn.ParameterList"}
_READ = frozenset("shape dtype ndim T mT real imag itemsize nbytes layout".split())  # of tensors, without a call
_OF_TYPES: tuple[tuple[Any, frozenset[str]], ...] = (
    (torch.Size, frozenset("numel index count".split())),
    (list, frozenset("append copy extend insert pop reverse sort index count".split())),
    (tuple, frozenset("index count".split())),
    (dict, frozenset("copy items keys values get pop update".split())),
    (str, frozenset("lower upper startswith endswith join replace count index".split())),
    (int, frozenset(("bit_length",))),
    (range, frozenset("start stop step index count".split())),
    (slice, frozenset("start stop step".split())),
    (torch.dtype, frozenset("itemsize is_floating_point is_complex is_signed".split())),
    (torch.finfo, frozenset("bits eps max min tiny".split())),
    (torch.iinfo, frozenset("bits max min".split())),
    (Device, frozenset("type index".split())),
    (Config, frozenset("kwargs num_warps num_stages num_ctas".split())),
    (Descriptor, frozenset("base shape strides block_shape".split())),
    (names.Gpu, frozenset(("multi_processor_count",))),
    (names.Target, frozenset(("backend",))),
)
_MAX_TEXT = 1000  # characters of a text with a method that is called
_OF_CONTEXT = frozenset("save_for_backward mark_dirty mark_non_differentiable set_materialize_grads".split())


def attribute(evaluator: Expressions, owner: Any, name: str) -> Any:
    """An attribute or a method of a value. Raises: Raised, Unsupported."""
    match owner:
        case Tensor():
            return _of_tensor(owner, name)
        case Layer():
            return _of_layer(evaluator, owner, name)
        case Record():
            return _of_record(evaluator, owner, name)
        case Class():
            return _of_class(evaluator, owner, name)
        case Context():
            if name in _OF_CONTEXT:
                return Native(name, lambda *args, **kwargs: None)
            if name not in owner.values:
                raise Raised(f"AttributeError: {name}")
            return owner.values[name]
    if name == "value" and isinstance(owner, bool | int | float | str):
        return owner  # of a `tl.constexpr`, which plans hold as its value
    for kind, listed in _OF_TYPES:
        if isinstance(owner, kind) and name in listed:
            if isinstance(owner, str) and len(owner) > _MAX_TEXT:
                raise Unsupported(f"{name} of a text of {len(owner)} characters")
            if name in tables.LIST_CHANGES:
                evaluator.check_change(owner)
            value = getattr(owner, name)
            return names.guarded(name, value) if callable(value) else value
    raise Unsupported(f"the attribute {name} of a {type(owner).__name__}")


def is_container(layer: Layer) -> bool:
    """True for a list, a sequence or a dict of layers."""
    return layer.base in _CONTAINERS


def items_of(layer: Layer) -> Any:
    """The items of a container of layers; for a dict, the layers by name."""
    if layer.base == "torch.nn.ModuleDict":
        return {name: layer.attributes[name] for name in layer.layers}
    if layer.base == "torch.nn.ParameterList":
        return [value for name, value in layer.attributes.items() if name.isdecimal()]
    if not is_container(layer):
        raise Unsupported(f"the items of a {layer.path or 'module'}")
    return layer.children()


def child(layer: Layer, index: Any) -> Any:
    """An item of a container of layers. Raises: Raised."""
    items = items_of(layer)
    if isinstance(index, slice) and layer.path != layer.base:
        raise Unsupported(f"a slice of a {layer.path}, which constructs one")
    try:
        return items[index]
    except (LookupError, TypeError) as error:
        raise Raised(f"{type(error).__name__}: {error}") from error


def _of_tensor(tensor: Tensor, name: str) -> Any:
    if name in ("device", "is_cuda", "is_cpu", "get_device"):
        on_host = is_on_host(tensor)
        device = Device("cpu", None) if on_host else Device()
        values: dict[str, Any] = {"device": device, "is_cuda": not on_host, "is_cpu": on_host}
        return Native(name, lambda: -1 if on_host else 0) if name == "get_device" else values[name]
    if name.startswith("_") or not tables.is_tensor_attribute(name):
        raise Unsupported(f"the attribute {name} of a tensor")
    if name == "data":
        return call_torch("torch.Tensor.detach", Tensor.detach, (tensor,), {})
    if name in _READ:
        return call_torch(f"torch.Tensor.{name}", operator.attrgetter(name), (tensor,), {})
    method = getattr(Tensor, name, None)
    if not callable(method):
        raise Raised(f"AttributeError: {name}")
    return Native(name, lambda *args, **kwargs: call_torch(f"torch.Tensor.{name}", method, (tensor, *args), kwargs))


def _of_layer(evaluator: Expressions, layer: Layer, name: str) -> Any:
    if name == "training":
        return False
    if name == "get_submodule":
        return Native(name, lambda path: functools.reduce(_submodule, path.split("."), layer))
    own = evaluator.global_value(layer.path) if layer.path in evaluator.definitions.classes else None
    if name == "forward" and isinstance(own, Class) and own.find(name) is None and layer.base == SEQUENTIAL:
        return Bound(replace(layer, path=SEQUENTIAL), ())
    if isinstance(own, Class) and name not in layer.attributes:
        return _member(evaluator, own, name, layer)
    if own is not None and name in layer.attributes:
        found = own.find(name)
        if isinstance(found, ast.FunctionDef) and _marks(evaluator, found) & {"property"}:
            return _member(evaluator, own, name, layer)
    if name in layer.attributes and not name.startswith("__"):
        return layer.attributes[name]
    if name == "all_weights" and isinstance(every := layer.attributes.get("_all_weights"), list):
        return [[layer.attributes[each] for each in weights] for weights in every]
    if layer.base == "torch.nn.ModuleDict" and name in ("items", "keys", "values"):
        return names.guarded(name, getattr(items_of(layer), name))
    if name == "forward":
        return Bound(layer, ())
    raise Unsupported(f"the attribute {name} of a layer {layer.path}")


def _submodule(layer: Layer, name: str) -> Layer:
    if name not in layer.layers:
        raise Raised(f"AttributeError: no submodule {name}")
    found: Layer = layer.attributes[name]
    return found


def _of_record(evaluator: Expressions, record: Record, name: str) -> Any:
    if name in record.values:
        return record.values[name]
    if record.is_tuple and name in ("index", "count"):
        return names.guarded(name, getattr(tuple(record), name))
    if record.is_tuple and name == "_asdict":
        return Native(name, lambda: dict(record.values))
    if record.is_tuple and name == "_replace":
        return Native(name, lambda **changes: Record(record.kind, record.values | changes))
    return _member(evaluator, record.kind, name, record)


def _of_class(evaluator: Expressions, kind: Class, name: str) -> Any:
    if kind.kind == "autograd" and name == "apply":
        return Native(f"{kind.name}.apply", lambda *args: evaluator.apply(kind, args))
    return _member(evaluator, kind, name, None)


def _member(evaluator: Expressions, kind: Class, name: str, instance: Any) -> Any:
    """A method or class variable, of an instance if there is one. Raises: Raised: there is none."""
    found = kind.find(name)
    if found is None and kind.kind == "layer":
        raise Unsupported(f"the attribute {name} of a layer {kind.name}")
    if found is None:
        raise Raised(f"AttributeError: {kind.name} has no {name}")
    if isinstance(found, ast.expr):
        return evaluator.class_value(kind, found)
    marks = _marks(evaluator, found)
    function = evaluator.decorated(found, None)
    if "staticmethod" in marks:
        return function
    if "classmethod" in marks:
        return Bound(function, (kind,))
    if "property" in marks and instance is not None:
        return evaluator.call(function, [instance], {})
    return function if instance is None else Bound(function, (instance,))


def _marks(evaluator: Expressions, node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(each) for each in node.decorator_list if not evaluator.path(each)}


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
