"""The language as data: the constructs and names that a candidate may be written with, and advice on others.

The checker, its messages, the documentation page and the prompts are all made from these tables.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

Names = frozenset[str]


def _names(text: str) -> Names:
    return frozenset(text.split())


def _of(module: str, text: str) -> Names:
    return frozenset(f"{module}.{name}" for name in text.split())


@dataclass(frozen=True, slots=True)
class Group:
    """Names that a candidate may use, and what they are."""

    title: str
    names: Names


IMPORTS = Group(
    "modules to import from",
    _names(
        "__future__ abc collections collections.abc contextlib copy dataclasses enum functools itertools logging math "
        "numbers operator random time typing warnings torch torch.amp torch.autograd torch.autograd.function "
        "torch.cuda.amp torch.nn torch.nn.functional torch.nn.init torch.nn.parameter triton triton.language "
        "triton.language.math triton.language.extra "
        "triton.language.extra.cuda triton.language.extra.cuda.libdevice triton.language.extra.libdevice "
        "triton.tools.tensor_descriptor"
    ),
)

# Statements and expressions of the host code: the node and its name.
STATEMENTS: Mapping[type[ast.AST], str] = {
    ast.Assign: "assignment to names",
    ast.AugAssign: "assignment with an operator",
    ast.AnnAssign: "assignment with an annotation",
    ast.If: "if",
    ast.For: "for",
    ast.While: "while",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.Return: "return",
    ast.Assert: "assert",
    ast.Raise: "raise of a built-in exception",
    ast.With: "with, on the listed contexts",
    ast.Pass: "pass",
    ast.Delete: "del of variables",
    ast.Expr: "a call, such as a launch",
    ast.FunctionDef: "a nested function",
}
EXPRESSIONS: Mapping[type[ast.AST], str] = {
    ast.Constant: "constant",
    ast.Name: "name",
    ast.Tuple: "tuple",
    ast.List: "list",
    ast.Dict: "dict",
    ast.Set: "set, used behind `in` alone",
    ast.BinOp: "arithmetic",
    ast.UnaryOp: "sign, not",
    ast.BoolOp: "and, or",
    ast.Compare: "comparison",
    ast.IfExp: "conditional expression",
    ast.Call: "call",
    ast.Attribute: "attribute",
    ast.Subscript: "index",
    ast.Slice: "slice",
    ast.Starred: "unpacking with a star",
    ast.Lambda: "lambda",
    ast.ListComp: "list comprehension",
    ast.DictComp: "dict comprehension",
    ast.GeneratorExp: "generator expression that is consumed at once",
    ast.JoinedStr: "f-string, in a message, a constructor, or `getattr(layer, f'weight_{n}')`",
    ast.FormattedValue: "value in an f-string",
}
KERNEL_STATEMENTS = STATEMENTS.keys() - {ast.Raise, ast.With, ast.FunctionDef, ast.Delete}
KERNEL_EXPRESSIONS = EXPRESSIONS.keys() - {ast.Dict, ast.Set, ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp}
# Constructs outside of the language: their names, and what to write instead.
ADVICE: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("try", "test the condition before, and raise"),
    ast.Global: ("global", "pass the value as an argument"),
    ast.Nonlocal: ("nonlocal", "return the value"),
    ast.Match: ("match", "write if and elif"),
    ast.Yield: ("yield", "return a list"),
    ast.YieldFrom: ("yield from", "return a list"),
    ast.AsyncFunctionDef: ("async def", "write def"),
    ast.Await: ("await", "call the function"),
    ast.SetComp: ("a set", "write a list comprehension"),
    ast.NamedExpr: (":=", "assign before the expression"),
    ast.ClassDef: ("a class in a function", "define it at the top of the file"),
    ast.Import: ("an import in a function", "import at the top of the file"),
    ast.ImportFrom: ("an import in a function", "import at the top of the file"),
}

MATH = Group("numbers", _names("math.* triton.cdiv triton.next_power_of_2"))
BUILTINS = Group(
    "built-in functions",
    _names(
        "abs all any bool dict divmod enumerate float int isinstance len list map max min pow range reversed round "
        "slice sorted str sum super tuple zip"
    ),
)
TYPES = Group("types for `isinstance`", _names("bool dict float int list str tuple torch.Tensor"))
PARAMETERS = ("bias", "weight")  # beginnings of names of parameters that a text may give
ALLOCATION = Group(
    "allocation",
    _of("torch", "empty empty_like empty_permuted empty_strided full full_like ones ones_like zeros zeros_like"),
)
VIEWS = Group(
    "views and metadata of tensors",
    _of(
        "torch",
        "as_strided atleast_1d atleast_2d broadcast_shapes broadcast_tensors broadcast_to can_cast chunk clone "
        "diagonal finfo flatten iinfo is_complex is_floating_point is_tensor moveaxis movedim narrow numel "
        "permute promote_types ravel reshape result_type select split squeeze swapaxes t tensor_split transpose "
        "unbind unflatten unsqueeze view_as_complex view_as_real",
    ),
)
VALUES = Group(
    "constants and types",
    _of(
        "torch",
        "FloatTensor LongTensor Size Tensor bfloat16 bool channels_last channels_last_3d complex128 complex64 "
        "contiguous_format device double dtype e float float16 float32 float64 float8_e4m3fn float8_e5m2 half inf "
        "int int16 int32 int64 int8 long nan pi preserve_format short strided uint16 uint32 uint64 uint8 version.hip",
    )
    | _of(
        "triton.language",
        "PropagateNan bfloat16 constexpr dtype float16 float32 float64 float8e4nv float8e5 int1 int16 int32 int64 "
        "int8 uint16 uint32 uint64 uint8",
    )
    | _of("typing", "Any Callable Dict List Literal Optional Sequence Tuple TypeVar Union"),
)
DTYPES = _of(
    "torch",
    "bfloat16 bool complex128 complex64 double float float16 float32 float64 float8_e4m3fn float8_e5m2 half int int16 "
    "int32 int64 int8 long short uint16 uint32 uint64 uint8",
)
TRITON = Group(
    "Triton",
    _names(
        "triton.Config triton.set_allocator "
        "triton.runtime.driver.active.get_active_torch_device triton.runtime.driver.active.get_current_target "
        "triton.tools.tensor_descriptor.TensorDescriptor triton.tools.tensor_descriptor.TensorDescriptor.from_tensor"
    ),
)
GPU = Group(
    "the GPU",
    _of(
        "torch.cuda",
        "current_device empty_cache get_device_properties is_available is_bf16_supported set_device synchronize",
    ),
)
# Contexts that do nothing until `with` enters them, so that a variable may hold them.
CONTEXT_VALUES = Group(
    "contexts as values",
    _of("torch", "cuda.device cuda.device_of enable_grad inference_mode no_grad") | {"contextlib.nullcontext"},
)
KERNEL_DECORATORS = frozenset(("triton.jit", "triton.autotune", "triton.heuristics"))
CONTEXTS = Group(
    "contexts and decorators",
    _names("staticmethod classmethod property dataclasses.dataclass torch.autograd.function.once_differentiable")
    | CONTEXT_VALUES.names
    | _of(
        "torch",
        "compiler.disable set_grad_enabled amp.custom_fwd amp.custom_bwd cuda.amp.custom_fwd cuda.amp.custom_bwd",
    ),
)
CACHES = Group("caches of functions that compute no tensors", _of("functools", "cache lru_cache"))
LOGGER = "logging.getLogger"  # makes a constant of the file
LOG_METHODS = _names("critical debug error exception info warning")
WRITERS = _of("logging", " ".join(LOG_METHODS)) | {"warnings.warn"}
TOOLS = Group(
    "tools of the standard library",
    _names(
        "dataclasses.field functools.partial functools.reduce itertools.accumulate itertools.chain "
        "itertools.product itertools.repeat itertools.zip_longest operator.add operator.floordiv operator.mod "
        "operator.mul operator.sub"
    ),
)
BASES = Group(
    "base classes",
    _names("torch.nn.Module typing.NamedTuple torch.autograd.Function torch.autograd.function.Function"),
)
# Layers that a class may derive from. Lazy ones are none of them: in a call, they run a hook and change their class.
LAYERS = Group(
    "layers to derive from, or for `isinstance`",
    _of(
        "torch.nn",
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool1d "
        "AvgPool2d AvgPool3d BCEWithLogitsLoss BatchNorm1d BatchNorm2d BatchNorm3d CELU ConstantPad1d ConstantPad2d "
        "ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineSimilarity "
        "CrossEntropyLoss Dropout Dropout2d ELU Embedding Flatten GELU GLU GroupNorm Hardshrink Hardsigmoid "
        "Hardswish Hardtanh HuberLoss Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d L1Loss LayerNorm "
        "LeakyReLU Linear LogSigmoid LogSoftmax MSELoss MaxPool1d MaxPool2d MaxPool3d Mish ModuleDict ModuleList "
        "MultiheadAttention NLLLoss PReLU PixelShuffle PixelUnshuffle RMSNorm ReLU ReLU6 ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU Sequential SiLU "
        "Sigmoid SmoothL1Loss Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold "
        "Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d",
    ),
)
# What a row with operators of its own may use, in torch and as methods; other rows compute in kernels alone.
OPERATORS = Group(
    "operators of PyTorch",
    _names(
        "abs acos acosh add addbmm addcdiv addcmul addmm addmv addr all all_close allclose amax amin aminmax angle "
        "any argmax argmin argsort asin asinh atan atan2 atanh baddbmm bilinear bitwise_and bitwise_not bitwise_or "
        "bitwise_xor bmm bucketize cat ceil cholesky clamp clamp_max clamp_min concat concatenate copysign corrcoef "
        "cos cosh count_nonzero cov cross cummax cummin cumprod cumsum deg2rad det diff digamma dist div divide dot "
        "einsum eq erf erfc erfinv exp exp2 expm1 flip float_power floor floor_divide fmax fmin fmod frac gather ge "
        "geqrf ger gt histc hstack hypot index_add index_copy index_select inner inverse isclose isfinite isinf isnan "
        "kthvalue ldexp le lerp lgamma linear log log10 log1p log2 log_softmax logaddexp logcumsumexp logdet "
        "logical_and logical_not logical_or logical_xor logsumexp lt masked_fill masked_scatter masked_select matmul "
        "matrix_exp matrix_power max maximum mean median min minimum mish mm msort mul multiply mv nan_to_num nanmean "
        "nanmedian nansum ne neg negative nextafter nonzero norm outer pinverse polygamma pow prelu quantile rad2deg "
        "reciprocal relu remainder renorm roll rot90 round rsqrt scatter scatter_add scatter_reduce selu sigmoid sign "
        "silu sin sinc sinh softmax softplus sort sqrt square stack std sub subtract sum svd take_along_dim tan tanh "
        "tensordot tile topk trace tril triu trunc unique var vstack where xlogy"
    ),
)
NO_OPERATORS = _names("boolean_dispatch handle_torch_function importlib math sys torch utils warnings")  # in functional
METHODS = Group("operators that only tensors have", _names("masked_fill repeat repeat_interleave roll unfold"))
# In a constructor, which may compute its weights and tables.
CONSTRUCTOR = Group(  # with layers, parameters, and the functions of torch.nn.init
    "in a constructor",
    _of(
        "torch",
        "Generator arange as_tensor bernoulli complex eye hann_window hamming_window linspace logspace manual_seed "
        "meshgrid multinomial normal polar rand randint randn randperm repeat_interleave tensor",
    )
    | _of("numbers", "Integral Number Real")
    | _of("collections.abc", "Iterable Sequence"),
)
EXCEPTIONS = Group(
    "exceptions to raise",
    _names("AssertionError Exception IndexError KeyError NotImplementedError RuntimeError TypeError ValueError"),
)
# Callables and values, in all host code. The last are among `CONTEXTS` in the documentation.
GROUPS = (MATH, ALLOCATION, VIEWS, VALUES, TRITON, GPU, TOOLS, CONTEXT_VALUES)


def is_listed(path: str) -> bool:
    """True for the path of a callable or value that all host code may use, operators of PyTorch included."""
    head, _, last = path.rpartition(".")
    operator = head == "torch" and last.removesuffix("_") in OPERATORS.names | METHODS.names
    functional = head == "torch.nn.functional" and last[:1].islower() and last not in NO_OPERATORS
    return operator or functional or any(path in group.names or f"{head}.*" in group.names for group in GROUPS)


def is_tensor_attribute(name: str) -> bool:
    """True for an attribute or a method of tensors that all host code may use, operators of PyTorch included."""
    return name in TENSOR_ATTRIBUTES.names or name.removesuffix("_") in OPERATORS.names | METHODS.names


TENSOR_ATTRIBUTES = Group(
    "attributes and methods of tensors",
    _names(
        "T as_strided bfloat16 bool chunk clone contiguous copy_ cuda data detach device diagonal dim double dtype "
        "element_size expand expand_as fill_ flatten float get_device half imag int is_complex is_contiguous is_cpu "
        "is_cuda is_floating_point itemsize layout long mT moveaxis movedim narrow nbytes ndim ndimension nelement "
        "new_empty new_empty_strided new_full new_ones new_zeros numel permute ravel real reshape "
        "reshape_as select shape size split split_with_sizes squeeze stride swapaxes swapdims t to transpose type "
        "unbind unflatten unsqueeze view view_as zero_"
    ),
)
OTHER_ATTRIBUTES = Group(
    "attributes of other values",
    _names(
        "append apply base bit_length bits block_shape copy count end endswith eps extend get index insert is_signed "
        "items join keys kwargs lower max min num_ctas num_stages num_warps pop replace reverse save_for_backward "
        "saved_tensors mark_dirty mark_non_differentiable needs_input_grad set_materialize_grads sort start "
        "startswith step strides tiny training update upper values _asdict _replace"
    ),
)
LAYER_ATTRIBUTES = Group(
    "attributes of layers",
    _names(
        "weight bias in_features out_features in_channels out_channels kernel_size stride padding dilation groups "
        "output_padding padding_mode eps momentum affine track_running_stats running_mean running_var "
        "num_batches_tracked num_features normalized_shape elementwise_affine num_groups num_channels num_embeddings "
        "embedding_dim padding_idx output_size negative_slope alpha inplace dim p num_heads embed_dim head_dim "
        "in_proj_weight in_proj_bias out_proj scale_factor mode align_corners upscale_factor downscale_factor "
        "ceil_mode count_include_pad divisor_override get_submodule return_indices hidden_size input_size num_layers "
        "weight_ih weight_hh bias_ih bias_hh weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 threshold value beta "
        "lambd num_parameters approximate reduction min_val max_val size margin norm_type bidirectional batch_first "
        "all_weights"
    ),
)
CONSTRUCTOR_ATTRIBUTES = Group(
    "attributes in a constructor",
    _names(
        "add_module apply buffers modules named_modules named_parameters parameters register_buffer register_parameter "
        "eval item tolist normal_ uniform_ requires_grad_"
    ),
)
GPU_ATTRIBUTES = _names("multi_processor_count backend")  # of what `GPU` and `TRITON` return
# Attributes of kernels that code could look into. A constructor may set them on its module, whose `forward` reads them.
OF_KERNELS = _names("cache configs fn kernel metadata params run signature src version")
# Names that no class may give to an attribute: those of tensors, frames and compiled code that code could look into.
OF_OTHERS = _names(
    "apply_ arg_names asm backward bernoulli_ best_config cache_key constexprs cpu cr_frame data_ptr device_caches "
    "do_bench eval exponential_ f_back f_globals forward gi_code gi_frame grad grad_fn handle is_inference is_leaf "
    "is_pinned is_set_to is_shared item map_ nargs normal_ numpy output_nr pin_memory pre_run_hooks random_ raw_src "
    "record_stream register_forward_hook register_forward_pre_hook register_full_backward_hook register_hook "
    "requires_grad resize_ retain_grad retains_grad set_ share_memory_ state_dict storage storage_offset tb_frame "
    "tolist train uniform_ untyped_storage warmup zero_grad"
)
TAKEN = OF_KERNELS | OF_OTHERS  # which no class may give to a member
# Members of torch.nn.Module, which no class may define.
MODULE_METHODS = _names(
    "add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval float "
    "get_buffer get_extra_state get_parameter get_submodule half load_state_dict modules named_buffers named_children "
    "named_modules named_parameters parameters register_backward_hook register_buffer register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule "
    "share_memory state_dict to to_empty train training type xpu zero_grad "
    "_apply _backward_hooks _backward_pre_hooks _buffers _call_impl _compiled_call_impl _forward_hooks "
    "_forward_hooks_always_called _forward_hooks_with_kwargs _forward_pre_hooks _forward_pre_hooks_with_kwargs "
    "_get_backward_hooks _get_backward_pre_hooks _get_name _is_full_backward_hook _load_from_state_dict "
    "_load_state_dict_post_hooks _load_state_dict_pre_hooks _maybe_warn_non_full_backward_hook _modules _named_members "
    "_non_persistent_buffers_set _parameters _register_load_state_dict_pre_hook _register_state_dict_hook "
    "_replicate_for_data_parallel _save_to_state_dict _slow_forward _state_dict_hooks _state_dict_pre_hooks _version "
    "_wrapped_call_impl"
)
LIST_CHANGES = _names("append clear extend insert pop popitem remove reverse setdefault sort update")
LAZY = _names("enumerate map reversed zip")  # with all of itertools
CONSUMERS = _names("all any dict len list max min sorted sum tuple join prod broadcast_shapes")

LANGUAGE = Group(
    "triton.language",
    _names(
        "abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max "
        "atomic_min atomic_or atomic_xchg atomic_xor bfloat16 bitonic_merge block_type broadcast broadcast_to cast cat "
        "cdiv ceil clamp const constexpr cos cumprod cumsum debug_barrier device_assert device_print div_rn dot "
        "dot_scaled dtype erf exp exp2 expand_dims fdiv flip float16 float32 float64 float8e4b15 float8e4b8 "
        "float8e4nv float8e5 float8e5b16 floor fma full gather histogram int1 int16 int32 int64 int8 interleave join "
        "load load_tensor_descriptor log log2 make_block_ptr make_tensor_descriptor map_elementwise max max_constancy "
        "max_contiguous maximum min minimum mul multiple_of num_programs pair_uniform_to_normal permute philox "
        "pi32_t pointer_type program_id rand rand4x randint randint4x randn randn4x range ravel reduce reduce_or "
        "reshape rsqrt sigmoid sin slice softmax sort split sqrt sqrt_rn squeeze static_assert static_print "
        "static_range store store_tensor_descriptor sub sum swizzle2d tensor tensor_descriptor to_tensor topk trans "
        "tuple uint16 uint32 uint64 uint8 uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros "
        "zeros_like PropagateNan"
    ),
)
KERNEL_BUILTINS = _names("range min max abs float int bool len tuple list zip enumerate print")
KERNEL_ATTRIBUTES = Group(
    "attributes of values in kernels",
    _names(
        "T abs argmax argmin associative_scan atomic_add atomic_max atomic_min base block_shape broadcast_to cast ceil "
        "cos cumprod cumsum dtype element_ty erf exp exp2 expand_dims flip floor fp_mantissa_width gather histogram "
        "int_bitwidth is_block is_bool is_bf16 is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_int is_int1 "
        "is_int_signed is_int_unsigned is_ptr is_standard_floating item load log log2 logical_and logical_not "
        "logical_or max min ndim numel permute primitive_bitwidth ravel reduce reshape rsqrt scalar scatter shape "
        "sigmoid sin softmax sort split sqrt store strides sum to trans type value view xor_sum"
    ),
)
DECORATOR_KEYWORDS = _names("do_bench launch_metadata post_hook pre_hook repr")  # of a kernel's decorators: refused
