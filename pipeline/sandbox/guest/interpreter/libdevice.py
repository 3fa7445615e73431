"""NumPy versions of libdevice's functions, which Triton's interpreter lacks.

Floating results are computed in float64 and rounded once, so they are at least as accurate as the device's. The errors
of `fast_` functions are those that CUDA's programming guide states for its intrinsics. Triton's own table of overloads
decides which dtypes a function takes.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Array]


def _rounded(function: Function) -> Function:
    """Compute `function` in float64, and round to the first argument's dtype."""

    def call(*args: Array) -> Array:
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in args]
        return np.asarray(function(*wide)).astype(args[0].dtype)

    return call


def _from_torch(function: Callable[..., torch.Tensor]) -> Function:
    """Compute a function of PyTorch in float64, unseen by the census of the candidate's operators."""

    def call(*args: Array) -> Array:
        result = np.empty(args[0].shape)
        with _disable_current_modes():
            torch.from_numpy(result).copy_(function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in args)))
        return result

    return _rounded(call)


def _flag(function: Function) -> Function:
    """A predicate; libdevice returns int32."""
    return lambda *args: function(*args).astype(np.int32)


def _to_int(function: Function, dtype: type[np.signedinteger[Any]]) -> Function:
    return lambda *args: function(*args).astype(dtype)


def _vectorized(function: Callable[..., float]) -> Function:
    return _rounded(np.vectorize(function, otypes=[np.float64]))


def _round_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _single(x: Array) -> Array:
    return np.asarray(x).astype(np.float32).astype(np.float64)


def _within(error: float, values: Array) -> Array:
    """The nearest multiples of twice the `error`, so that the result is off by as much."""
    return np.rint(values / (2 * error)) * (2 * error)


def _turned(function: Function, x: Array) -> Array:
    """A function of an angle that is divided by a full turn first, in float32."""
    return _within(2.0**-21.4, function(2 * np.pi * _single(x / (2 * np.pi))))


def _fast_log2(x: Array) -> Array:
    exact = np.log2(x)
    return np.where((x >= 0.5) & (x <= 2), _within(2.0**-22, exact), exact)


def _fast_exp2(x: Array) -> Array:
    """2 to the power of a product that is rounded to float32."""
    return np.exp2(_single(x))


def _fast_sin(x: Array) -> Array:
    return _turned(np.sin, x)


def _fast_cos(x: Array) -> Array:
    return _turned(np.cos, x)


_FLOATING: dict[str, Function] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "round": _round_away, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "fmod": np.fmod, "pow": np.power,
    "ldexp": np.ldexp, "rsqrt": lambda x: 1 / np.sqrt(x), "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "exp10": lambda x: np.power(10.0, x), "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "fma": lambda x, y, z: x * y + z, "fdim": lambda x, y: np.fmax(x - y, 0),
    "remainder": lambda x, y: x - np.rint(x / y) * y,
    "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply, "div_rn": np.divide, "sqrt_rn": np.sqrt,
    "rcp_rn": np.reciprocal, "fma_rn": lambda x, y, z: x * y + z, "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "saturatef": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1), "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "fast_sinf": _fast_sin, "fast_cosf": _fast_cos, "fast_tanf": lambda x: _fast_sin(x) / _fast_cos(x),
    "fast_expf": lambda x: _fast_exp2(x * np.log2(np.e)), "fast_exp10f": lambda x: _fast_exp2(x * np.log2(10.0)),
    "fast_logf": lambda x: _fast_log2(x) * np.log(2.0), "fast_log2f": _fast_log2,
    "fast_log10f": lambda x: _fast_log2(x) * np.log10(2.0),
    "fast_powf": lambda x, y: _fast_exp2(y * _single(_fast_log2(x))),
    "fast_dividef": lambda x, y: np.where(np.abs(y) > 2.0**126, x * 0.0, x / y),
}  # fmt: skip

FUNCTIONS: dict[str, Function] = {
    **{name: _rounded(function) for name, function in _FLOATING.items()},
    "erf": _from_torch(torch.erf), "erfc": _from_torch(torch.erfc), "erfinv": _from_torch(torch.erfinv),
    "erfcx": _from_torch(torch.special.erfcx), "erfcinv": _from_torch(lambda x: torch.erfinv(1 - x)),
    "normcdf": _from_torch(torch.special.ndtr), "normcdfinv": _from_torch(torch.special.ndtri),
    "lgamma": _from_torch(torch.lgamma), "tgamma": _vectorized(math.gamma),
    "cyl_bessel_i0": _from_torch(torch.special.i0), "cyl_bessel_i1": _from_torch(torch.special.i1),
    "j0": _from_torch(torch.special.bessel_j0), "j1": _from_torch(torch.special.bessel_j1),
    "y0": _from_torch(torch.special.bessel_y0), "y1": _from_torch(torch.special.bessel_y1),
    "nextafter": np.nextafter, "ilogb": _to_int(lambda x: np.floor(np.log2(np.abs(x))), np.int32),
    "isnan": _flag(np.isnan), "isinf": _flag(np.isinf), "isfinited": _flag(np.isfinite), "finitef": _flag(np.isfinite),
    "signbit": _flag(np.signbit), "llrint": _to_int(np.rint, np.int64), "llround": _to_int(_round_away, np.int64),
    "float2int_rn": _to_int(np.rint, np.int32), "float2int_rz": _to_int(np.trunc, np.int32),
    "float2int_rd": _to_int(np.floor, np.int32), "float2int_ru": _to_int(np.ceil, np.int32),
    "int2float_rn": lambda x: x.astype(np.float32), "double2float_rn": lambda x: x.astype(np.float32),
    "float_as_int": lambda x: x.view(np.int32), "int_as_float": lambda x: x.view(np.float32),
    "popc": lambda x: np.bitwise_count(x.view(f"uint{x.itemsize * 8}")).astype(np.int32),
}  # fmt: skip


@cache
def _names() -> dict[str, str]:
    """Symbol of libdevice -> name in Triton: `__nv_tanhf` -> `tanh`."""
    source = inspect.getsource(cuda)
    bodies = re.split(r"^def ", source, flags=re.MULTILINE)[1:]
    return {symbol: body.partition("(")[0] for body in bodies for symbol in re.findall(r'"(__nv_\w+)"', body)}


def by_symbol(symbol: str) -> Function:
    name = _names().get(symbol, symbol)
    if name not in FUNCTIONS:
        raise NotImplementedError(f"libdevice.{name}")
    return FUNCTIONS[name]


def install(semantic: Any) -> None:
    """Make `libdevice.f(x)` call Triton's frontend, which calls the builder with the symbol."""
    for name, function in inspect.getmembers(cuda, inspect.isfunction):
        if hasattr(libdevice, name):
            call = partial(function, _semantic=semantic)
            setattr(libdevice, name, call)
            setattr(cuda, name, call)
