"""Functions of each element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .table import TABLE, Handler, NotWritten, on, setting

if TYPE_CHECKING:
    from ..write_call import Writer


def _unary(function: str) -> Handler:
    def handler(w: Writer, node: Node) -> str:
        return w.call(function, w.tensor(w.given(node)["x"]))

    return handler


for _torch, _own in {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "silu": "silu", "exp": "exp", "expm1": "expm1",
    "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "square": "square", "reciprocal": "reciprocal", "abs": "absolute", "absolute": "absolute",
    "neg": "negative", "negative": "negative", "prefix:-": "negative", "sin": "sin", "cos": "cos", "tan": "tan",
    "cosh": "cosh", "atan": "atan", "arctan": "atan", "acos": "acos", "atanh": "atanh", "erf": "erf",
    "floor": "floor", "ceil": "ceil", "round": "nearest", "trunc": "truncated", "sign": "sign", "mish": "mish",
    "hardswish": "hardswish", "hardsigmoid": "hardsigmoid", "selu": "selu", "softsign": "softsign",
    "logsigmoid": "logsigmoid", "tanhshrink": "tanhshrink", "isnan": "is_nan", "relu_": "relu",
}.items():  # fmt: skip
    TABLE[_torch] = _unary(_own)


@on("prefix:~", "logical_not")
def _inverted(w: Writer, node: Node) -> str:
    return w.call("inverted", w.tensor(w.given(node)["x"], "bool"))


def _with_settings(function: str, *settings: tuple[str, float]) -> Handler:
    def handler(w: Writer, node: Node) -> str:
        texts = [w.number(setting(w, node, name, default)) for name, default in settings]
        return w.call(function, ", ".join([w.tensor(w.given(node)["x"]), *texts]))

    return handler


for _names, _handler in {
    "leaky_relu": _with_settings("leaky_relu", ("negative_slope", 0.01)),
    "elu": _with_settings("elu", ("alpha", 1.0)),
    "celu": _with_settings("celu", ("alpha", 1.0)),
    "hardtanh": _with_settings("clamp", ("min_val", -1.0), ("max_val", 1.0)),
    "softplus": _with_settings("softplus", ("beta", 1.0), ("threshold", 20.0)),
    "softshrink": _with_settings("softshrink", ("lambd", 0.5)),
    "hardshrink": _with_settings("hardshrink", ("lambd", 0.5)),
    "threshold _threshold": _with_settings("threshold", ("threshold", 0.0), ("value", 0.0)),
}.items():
    for _name in _names.split():
        TABLE[_name] = _handler


@on("relu6")
def _relu6(w: Writer, node: Node) -> str:
    return w.call("clamp", f"{w.tensor(w.given(node)['x'])}, 0.0, 6.0")


@on("gelu")
def _gelu(w: Writer, node: Node) -> str:
    exact = setting(w, node, "approximate", "none") == "none"
    return w.call("gelu" if exact else "gelu_tanh", w.tensor(w.given(node)["x"]))


@on("clamp", "clip", "clamp_min", "clamp_max")
def _clamp(w: Writer, node: Node) -> str:
    given = w.given(node)
    bounds = [given.get("min"), given.get("max")]
    x = w.tensor(given["x"])
    for bound, function in zip(bounds, ("maximum", "minimum"), strict=True):
        if bound is not None and w.is_tensor(bound):
            x = w.call(function, f"{x}, {w.tensor(bound)}")
    low, high = (None if bound is None or w.is_tensor(bound) else w.number(w.constant(bound)) for bound in bounds)
    if low is not None and high is not None:
        return w.call("clamp", f"{x}, {low}, {high}")
    if low is not None:
        return w.call("clamp_min", f"{x}, {low}")
    return w.call("clamp_max", f"{x}, {high}") if high is not None else x


_SCALARS = {
    "add": ("add_scalar", "add_scalar"), "sub": ("sub_scalar", "rsub_scalar"), "mul": ("mul_scalar", "mul_scalar"),
    "div": ("div_scalar", "rdiv_scalar"), "power": ("power_scalar", "scalar_power"), "gt": ("gt_scalar", "lt_scalar"),
    "lt": ("lt_scalar", "gt_scalar"), "ge": ("ge_scalar", "le_scalar"), "le": ("le_scalar", "ge_scalar"),
    "eq": ("eq_scalar", "eq_scalar"), "ne": ("ne_scalar", "ne_scalar"),
}  # fmt: skip
_POWERS = {2: "square", 3: "cube", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


def cast(w: Writer, tree: Any, dtype: str) -> str:
    """A tensor with this dtype."""
    if w.node(tree).dtype == dtype:
        return w.tensor(tree, "")
    function = {"float32": "to_float", "int64": "to_int", "bool": "to_bool"}.get(dtype)
    if function is None or w.node(tree).dtype not in ("bool", "int64", "int32", "float32"):
        raise NotWritten(f"a cast from {w.node(tree).dtype} to {dtype}")
    return w.call(function, w.tensor(tree, ""))


def binary(w: Writer, function: str, one: Any, other: Any, node: Node) -> str:
    tensors = [tree for tree in (one, other) if w.is_tensor(tree)]
    kinds = {w.node(tree).dtype for tree in tensors}
    comparing = node.dtype == "bool"
    dtype = node.dtype
    if comparing:
        dtype = "float32" if "float32" in kinds else "int64" if "int64" in kinds else "bool"
    if dtype not in ("float32", "int64", "bool") or (dtype == "int64" and function in ("power", "div")):
        raise NotWritten(f"{function} of {dtype}")
    if len(tensors) == 2:
        return w.call(function, f"{cast(w, one, dtype)}, {cast(w, other, dtype)}")
    if function not in _SCALARS:
        raise NotWritten(f"{function} with a number")
    is_first = w.is_tensor(one)
    given = other if is_first else one
    value = w.number(w.constant(given))
    x = cast(w, tensors[0], dtype)
    if function == "power" and is_first and value in map(str, (2, 2.0, 3, 3.0, 0.5, -0.5, -1, -1.0)):
        return w.call(_POWERS[float(value)], x)
    if dtype == "float32" and value.lstrip("-").isdigit():
        value += ".0"
    return w.call(_SCALARS[function][0 if is_first else 1], f"{x}, {value}")


def _binary(function: str, reverse: bool = False) -> Handler:
    def handler(w: Writer, node: Node) -> str:
        one, other = w.given(node)["x"], w.given(node)["other"]
        return binary(w, function, *((other, one) if reverse else (one, other)), node)

    return handler


for _names, _function in {
    "infix:+ add": "add", "infix:- sub subtract": "sub", "infix:* mul multiply": "mul",
    "infix:/ div divide true_divide": "div", "infix:** pow": "power", "infix:> gt": "gt", "infix:< lt": "lt",
    "infix:>= ge": "ge", "infix:<= le less_equal": "le", "infix:== eq": "eq", "infix:!= ne": "ne",
    "infix:& logical_and": "both", "infix:| logical_or": "either",
    "maximum": "maximum", "minimum": "minimum",
    "atan2": "atan2",
}.items():  # fmt: skip
    for _name in _names.split():
        TABLE[_name] = _binary(_function)
TABLE["rsub"] = _binary("sub", reverse=True)


def _filled(w: Writer, tree: Any, like: str) -> str:
    """A tensor, or a number as a tensor."""
    if w.is_tensor(tree):
        return w.tensor(tree, "")
    return f"torch.full_like({like}, {w.number(w.constant(tree))})"


@on("where")
def _where(w: Writer, node: Node) -> str:
    given = w.given(node)
    if "other" not in given:
        raise NotWritten("where of a condition alone")
    condition, x, other = given["condition"], given["x"], given["other"]
    if node.kind == "method":  # x.where(condition, other)
        condition, x = x, condition
    tensors = [tree for tree in (x, other) if w.is_tensor(tree)]
    if node.dtype not in ("float32", "int64", "bool") or any(w.node(tree).dtype != node.dtype for tree in tensors):
        raise NotWritten("where of several dtypes")
    like = w.tensor(tensors[0], "") if tensors else cast(w, condition, node.dtype)
    return w.call("where", f"{w.tensor(condition, 'bool')}, {_filled(w, x, like)}, {_filled(w, other, like)}")


@on("masked_fill")
def _masked_fill(w: Writer, node: Node) -> str:
    given = w.given(node)
    x = w.tensor(given["x"])
    return w.call("where", f"{w.tensor(given['mask'], 'bool')}, {_filled(w, given['value'], x)}, {x}")


@on("lerp")
def _lerp(w: Writer, node: Node) -> str:
    given = w.given(node)
    x, end, weight = w.tensor(given["x"]), w.tensor(given["end"]), given["weight"]
    step = w.call("sub", f"{end}, {x}")
    if w.is_tensor(weight):
        step = w.call("mul", f"{step}, {w.tensor(weight)}")
    else:
        step = w.call("mul_scalar", f"{step}, {w.number(w.constant(weight))}")
    return w.call("add", f"{x}, {step}")


@on("addcmul", "addcdiv")
def _addcmul(w: Writer, node: Node) -> str:
    given = w.given(node)
    function = "mul" if node.operator == "addcmul" else "div"
    step = w.call(function, f"{w.tensor(given['tensor1'])}, {w.tensor(given['tensor2'])}")
    value = w.constant(given.get("value"), 1)
    if value != 1:
        step = w.call("mul_scalar", f"{step}, {w.number(value)}")
    return w.call("add", f"{w.tensor(given['x'])}, {step}")


@on("prelu")
def _prelu(w: Writer, node: Node) -> str:
    x = w.given(node)["x"]
    weight, n = w.tensor(w.given(node)["weight"]), w.node(w.given(node)["weight"]).shapes[0][0]
    if n != 1 and w.rank(x) > 2:
        weight += f".view({', '.join(['-1'] + ['1'] * (w.rank(x) - 2))})"
    return w.call("prelu", f"{w.tensor(x)}, {weight}")


@on("glu")
def _glu(w: Writer, node: Node) -> str:
    x, dim = w.tensor(w.given(node)["x"]), setting(w, node, "dim", -1)
    gate = w.call("sigmoid", f"{x}.chunk(2, {dim})[1]")
    return w.call("mul", f"{x}.chunk(2, {dim})[0], {gate}")
