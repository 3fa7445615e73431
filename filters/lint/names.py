"""Names of PyTorch, by what they mean to the linter."""

from __future__ import annotations

# Functions of torch that allocate, fill, view, copy or ask: the census of a `pure` row allows what they run.
HARMLESS = frozenset(
    "as_strided as_tensor broadcast_shapes channels_last chunk clone contiguous_format cuda device "
    "diagonal dsplit dtype empty empty_like empty_permuted empty_strided enable_grad finfo flatten full "
    "full_like Generator get_default_dtype get_device_module hsplit iinfo inference_mode is_complex "
    "is_floating_point is_grad_enabled is_tensor manual_seed moveaxis movedim narrow no_grad numel ones "
    "ones_like permute preserve_format promote_types ravel reshape result_type scalar_tensor select "
    "set_grad_enabled Size split split_with_sizes squeeze strided swapaxes swapdims t Tensor tensor "
    "tensor_split transpose unbind unflatten unsqueeze view_as_complex view_as_real vsplit zeros "
    "zeros_like".split()
)
TYPES = frozenset(
    "Buffer Identity Module ModuleDict ModuleList Parameter ParameterDict ParameterList Sequential".split()
)
# Methods of a tensor that compute, by names that no other object has.
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
    "softplus sqrt square std sub subtract sum svd take_along_dim tan tanh tile topk trace tril triu "
    "trunc var where xlogy".split()
)
VIEWING = frozenset(
    "clone contiguous data detach flatten H mH mT permute reshape squeeze T transpose unsqueeze view".split()
)
PRODUCTS = frozenset("addmm baddbmm bilinear bmm einsum linear matmul mm".split())
FAMILIES = (  # names under which one operator of aten is called
    PRODUCTS,
    frozenset("convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split())
    | frozenset("convtranspose1d convtranspose2d convtranspose3d".split()),
)
# Names that other objects have too: they compute on what is known to be a tensor.
COMPUTING_TENSORS = COMPUTING | frozenset(
    "add all any bitwise_and bitwise_not bitwise_or bitwise_xor count_nonzero cross eq float_power ge gt le lt max min "
    "ne neg negative nonzero round sort unique".split()
)
COMPUTING_BUILTINS = frozenset("abs all any divmod max min pow round sorted sum".split())
# Functions of torch that compute and are no methods of a tensor.
FUNCTIONS = COMPUTING | PRODUCTS | frozenset("cat concat concatenate hstack stack vstack tensordot".split())
