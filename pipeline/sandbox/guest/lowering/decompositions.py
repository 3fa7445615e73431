"""Decompose operators: Inductor's decompositions, and our own where they give a shorter graph."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.overrides import TorchFunctionMode

from .convolution import convolution_backward

aten = torch.ops.aten

Decomposition = Callable[..., Any]


@functools.cache
def decompositions() -> dict[Any, Decomposition]:
    """Operator -> its decomposition."""
    inductors = select_decomp_table()
    table = {
        **inductors,
        **get_decompositions([aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input]),
        aten.cat.default: _concatenated(inductors[aten.cat.default]),
        aten.addmm.default: _with_bias(aten.mm),
        aten.mm.default: _narrow(inductors[aten.mm.default]),
        aten.bmm.default: _narrow(inductors[aten.bmm.default]),
        aten._cdist_forward.default: _distances,
        aten._trilinear.default: _trilinear,
        aten.convolution_backward.default: convolution_backward,
        aten.baddbmm.default: _with_bias(aten.bmm),
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
        aten.topk.default: _topk,
        aten._scaled_dot_product_flash_attention_for_cpu.default: _flash_attention,
        # Inductor evaluates operators on fake tensors again, which this one does not allow without a GPU.
        aten.logical_not.default: lambda x: (
            aten.bitwise_not.default(x) if x.dtype == torch.bool else aten.eq.Scalar(x, 0)
        ),
        aten.mul.Tensor: _product,
        aten.hardtanh.default: lambda x, low=-1.0, high=1.0: aten.clamp.default(x, low, high),
    }
    for lowered in (aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default):
        table.pop(lowered, None)  # Inductor has lowerings for these
    return table


@contextlib.contextmanager
def pools_of_any_size() -> Iterator[None]:
    """Pool over a window of symbolic size that is all of the input, `F.avg_pool2d(x, x.shape[2:])`, by a reduction.

    torch's pooling operators would replace the symbol by its number.
    """
    functional = torch.nn.functional
    with contextlib.ExitStack() as stack:
        for kind, reduce in (("avg", Tensor.mean), ("max", Tensor.amax)):
            for rank in (1, 2, 3):
                name = f"{kind}_pool{rank}d"
                patched = _or_reduction(getattr(functional, name), reduce, rank)
                stack.enter_context(mock.patch.object(functional, name, patched))
        yield


def _or_reduction(pool: Callable[..., Any], reduce: Callable[..., Tensor], rank: int) -> Callable[..., Any]:
    def pooled(input: Tensor, kernel_size: Any, *args: Any, **kwargs: Any) -> Any:
        is_plain = len(args) <= 1 and kwargs.keys() <= {"stride"}
        if is_plain and _is_all(input, kernel_size, rank):
            return reduce(input, list(range(-rank, 0)), keepdim=True)
        return pool(input, kernel_size, *args, **kwargs)

    return pooled


def _is_all(x: Tensor, kernel_size: Any, rank: int) -> bool:
    """True if the window has a symbolic size and covers the input."""
    kernel = list(kernel_size) if isinstance(kernel_size, Sequence) else [kernel_size] * rank
    same = [statically_known_true(size == whole) for size, whole in zip(kernel, x.shape[-rank:], strict=False)]
    return any(isinstance(size, torch.SymInt) for size in kernel) and same == [True] * rank


class PlainFunctions(TorchFunctionMode):
    """Decompose functions whose operator loses information about the arguments."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        functional = torch.nn.functional
        decompositions: dict[Any, Decomposition] = {functional.embedding_bag: _bags, functional.one_hot: _one_hot}
        decomposition = decompositions.get(func)
        if decomposition is not None and (result := decomposition(*args, **(kwargs or {}))) is not None:
            return result
        return func(*args, **(kwargs or {}))


