"""Alternative names of PyTorch's operators."""

from __future__ import annotations

import re

_AFFIXES = re.compile("^native|[123]d(?=withindices|$)|withindices$")
_FAMILIES = tuple(  # alternative names of one aten operator, normalised
    frozenset(names.split())
    for names in (
        "addmm baddbmm bilinear bmm einsum linear matmul mm",
        "conv convolution convtranspose",
        "batchnorm cudnnbatchnorm instancenorm",
        "adaptiveavgpool mean",
        "cudnnrnn gru lstm mkldnnrnnlayer rnn rnnrelu rnntanh",
        "interpolate upsample upsamplebicubic upsamplebilinear upsamplelinear upsamplenearest",
        "bmm multiheadattention scaleddotproductattention scaleddotproductattentionmath "
        "scaleddotproductcudnnattention scaleddotproductefficientattention scaleddotproductflashattention "
        "scaleddotproductflashattentionforcpu scaleddotproductfusedattention",
    )
)


def same_operator(one: str, other: str) -> bool:
    """True if two names call the same aten operator, such as `linear` and `addmm`, or `Conv2d` and `convolution`."""
    names = {*map(_normalized, (one, other))}
    return len(names) == 1 or any(names <= family for family in _FAMILIES)


def _normalized(name: str) -> str:
    """`batchnorm` for `native_batch_norm` and `BatchNorm2d`, `maxpool` for `max_pool2d_with_indices`."""
    return _AFFIXES.sub("", name.lower().replace("_", ""))
