"""Functions that differ in a formula: tables of these, and the text that computes one."""

from __future__ import annotations

_MAXIMUM = "tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)".format
_MINIMUM = "tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)".format
_CLAMPED = _MINIMUM(_MAXIMUM("x", "low"), "high")

# Function -> (parameters besides x, formula of the element `x`)
UNARY = {
    "relu": ("", _MAXIMUM("x", "0.0")),
    "sigmoid": ("", "tl.sigmoid(x)"),
    "tanh": ("", "tanh_of(x)"),
    "silu": ("", "x * tl.sigmoid(x)"),
    "gelu": ("", "0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))"),
    "gelu_tanh": ("", "0.5 * x * (1.0 + tanh_of(0.7978845608028654 * (x + 0.044715 * x * x * x)))"),
    "exp": ("", "tl.exp(x)"),
    "expm1": ("", "expm1_of(x)"),
    "exp2": ("", "tl.exp2(x)"),
    "log": ("", "tl.log(x)"),
    "log2": ("", "tl.log2(x)"),
    "log10": ("", "tl.log(x) * 0.4342944819032518"),
    "log1p": ("", "log1p_of(x)"),
    "sqrt": ("", "tl.sqrt(x)"),
    "rsqrt": ("", "1.0 / tl.sqrt(x)"),
    "square": ("", "x * x"),
    "cube": ("", "x * x * x"),
    "reciprocal": ("", "1.0 / x"),
    "absolute": ("", "tl.abs(x)"),
    "negative": ("", "x * -1.0"),
    "sin": ("", "tl.sin(x)"),
    "cos": ("", "tl.cos(x)"),
    "tan": ("", "tl.sin(x) / tl.cos(x)"),
    "cosh": ("", "cosh_of(x)"),
    "atan": ("", "atan_of(x)"),
    "acos": ("", "acos_of(x)"),
    "atanh": ("", "atanh_of(x)"),
    "erf": ("", "tl.erf(x)"),
    "floor": ("", "tl.floor(x)"),
    "ceil": ("", "tl.ceil(x)"),
    "nearest": ("", "nearbyint_of(x)"),
    "truncated": ("", "trunc_of(x)"),
    "sign": ("", "tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))"),
    "softplus": ("beta, threshold", "tl.where(x * beta > threshold, x, log1p_of(tl.exp(x * beta)) / beta)"),
    "mish": ("", "x * tanh_of(tl.where(x > 20.0, x, log1p_of(tl.exp(x))))"),
    "hardswish": ("", f"x * {_MINIMUM(_MAXIMUM('x + 3.0', '0.0'), '6.0')} / 6.0"),
    "hardsigmoid": ("", f"{_MINIMUM(_MAXIMUM('x + 3.0', '0.0'), '6.0')} / 6.0"),
    "elu": ("alpha", "tl.where(x > 0.0, x, expm1_of(x) * alpha)"),
    "celu": ("alpha", "tl.where(x > 0.0, x, expm1_of(x / alpha) * alpha)"),
    "selu": ("", "1.0507009873554805 * tl.where(x > 0.0, x, 1.6732632423543772 * expm1_of(x))"),
    "leaky_relu": ("slope", "tl.where(x > 0.0, x, x * slope)"),
    "softsign": ("", "x / (1.0 + tl.abs(x))"),
    "logsigmoid": ("", f"{_MINIMUM('x', '0.0')} - log1p_of(tl.exp(-tl.abs(x)))"),
    "softshrink": ("lambd", "tl.where(x > lambd, x - lambd, tl.where(x < -lambd, x + lambd, x * 0.0))"),
    "hardshrink": ("lambd", "tl.where((x >= -lambd) & (x <= lambd), 0.0, x)"),
    "tanhshrink": ("", "x - tanh_of(x)"),
    "threshold": ("limit, value", "tl.where(x <= limit, value, x)"),
    "clamp": ("low, high", _CLAMPED),
    "clamp_min": ("low", _MAXIMUM("x", "low")),
    "clamp_max": ("high", _MINIMUM("x", "high")),
    "add_scalar": ("value", "x + value"),
    "sub_scalar": ("value", "x - value"),
    "rsub_scalar": ("value", "value - x"),
    "mul_scalar": ("value", "x * value"),
    "div_scalar": ("value", "x / value"),
    "rdiv_scalar": ("value", "value / x"),
    "power_scalar": ("value", "power_of(x, value, tl.float32)"),
    "scalar_power": ("value", "power_of(value, x, tl.float32)"),
    "gt_scalar": ("value", "x > value"),
    "lt_scalar": ("value", "x < value"),
    "ge_scalar": ("value", "x >= value"),
    "le_scalar": ("value", "x <= value"),
    "eq_scalar": ("value", "x == value"),
    "ne_scalar": ("value", "x != value"),
    "inverted": ("", "x == 0"),
    "is_nan": ("", "x != x"),
    "to_float": ("", "x.to(tl.float32)"),
    "to_int": ("", "x.to(tl.int64)"),
    "to_bool": ("", "x != 0"),
}
BINARY = {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "power": "power_of(x, y, tl.float32)",
    "maximum": _MAXIMUM("x", "y"),
    "minimum": _MINIMUM("x", "y"),
    "gt": "x > y",
    "lt": "x < y",
    "ge": "x >= y",
    "le": "x <= y",
    "eq": "x == y",
    "ne": "x != y",
    "both": "(x != 0) & (y != 0)",
    "either": "(x != 0) | (y != 0)",
    "atan2": "atan2_of(x, y)",
    "prelu": "tl.where(x > 0.0, x, x * y)",
}
DTYPES = dict.fromkeys("gt lt ge le eq ne both either inverted is_nan to_bool".split(), "torch.bool")
DTYPES |= {"to_float": "torch.float32", "to_int": "torch.int64"}


