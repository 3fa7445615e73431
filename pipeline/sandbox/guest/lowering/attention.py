"""Attention as torch's module computes it in eval mode, where it takes a path that no trace takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import uninteresting_files

uninteresting_files().add(__file__)  # see `provenance`


@contextlib.contextmanager
def fused_attention() -> Iterator[None]:
    """Lets `nn.MultiheadAttention` give its result in the layout of its fast path, which is not traced: contiguous,
    where the other is transposed. Both compute the same."""
    slow = nn.MultiheadAttention.forward

    def forward(
        self: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        result, weights = slow(self, query, key, value, *args, **kwargs)
        masks = [mask for mask in (*args, *kwargs.values()) if isinstance(mask, Tensor)]
        fused = query is key is value and query.dim() == 3 and not any(mask.is_floating_point() for mask in masks)
        return (result.contiguous() if fused and _is_plain(self) else result), weights

    with mock.patch.object(nn.MultiheadAttention, "forward", forward):
        yield


def _is_plain(module: nn.MultiheadAttention) -> bool:
    """Whether the module is of the kind that its fast path is for."""
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
