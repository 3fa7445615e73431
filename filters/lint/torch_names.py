"""PyTorch's functions, layers and methods, by whether they compute."""

from __future__ import annotations

import re

# Functions of torch that allocate, fill, view, copy or query. The operator census of a `pure` row allows them.
HARMLESS = frozenset(
    "as_strided as_tensor atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors "
    "broadcast_to can_cast channels_last chunk clone contiguous_format cuda device diagonal dsplit dtype empty "
    "empty_like empty_permuted empty_strided enable_grad finfo flatten full full_like Generator "
    "get_default_dtype get_device get_device_module hsplit iinfo inference_mode is_complex is_floating_point "
    "is_grad_enabled is_tensor manual_seed moveaxis movedim narrow no_grad numel ones ones_like permute "
    "preserve_format promote_types ravel reshape result_type scalar_tensor select set_grad_enabled Size "
    "split split_with_sizes squeeze strided swapaxes swapdims t tensor Tensor tensor_split transpose "
    "unbind unflatten unsqueeze view_as_complex view_as_real vsplit zeros zeros_like".split()
)
TYPES = frozenset(
    "AlphaDropout Buffer Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout Flatten Identity Module ModuleDict "
    "ModuleList Parameter ParameterDict ParameterList Sequential Unflatten".split()
)
# Tensor methods that compute, with names that no other object has.
COMPUTING = frozenset(
    "abs acos acosh addbmm addcdiv addcmul addmm addmv addr all_close allclose amax amin aminmax angle "
    "argmax argmin argsort asin asinh atan atan2 atanh baddbmm bmm bucketize ceil cholesky clamp "
    "clamp_max clamp_min copysign corrcoef cos cosh cov cummax cummin cumprod cumsum deg2rad det diff "
    "digamma dist div divide dot erf erfc erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod frac "
    "gather geqrf ger histc hypot index_add index_copy index_select inner inverse isclose kthvalue ldexp "
    "lerp lgamma log10 log1p log2 log_softmax logaddexp logcumsumexp logdet logical_and logical_not "
    "logical_or logical_xor logsumexp masked_fill masked_scatter masked_select matmul matrix_exp "
    "matrix_power maximum mean median minimum mish mm msort mul multiply mv nan_to_num nanmean nanmedian "
    "nansum nextafter norm outer pinverse polygamma pow prelu quantile rad2deg reciprocal relu remainder "
    "renorm roll rot90 rsqrt scatter scatter_add scatter_reduce selu sigmoid sign silu sinc sinh softmax "
    "sin softplus sqrt square std sub subtract sum svd take_along_dim tan tanh tile topk trace tril triu "
    "trunc var where xlogy".split()
)
VIEWING = frozenset(
    "clone contiguous data detach flatten H mH mT permute reshape squeeze T transpose unsqueeze view".split()
)
PRODUCTS = frozenset("addmm baddbmm bilinear bmm einsum linear matmul mm".split())
_AFFIXES = re.compile("^native|[123]d(?=withindices|$)|withindices$")
FAMILIES = (  # alternative names of one aten operator
    PRODUCTS,
    frozenset("convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split())
    | frozenset("convtranspose1d convtranspose2d convtranspose3d".split()),
    frozenset("batch_norm cudnn_batch_norm instance_norm".split()),
    frozenset("adaptive_avg_pool mean".split()),
    frozenset("cudnn_rnn gru lstm mkldnn_rnn_layer rnn rnn_relu rnn_tanh".split()),
    frozenset("interpolate upsample upsample_bicubic upsample_bilinear upsample_linear upsample_nearest".split()),
    frozenset("bmm scaled_dot_product_attention multi_head_attention".split())
    | frozenset(f"scaled_dot_product_{kind}_attention" for kind in ("cudnn", "efficient", "flash", "fused"))
    | frozenset(("scaled_dot_product_attention_math", "scaled_dot_product_flash_attention_for_cpu")),
)
# With methods whose names other objects have too: they count only on a known tensor.
COMPUTING_TENSORS = COMPUTING | frozenset(
    "add all any bitwise_and bitwise_not bitwise_or bitwise_xor count_nonzero cross eq float_power ge gt le lt max min "
    "ne neg negative nonzero round sort unique".split()
)
COMPUTING_BUILTINS = frozenset("abs all any divmod max min pow round sorted sum".split())
# With functions of torch that compute and are not tensor methods.
FUNCTIONS = COMPUTING | PRODUCTS | frozenset("cat concat concatenate hstack stack vstack tensordot".split())
_COMPUTING_MODULES = (
    "torch.linalg.",
    "torch.special.",
    "torch.fft.",
    "torch.sparse.",
    "torch.masked.",
    "torch.nested.",
)


def same_operator(one: str, other: str) -> bool:
    """True if two names call the same aten operator, such as `linear` and `addmm`, or `Conv2d` and `convolution`."""
    one, other = map(_normalized, (one, other))
    return one == other or any({one, other} <= {*map(_normalized, family)} for family in FAMILIES)


def _normalized(name: str) -> str:
    """`batchnorm` for `native_batch_norm` and `BatchNorm2d`, `maxpool` for `max_pool2d_with_indices`."""
    return _AFFIXES.sub("", name.lower().replace("_", ""))


def is_compute(path: str, in_function: bool = True) -> bool:
    """True if a call of this function or class of torch computes.

    Args:
        in_function: False at the top of a file, where constructing a layer does no work.
    """
    name = path.rsplit(".", 1)[-1]
    if path.startswith("torch.nn.") and name[:1].isupper():
        return in_function and name not in TYPES
    if path.startswith("torch.Tensor."):
        return name.removesuffix("_") in COMPUTING_TENSORS or name.startswith("__")
    if path.startswith(_COMPUTING_MODULES) or (path.startswith("torch.nn.") and name == "forward"):
        return True
    function = path.startswith("torch.nn.functional.") or (
        path.startswith("torch.") and path.count(".") == 1 and name not in HARMLESS
    )
    return function and name[:1].islower()


def is_function(path: str) -> bool:
    """True if an imported path is a computing function of torch whose name is unambiguous."""
    name = path.rsplit(".", 1)[-1]
    if path == "torch.nn.functional." + name:
        return name[:1].islower()
    return path in ("torch." + name, "torch.Tensor." + name) and name in FUNCTIONS | COMPUTING_TENSORS
