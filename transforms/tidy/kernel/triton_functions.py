"""Translate calls of Inductor's helper functions to Triton's own functions.

Where Triton has no function of the same meaning, the candidate gets a small `triton.jit` function from `LIBRARY`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from kernelquarry.pipeline.schema.parse_python import parse_expression

from ..refusals import NotTidied
from ..syntax.ast_tools import names_in
from .mathematics import EXACT, MATHEMATICS, NEEDS

# Functions of libdevice and of Inductor's math module -> functions of triton.language.
_TL = {name: name for name in "exp exp2 log log2 sqrt rsqrt sin cos erf floor ceil abs fma".split()} | {"fabs": "abs"}

# Functions of libdevice that triton.language lacks.
_LIBDEVICE = frozenset(
    "acos acosh asin asinh atan atan2 atanh cosh erfc erfcinv erfinv expm1 fmod hypot ldexp lgamma log10 log1p "
    "nearbyint nextafter pow rint round sinh tan tanh tgamma trunc copysign signbit isnan isinf isfinited finitef "
    "cyl_bessel_i0 cyl_bessel_i1 j0 j1 y0 y1 erfcx normcdfinv ilogb frexp".split()
)

# Functions of `triton_helpers` -> functions of `LIBRARY` with the same arguments.
_HELPERS = {
    "max2": "nan_max", "min2": "nan_min", "any": "any_true", "max_with_index": "arg_max", "min_with_index": "arg_min",
    "maximum_with_index": "arg_maximum", "minimum_with_index": "arg_minimum", "div_floor_integer": "floor_divide",
    "remainder_integer": "floor_remainder",
}  # fmt: skip

_NUMERIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)  # nodes of an expression of numbers only

_NAN_EXTREME = '''
@triton.jit
def nan_{short}(x, axis: tl.constexpr):
    """The {best} along an axis, NaN if there is one."""
    has_nan = tl.max((x != x).to(tl.int32), axis) > 0
    return tl.where(has_nan, float("nan"), tl.{short}(x, axis))
'''
_ARG_EXTREME = '''
@triton.jit
def arg_{short}(x, index, axis: tl.constexpr):
    """The {best} along an axis and its index; NaN counts as {best}, the first of equals wins."""
    best = nan_{short}(x, axis)
    wide = tl.expand_dims(best, axis)
    hit = (x == wide) | ((x != x) & (wide != wide))
    return best, tl.min(tl.where(hit, index, 0x7FFFFFFF), axis)
'''
_ARG_EXTREMUM = '''
@triton.jit
def arg_{short}imum(a, index_a, b, index_b):
    """The {better} one and its index; NaN counts as {best}, the first of equals wins."""
    equal = (a == b) | ((a != a) & (b != b))
    first = ((a {sign} b) | ((a != a) & (b == b))) | (equal & (index_a < index_b))
    return tl.where(first, a, b), tl.where(first, index_a, index_b)
'''
_MAX = {"short": "max", "best": "largest", "better": "larger", "sign": ">"}
_MIN = {"short": "min", "best": "smallest", "better": "smaller", "sign": "<"}

# Name -> source of a function that candidates may use, in the order of their definitions in a file.
LIBRARY = {
    "nan_max": _NAN_EXTREME.format(**_MAX),
    "nan_min": _NAN_EXTREME.format(**_MIN),
    "arg_max": _ARG_EXTREME.format(**_MAX),
    "arg_min": _ARG_EXTREME.format(**_MIN),
    "any_true": """
@triton.jit
def any_true(x, axis: tl.constexpr):
    return tl.max(x.to(tl.int32), axis) > 0
""",
    "multiply": """
@triton.jit
def multiply(a, b):
    return a * b
