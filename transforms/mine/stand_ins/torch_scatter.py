"""In place of torch_scatter."""

import torch


def broadcast(src, other, dim):
    """`src` with the shape of `other`, its axis at `dim`."""
    dim = dim + other.dim() if dim < 0 else dim
    if src.dim() == 1:
        src = src.view([1] * dim + [-1])
    return src.view(*src.shape, *[1] * (other.dim() - src.dim())).expand(other.shape)


def scatter_sum(src, index, dim=-1, out=None, dim_size=None):
    """The sum of the elements with each index."""
    index = broadcast(index, src, dim)
    if out is None:
        size = list(src.shape)
        size[dim] = dim_size if dim_size is not None else int(index.max()) + 1
        out = src.new_zeros(size)
    return out.scatter_add_(dim, index, src)


scatter_add = scatter_sum


def scatter_mean(src, index, dim=-1, out=None, dim_size=None):
    """The mean of the elements with each index; 0 for no element."""
    total = scatter_sum(src, index, dim, out, dim_size)
    return total / scatter_sum(torch.ones_like(src), index, dim, None, total.shape[dim]).clamp(min=1)


def scatter(src, index, dim=-1, out=None, dim_size=None, reduce="sum"):
    """The sum, mean, product, minimum or maximum of the elements with each index; 0 for no element."""
    if reduce in ("sum", "add"):
        return scatter_sum(src, index, dim, out, dim_size)
    if reduce == "mean":
        return scatter_mean(src, index, dim, out, dim_size)
    index = broadcast(index, src, dim)
    size = list(src.shape)
    size[dim] = dim_size if dim_size is not None else int(index.max()) + 1
    kind = {"mul": "prod", "min": "amin", "max": "amax"}[reduce]
    return src.new_zeros(size).scatter_reduce(dim, index, src, kind, include_self=False)


def scatter_softmax(src, index, dim=-1, dim_size=None):
    """The softmax of the elements with each index."""
    largest = scatter(src, index, dim, None, dim_size, "max")
    index = broadcast(index, src, dim)
    powers = (src - largest.gather(dim, index)).exp()
    return powers / scatter_sum(powers, index, dim, None, largest.shape[dim]).gather(dim, index)
