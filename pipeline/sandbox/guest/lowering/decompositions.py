"""Operators as others: Inductor's decompositions, and our own where a shorter graph says the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch._inductor.decomposition import select_decomp_table

from .convolution import convolution_backward

aten = torch.ops.aten


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Operator -> what it is made of."""
    table = {
        **select_decomp_table(),
        **get_decompositions([aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input]),
        aten.addmm.default: _addmm,
        aten.convolution_backward.default: convolution_backward,
        aten.baddbmm.default: _baddbmm,
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
        aten.topk.default: _topk,
        aten._scaled_dot_product_flash_attention_for_cpu.default: _flash_attention,
        aten.hardtanh.default: lambda x, low=-1.0, high=1.0: aten.clamp.default(x, low, high),
    }
    for covered in (aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default):
        table.pop(covered, None)  # Inductor lowers these as they are
    return table


def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    shape = [1, -1] + [1] * (x.dim() - 2)
    scale = aten.rsqrt(variance + eps)
    if weight is not None:
        scale = scale * weight
    result = (x - mean.view(shape)) * scale.view(shape)
    return result if bias is None else result + bias.view(shape), x.new_empty(0), x.new_empty(0)


def _topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    values, indices = aten.sort.default(x, dim, largest)
    return values.narrow(dim, 0, k).clone(), indices.narrow(dim, 0, k).clone()


def _flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """What a module that asks for the fused kernel gets; the second result only serves a backward pass."""
    result, _ = aten._scaled_dot_product_attention_math.default(q, k, v, attn_mask, dropout, is_causal, scale=scale)
    return result, q.new_empty(0)


def _addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = aten.mm(a, b)
    return (product if alpha == 1 else product * alpha) + (bias if beta == 1 else bias * beta)


def _baddbmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = aten.bmm(a, b)
    return (product if alpha == 1 else product * alpha) + (bias if beta == 1 else bias * beta)