""",
    "arg_maximum": _ARG_EXTREMUM.format(**_MAX),
    "arg_minimum": _ARG_EXTREMUM.format(**_MIN),
    "sort_with_index": '''
@triton.jit
def sort_with_index(x, index, n, descending: tl.constexpr):
    """Sorts rows of float32 stably, NaN largest; the first `n` columns count, or all. Gives values and indices."""
    x = tl.where(x != x, float("nan"), x + 0.0)
    bits = x.to(tl.int32, bitcast=True)
    order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    if descending:
        order = ~order
    key = (order.to(tl.int64) << 32) | index.to(tl.int64)
    if n is not None:
        key = tl.where(index < n, key, 0x7FFFFFFFFFFFFFFF)
    key = tl.sort(key)
    order = (key >> 32).to(tl.int32)
    if descending:
        order = ~order
    bits = order ^ ((order >> 31) & 0x7FFFFFFF)
    return bits.to(tl.float32, bitcast=True), (key & 0xFFFFFFFF).to(tl.int32)
''',
    "floor_divide": '''
@triton.jit
def floor_divide(a, b):
    """Rounds down, where `//` on integers rounds towards zero."""
    quotient = a // b
    return tl.where((a % b != 0) & ((a < 0) != (b < 0)), quotient - 1, quotient)
''',
    "floor_remainder": '''
@triton.jit
def floor_remainder(a, b):
    """Has the sign of `b`, where `%` has that of `a`."""
    remainder = a % b
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)
''',
    **MATHEMATICS,
}
_NEEDS = {"arg_max": ("nan_max",), "arg_min": ("nan_min",), **NEEDS}


def parsed(text: str) -> ast.expr:
    return parse_expression(text)


def call(function: str, *args: ast.expr | str, **keywords: str) -> ast.Call:
    return ast.Call(
        func=parsed(function),
        args=[parsed(arg) if isinstance(arg, str) else arg for arg in args],
        keywords=[ast.keyword(name, parsed(value)) for name, value in keywords.items()],
    )


def translate(
    name: str, args: Sequence[ast.expr], keywords: Mapping[str, ast.expr], dtype: str = ""
) -> ast.expr | None:
    """The replacement of a call of `libdevice.*`, `tl_math.*` or `triton_helpers.*`; None for any other function.

    `dtype` is the promoted dtype of the arguments, "" if unknown.

    Raises:
        NotTidied: the function is one of Inductor's and not known.
    """
    module, _, function = name.rpartition(".")
    if module in ("libdevice", "tl_math"):
        return _math(function, args, dtype)
    if module != "triton_helpers":
        return None
    if function in _HELPERS:
        return call(_HELPERS[function], *args)
    match function:
        case "promote_to_tensor":
            return args[0]
        case "maximum" | "minimum":
            first, second = args
            if isinstance(first, ast.Constant):  # write "tl.maximum(x, 0.0)", not "tl.maximum(0.0, x)"
                first, second = second, first
            return call(f"tl.{function}", first, second, propagate_nan="tl.PropagateNan.ALL")
        case "prod":
            return call("tl.reduce", *args, "multiply")
        case "sort_with_index":
            value, index, size, _ = args
            return call("sort_with_index", value, index, size, descending=ast.unparse(keywords["descending"]))
        case "select_one":  # the value in the only place where the condition holds
            value, condition = args
            return call("tl.sum", call("tl.where", condition, value, "0"), "1", keep_dims="True")
    raise NotTidied(f"helper {name}")


def _math(function: str, args: Sequence[ast.expr], dtype: str) -> ast.expr:
    if function in _TL:
        return call(f"tl.{_TL[function]}", *args)
    if function == "mul_rn":  # a product that is rounded before something is added to it
        return ast.BinOp(args[0], ast.Mult(), args[1])
    if function == "signbit" and isinstance(args[0], ast.Constant) and isinstance(args[0].value, int | float):
        return ast.Constant(int(args[0].value < 0))
    if function == "signbit" and all(isinstance(node, _NUMERIC) for node in ast.walk(args[0])):
        return ast.Compare(args[0], [ast.Lt()], [ast.Constant(0)])  # a compile-time number has no bits to look at
    if function == "pow":
        root = {"0.5": "tl.sqrt", "-0.5": "tl.rsqrt"}.get(ast.unparse(args[1]))
        return call(root, args[0]) if root else call("power", *args, f"tl.{dtype or 'float32'}")
    if function == "isnan":
        return ast.Compare(args[0], [ast.NotEq()], [args[0]])
    if function == "isinf":
        return ast.Compare(call("tl.abs", args[0]), [ast.Eq()], [parsed('float("inf")')])
    if function in MATHEMATICS and (dtype != "float64" or function in EXACT):
        return call(function, *args)
    if function in _LIBDEVICE:
        return call(f"libdevice.{function}", *args)
    raise NotTidied(f"function {function}")


def library_calls(statements: Sequence[ast.stmt]) -> list[str]:
    """Names of functions of `LIBRARY` that the statements need, in its order."""
    used = set(names_in(*statements))
    used |= {needed for name in used for needed in _NEEDS.get(name, ())}
    return [name for name in LIBRARY if name in used]
