"""Sources of `triton.jit` functions for functions of libdevice that triton.language lacks.

Triton's interpreter has no libdevice, so a kernel that calls libdevice only runs on a GPU. The functions are accurate
to a few units in the last place of float32, also near 0 and with the fast `tl.exp` and `/` of a GPU. The polynomials
are from Cephes (single precision) or Taylor series.
"""

from __future__ import annotations

MATHEMATICS = {
    "tanh": '''
@triton.jit
def tanh(x):
    """A polynomial near 0, where the difference of exponentials would lose digits."""
    size = tl.abs(x)
    square = x * x
    near = ((-5.70498872745e-3 * square + 2.06390887954e-2) * square - 5.37397155531e-2) * square + 1.33314422036e-1
    near = x + x * square * (near * square - 3.33332819422e-1)
    decay = tl.exp(-2.0 * size)
    far = (1.0 - decay) / (1.0 + decay)
    return tl.where(size < 0.625, near, tl.where(x < 0.0, -far, far))
''',
    "expm1": '''
@triton.jit
def expm1(x):
    """A polynomial near 0, where `exp(x) - 1` would lose digits."""
    near = ((2.48015873e-5 * x + 1.98412698e-4) * x + 1.38888889e-3) * x + 8.33333333e-3
    near = x + x * x * (((near * x + 4.16666667e-2) * x + 1.66666667e-1) * x + 0.5)
    return tl.where(tl.abs(x) < 0.5, near, tl.exp(x) - 1.0)
''',
    "log1p": '''
@triton.jit
def log1p(x):
    """A polynomial near 0, where `1 + x` would lose digits."""
    near = ((7.0376836292e-2 * x - 1.1514610310e-1) * x + 1.1676998740e-1) * x - 1.2420140846e-1
    near = (((near * x + 1.4249322787e-1) * x - 1.6668057665e-1) * x + 2.0000714765e-1) * x - 2.4999993993e-1
    near = x + x * x * ((near * x + 3.3333331174e-1) * x - 0.5)
    return tl.where((x > -0.29) & (x < 0.41), near, tl.log(1.0 + x))
''',
    "log10": """
@triton.jit
def log10(x):
    return tl.log(x) * 0.4342944819032518
""",
    "cosh": '''
@triton.jit
def cosh(x):
    """A polynomial near 0, else the root of the exponential, which does not overflow before the result does."""
    square = x * x
    near = ((2.75573192e-7 * square + 2.48015873e-5) * square + 1.38888889e-3) * square + 4.16666667e-2
    near = 1.0 + square * (near * square + 0.5)
    root = tl.exp(0.5 * tl.abs(x))
    return tl.where(tl.abs(x) < 1.0, near, 0.5 * root * root + 0.5 / root / root)
''',
    "atan": '''
@triton.jit
def atan(x):
    """A polynomial, of an argument that is brought below tan(pi / 8)."""
    size = tl.abs(x)
    middle, large = size > 0.41421356, size > 2.41421356
    small = tl.where(large, -1.0 / size, tl.where(middle, (size - 1.0) / (size + 1.0), size))
    square = small * small
    result = ((8.05374449538e-2 * square - 1.38776856032e-1) * square + 1.99777106478e-1) * square - 3.33329491539e-1
    result = small + small * square * result
    result += tl.where(large, 1.5707963267948966, tl.where(middle, 0.7853981633974483, 0.0))
    return tl.where(x < 0.0, -result, result)
''',
    "signbit": """
@triton.jit
def signbit(x):
    return (x.to(tl.int32, bitcast=True) < 0).to(tl.int32)
""",
    "atan2": '''
@triton.jit
def atan2(y, x):
    """The angle of a point, from that of its smaller side over the larger one."""
    wide, high = tl.abs(x), tl.abs(y)
    steep = high > wide
    larger, smaller = tl.where(steep, high, wide), tl.where(steep, wide, high)
    angle = atan(tl.where(larger == 0.0, 0.0, tl.where(smaller == larger, 1.0, smaller / larger)))
    angle = tl.where(steep, 1.5707963267948966 - angle, angle)
    angle = tl.where(signbit(x) != 0, 3.141592653589793 - angle, angle)
    return tl.where(signbit(y) != 0, -angle, angle)
''',
    "acos": '''
@triton.jit
def acos(x):
    """A polynomial of the arc's sine; of half the arc's sine where the arc is long."""
    beyond = tl.abs(x) > 0.5
    square = tl.where(beyond, 0.5 * (1.0 - tl.abs(x)), x * x)
    sine = tl.where(beyond, tl.sqrt(square), x)
    arc = ((4.2163199048e-2 * square + 2.4181311049e-2) * square + 4.5470025998e-2) * square + 7.4953002686e-2
    arc = sine + sine * square * (arc * square + 1.6666752422e-1)
    far = tl.where(x < 0.0, 3.141592653589793 - 2.0 * arc, 2.0 * arc)
    return tl.where(beyond, far, 1.5707963267948966 - arc)
''',
    "atanh": '''
@triton.jit
def atanh(x):
    """By `log1p`, which is right near 0."""
    result = 0.5 * log1p(2.0 * tl.abs(x) / (1.0 - tl.abs(x)))
    return tl.where(x < 0.0, -result, result)
''',
    "power": '''
@triton.jit
def power(x, y, dtype: tl.constexpr):
    """In float64, where a large exponent costs no digits."""
    base, exponent = tl.cast(x, tl.float64), tl.cast(y, tl.float64)
    size = tl.where(tl.abs(base) == 1.0, 1.0, tl.exp2(exponent * tl.log2(tl.abs(base))))
    odd = exponent - 2.0 * tl.floor(0.5 * exponent)
    broken = tl.where(base == float("-inf"), size, float("nan"))
    signed = tl.where(odd == 1.0, -size, tl.where(tl.floor(exponent) == exponent, size, broken))
    return tl.where(exponent == 0.0, 1.0, tl.where(base < 0.0, signed, size)).to(dtype)
''',
    "nearbyint": '''
@triton.jit
def nearbyint(x):
    """The nearest whole number, the even one of two."""
    down = tl.floor(x)
    rest = x - down
    odd = down - 2.0 * tl.floor(0.5 * down)
    return tl.where((rest > 0.5) | ((rest == 0.5) & (odd == 1.0)), down + 1.0, down)
''',
    "trunc": """
@triton.jit
def trunc(x):
    return tl.where(x < 0.0, tl.ceil(x), tl.floor(x))
""",
}  # fmt: skip

# Functions that are exact for float64 too.
EXACT = frozenset(("nearbyint", "trunc"))
# Function -> other functions of this file that it calls.
NEEDS = {"atan2": ("atan", "signbit"), "atanh": ("log1p",)}
