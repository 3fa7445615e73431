"""Patches that let a trace follow a module's call and leave the module as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._higher_order_ops import effects
from torch.fx.experimental.symbolic_shapes import uninteresting_files
from torch.fx.passes import shape_prop

_FORMAT_CHECK = "is_contiguous_for_memory_format_or_false"  # of `shape_prop`

uninteresting_files().add(__file__)  # see `origins`


@contextlib.contextmanager
def fused_attention() -> Iterator[None]:
    """Give the result of `nn.MultiheadAttention` the contiguous layout of its fast path.

    Eager takes the fast path in eval mode, a trace takes the other one, whose result is transposed. The values agree.
    """
    slow = nn.MultiheadAttention.forward

    def forward(
        self: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        result, weights = slow(self, query, key, value, *args, **kwargs)
        masks = [mask for mask in (*args, *kwargs.values()) if isinstance(mask, Tensor)]
        is_self = query is key is value and query.dim() == 3 and not any(mask.is_floating_point() for mask in masks)
        return (result.contiguous() if is_self and _has_fast_path(self) else result), weights

    with mock.patch.object(nn.MultiheadAttention, "forward", forward):
        yield


def _has_fast_path(module: nn.MultiheadAttention) -> bool:
    return (
        module.batch_first
        and not module.training
        and module.num_heads % 2 == 0
        and module.in_proj_weight is not None
        and module.in_proj_bias is not None
        and module.bias_k is None
        and module.bias_v is None
        and not module.add_zero_attn
        and not torch.is_autocast_enabled()
        and torch.backends.mha.get_fastpath_enabled()
    )


@contextlib.contextmanager
def attributes_kept(module: nn.Module) -> Iterator[None]:
    """Restore plain attributes, lists and dicts of a module, such as a cache by size, after the trace.

    Otherwise another trace would find symbols and fake tensors in them.
    """
    holders = [holder for child in module.modules() for holder in (vars(child), *vars(child).values())]
    before = [(holder, holder.copy()) for holder in holders if type(holder) in (dict, list)]
    try:
        yield
    finally:
        for holder, content in before:
            holder.clear()
            (holder.update if isinstance(holder, dict) else holder.extend)(content)


@contextlib.contextmanager
def linalg_checks_traced() -> Iterator[None]:
    """Trace the check for singular matrices like other assertions of values.

    As an operator with effects it would need a token, which only AOTAutograd provides.
    """
    has_effects = effects.has_effects

    def patched(op: Any, *args: Any) -> bool:
        return op is not torch.ops.aten._linalg_check_errors.default and has_effects(op, *args)

    with mock.patch.object(effects, "has_effects", patched):
        yield


@contextlib.contextmanager
def no_inference_mode() -> Iterator[None]:
    """Ignore `torch.inference_mode` in a module: it takes no fake tensors, and a trace without gradients needs none."""
    with mock.patch.multiple(torch.inference_mode, __enter__=lambda self: None, __exit__=lambda self, *raised: None):
        yield


@contextlib.contextmanager
def layouts_cached() -> Iterator[None]:
    """Compute the memory format of each result of a trace once for each shape and strides.

    `make_fx` notes it for every operator, which takes a dozen comparisons of sizes for each format.
    """
    plain = getattr(shape_prop, _FORMAT_CHECK, None)
    if plain is None:  # another release of PyTorch
        yield
        return
    known: dict[Any, bool] = {}

    def cached(tensor: Tensor, *, memory_format: torch.memory_format) -> bool:
        layout = (*tensor.shape, *tensor.stride())
        sizes = (size.node.expr if isinstance(size, torch.SymInt) else size for size in layout)
        key = memory_format, *sizes
        if key not in known:
            known[key] = plain(tensor, memory_format=memory_format)
        return known[key]

    with mock.patch.object(shape_prop, _FORMAT_CHECK, cached):
        yield