def _allocation(name: str) -> str:
    dtype = DTYPES.get(name.removesuffix("_scalar"))
    return f"torch.empty(x.shape, device=x.device, dtype={dtype})" if dtype else "torch.empty_like(x)"


def unary_text(name: str) -> str:
    parameters, formula = UNARY[name]
    extra = f", {parameters}" if parameters else ""
    return f"""\
def {name}(x{extra}):
    x = x.contiguous()
    out = {_allocation(name)}
    {name}_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(){extra}, BLOCK=1024)
    return out


@triton.jit
def {name}_kernel(x_ptr, out_ptr, numel{extra}, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    tl.store(out_ptr + offset, {formula}, mask=offset < numel)
"""


def binary_text(name: str) -> str:
    return f"""\
def {name}(x, y):
    x, y = torch.broadcast_tensors(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = {_allocation(name)}
    {name}_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def {name}_kernel(x_ptr, y_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    y = tl.load(y_ptr + offset, mask=offset < numel)
    tl.store(out_ptr + offset, {BINARY[name]}, mask=offset < numel)
"""


WHERE = """\
def where(condition, x, y):
    condition, x, y = torch.broadcast_tensors(condition, x, y)
    condition, x, y = condition.contiguous(), x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    where_kernel[(triton.cdiv(x.numel(), 1024),)](condition, x, y, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def where_kernel(condition_ptr, x_ptr, y_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    condition = tl.load(condition_ptr + offset, mask=offset < numel)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    y = tl.load(y_ptr + offset, mask=offset < numel)
    tl.store(out_ptr + offset, tl.where(condition, x, y), mask=offset < numel)
"""

# Padding by elements of the input: where the element at `place`, counted from the input's first, comes from.
PADS = {
    "reflect_pad_axis": "n - 1 - tl.abs(n - 1 - tl.abs(place))",
    "replicate_pad_axis": "tl.minimum(tl.maximum(place, 0), n - 1)",
    "circular_pad_axis": "(place + n) % n",
}


def pad_text(name: str) -> str:
    return f"""\
def {name}(x, dim, before, after):
    x = x.contiguous()
    shape = list(x.shape)
    n = shape[dim]
    shape[dim] = before + n + after
    out = torch.empty(shape, device=x.device, dtype=x.dtype)
    inner = out.stride(dim)
    {name}_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, out, out.numel(), n, shape[dim], inner, before, BLOCK=1024
    )
    return out


@triton.jit
def {name}_kernel(x_ptr, out_ptr, numel, n, out_n, inner, before, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    outer, place = offset // (out_n * inner), offset // inner % out_n - before
    place = {PADS[name]}
    x = tl.load(x_ptr + (outer * n + place) * inner + offset % inner, mask=offset < numel)
    tl.store(out_ptr + offset, x, mask=offset < numel)
"""