def _one_hot(tensor: Tensor, num_classes: Any = -1) -> Tensor | None:
    """`F.one_hot` for a symbolic number of classes, which the operator would fix; None for a plain number."""
    if not isinstance(num_classes, torch.SymInt):
        return None
    classes: Any = num_classes  # torch's type stubs only allow numbers
    return (tensor.unsqueeze(-1) == torch.arange(classes, device=tensor.device)).to(torch.int64)


def _bags(
    indices: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor | None:
    """`F.embedding_bag` for bags of one size, `(bags, size)`; None for other calls."""
    if indices.dim() != 2 or max_norm is not None or padding_idx is not None:
        return None
    rows = torch.nn.functional.embedding(indices, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    return rows.amax(1) if mode == "max" else rows.sum(1) if mode == "sum" else rows.mean(1)


def _concatenated(decomposition: Decomposition) -> Decomposition:
    """Make the concatenation of one tensor contiguous, as it is for several."""

    def concatenated(tensors: Sequence[Tensor], dim: int = 0) -> Any:
        if len(tensors) == 1:
            return tensors[0].clone(memory_format=torch.contiguous_format)
        return decomposition(tensors, dim)

    return concatenated


def _narrow(decomposition: Decomposition) -> Decomposition:
    """Compute a product with a vector as a sum, since Inductor would call a library for the product."""

    def product(a: Tensor, b: Tensor) -> Any:
        if (result := decomposition(a, b)) is not NotImplemented:
            return result
        if all(size != 1 for size in (a.shape[-2], a.shape[-1], b.shape[-1])):
            return NotImplemented
        half = a.dtype in (torch.float16, torch.bfloat16)  # sum in float32
        terms = (a.to(torch.float32) if half else a).unsqueeze(-1) * b.unsqueeze(-3)
        return terms.sum(-2).to(a.dtype)

    return product


def _product(a: Any, b: Any) -> Any:
    """Multiply complex numbers by their parts, for which Inductor has kernels."""
    tensors = [value for value in (a, b) if isinstance(value, Tensor)]
    if len(tensors) < 2 or not any(map(Tensor.is_complex, tensors)) or any(map(Tensor.is_conj, tensors)):
        return NotImplemented
    (a_real, a_imag), (b_real, b_imag) = map(_parts, tensors)
    parts = [a_real * b_real - a_imag * b_imag, a_real * b_imag + a_imag * b_real]
    return torch.view_as_complex(torch.stack(parts, -1))


def _parts(x: Tensor) -> Sequence[Tensor]:
    """The real and the imaginary part. A real number has zeros, by which torch multiplies infinities too."""
    return torch.view_as_real(x).unbind(-1) if x.is_complex() else (x, torch.zeros_like(x))


def _distances(a: Tensor, b: Tensor, p: float, mode: int | None) -> Tensor:
    """The distance of each row of `a` to each row of `b`."""
    return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)


def _trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    summed: Sequence[int],
    unrolled: int = 1,
) -> Tensor:
    """The product of three tensors with new dimensions, summed over some dimensions.

    Dimensions without `c` are summed first, in torch's order, which matters where a product overflows.
    """
    a, b, c = (functools.reduce(Tensor.unsqueeze, dims, x) for x, dims in ((a, expand_a), (b, expand_b), (c, expand_c)))
    first = [dim for dim in summed if dim in expand_c]
    product = (a * b).sum(first, keepdim=True) if first else a * b
    return (product * c).sum(list(summed))


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
    """Attention for a module that selects the fused kernel; the second result only serves a backward pass."""
    result, _ = aten._scaled_dot_product_attention_math.default(q, k, v, attn_mask, dropout, is_causal, scale=scale)
    return result, q.new_empty(0)


def _with_bias(matmul: Callable[..., Tensor]) -> Decomposition:
    def product(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        result = matmul(a, b) if alpha == 1 else matmul(a, b) * alpha
        if beta == 0:  # the bias is ignored, and may be `torch.empty`
            return result
        return result + (bias if beta == 1 else bias * beta)

    return product
