"""The table of calls of PyTorch that can be written, which the other files of this folder fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

if TYPE_CHECKING:
    from ..write_call import Writer

Handler = Callable[["Writer", Node], str]
# A call -> the function that writes it. Operators have their kind in front: `infix:+`.
TABLE: dict[str, Handler] = {}


class NotWritten(Exception):
    """No function of the library computes what a module calls."""


class Given(dict[str, Any]):
    """Arguments of a call by name. Those that nobody has read change what the call computes, so it is not written."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.unread = set(arguments) - _UNNEEDED

    def __getitem__(self, name: str) -> Any:
        self.unread.discard(name)
        if name not in self:
            raise NotWritten(f"a call without {name}")
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.unread.discard(name)
        return super().get(name, default)


# Arguments that change nothing in eval mode, or nothing but the dtype or layout, which a node has.
_UNNEEDED = frozenset("momentum _stacklevel memory_format non_blocking copy p need_weights dtype requires_grad".split())
# Names of parameters in PyTorch -> those of `_PARAMETERS`.
RENAMED = {
    "input": "x", "self": "x", "tensors": "x", "tensor": "x", "query": "x", "operands": "x", "x1": "x", "x2": "other",
    "mat2": "other", "vec2": "other", "exponent": "other", "axis": "dim", "keepdims": "keepdim", "size": "sizes",
    "dims": "sizes", "fill_value": "value", "data": "value", "upscale_factor": "factor", "downscale_factor": "factor",
    "src": "source", "dimension": "dim",
}  # fmt: skip
# Parameters of functions and methods, by position; `*` takes the rest. Others have two tensors at most.
_PARAMETERS = {
    name: parameters.split()
    for names, parameters in {
        "repeat flip tile": "x *sizes",
        "sum mean amax amin prod std var logsumexp max min argmax argmin": "x dim keepdim",
        "softmax log_softmax": "x dim _stacklevel dtype",
        "cumsum": "x dim",
        "norm": "x p dim keepdim",
        "linalg_vector_norm linalg_norm": "x ord dim keepdim",
        "normalize": "x p dim eps",
        "clamp clip": "x min max",
        "clamp_min": "x min",
        "clamp_max": "x max",
        "where": "condition x other",
        "masked_fill": "x mask value",
        "lerp": "x end weight",
        "addcmul addcdiv": "x tensor1 tensor2 value",
        "cat concat concatenate stack": "x dim",
        "pad": "x pad mode value",
        "linear": "x weight bias",
        "conv1d conv2d conv3d": "x weight bias stride padding dilation groups",
        "conv_transpose1d conv_transpose2d": "x weight bias stride padding output_padding groups dilation",
        "batch_norm": "x running_mean running_var weight bias training momentum eps",
        "layer_norm": "x normalized_shape weight bias eps",
        "rms_norm": "x normalized_shape weight eps",
        "group_norm": "x num_groups weight bias eps",
        "instance_norm": "x running_mean running_var weight bias use_input_stats momentum eps",
        "leaky_relu": "x negative_slope",
        "elu celu": "x alpha",
        "hardtanh": "x min_val max_val",
        "softplus": "x beta threshold",
        "softshrink hardshrink": "x lambd",
        "threshold _threshold": "x threshold value",
        "gelu": "x approximate",
        "glu": "x dim",
        "prelu": "x weight",
        "max_pool1d max_pool2d": "x kernel_size stride padding dilation ceil_mode return_indices",
        "avg_pool1d avg_pool2d": "x kernel_size stride padding ceil_mode count_include_pad divisor_override",
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d": "x output_size",
        "interpolate": "x size scale_factor mode align_corners recompute_scale_factor antialias",
        "pixel_shuffle pixel_unshuffle": "x factor",
        "embedding": "x weight",
        "index_select": "x dim index",
        "gather": "x dim index",
        "scatter": "x dim index source",
        "one_hot": "x num_classes",
        "topk": "x k dim largest sorted",
        "sort": "x dim descending",
        "argsort": "x dim descending",
        "meshgrid": "*x",
        "eye": "n m",
        "unfold": "x dim size step",
        "einsum": "equation *x",
        "scaled_dot_product_attention": "x key value attn_mask dropout_p is_causal scale enable_gqa",
        "arange": "start end step",
        "linspace": "start end steps",
        "tril triu": "x diagonal",
        "roll": "x shifts dims",
        "repeat_interleave": "x repeats dim",
        "mse_loss l1_loss binary_cross_entropy_with_logits": "x target",
        "cosine_similarity": "x other dim eps",
        "to": "x dtype",
        "type": "x dtype",
        "grid_sample": "x grid mode padding_mode align_corners",
        "baddbmm addmm": "x batch1 batch2",
        "_weight_norm": "x g dim",
        "tensor as_tensor": "value",
    }.items()
    for name in names.split()
}
_TWO = ["x", "other"]


def parameters_of(node: Node) -> list[str]:
    return _PARAMETERS.get(node.operator, _TWO)


def on(*calls: str) -> Callable[[Handler], Handler]:
    """Enter a handler for these calls."""

    def enter(handler: Handler) -> Handler:
        TABLE.update(dict.fromkeys(calls, handler))
        return handler

    return enter


def setting(w: Writer, node: Node, name: str, default: Any) -> Any:
    """An argument that is a constant."""
    return w.constant(w.given(node).get(name), default)


def repeated(value: Any, n: int) -> tuple[Any, ...]:
    """A setting for each of `n` axes."""
    found = tuple(value) if isinstance(value, tuple | list) else (value,)
    return found * n if len(found) == 1 and n > 1 else found
