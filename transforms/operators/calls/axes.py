"""Reductions, softmax and normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .elements import binary
from .table import TABLE, Handler, NotWritten, on, setting

if TYPE_CHECKING:
    from ..write_call import Writer


def _dims(w: Writer, given: dict[str, Any]) -> str:
    """The axes of a reduction; all if none are given."""
    found = given.get("dim")
    dim = w.constant(found)
    if dim is None or dim == ():
        return str(tuple(range(w.rank(given["x"]))))
    return str(found.get("text", dim) if found else dim)


def _reduction(function: str, dtypes: tuple[str, ...] = ("float32",)) -> Handler:
    def handler(w: Writer, node: Node) -> str:
        given = w.given(node)
        if "dtype" in given:
            raise NotWritten("a dtype of a reduction")
        x = given["x"]
        if w.node(x).dtype not in dtypes:
            raise NotWritten(f"{node.operator} of {w.node(x).dtype}")
        keep = ", keepdim=True" if w.constant(given.get("keepdim"), False) else ""
        return w.call(function, f"{w.tensor(x, '')}, {_dims(w, given)}{keep}")

    return handler


TABLE["sum"] = _reduction("reduce_sum", ("float32", "int64"))
TABLE["mean"] = _reduction("reduce_mean")
TABLE["amax"] = _reduction("reduce_max")
TABLE["amin"] = _reduction("reduce_min")
TABLE["logsumexp"] = _reduction("logsumexp")
TABLE["argmax"] = _reduction("index_of_max")
TABLE["argmin"] = _reduction("index_of_min")
TABLE["prod"] = _reduction("product")


@on("max", "min")
def _max(w: Writer, node: Node) -> str:
    given = w.given(node)
    if "dim" in given and w.is_tensor(given["dim"]):
        return binary(w, "maximum" if node.operator == "max" else "minimum", given["x"], given["dim"], node)
    x = w.tensor(given["x"])
    if node.shapes:
        return w.call(f"reduce_{node.operator}", f"{x}, {_dims(w, given)}")
    keep = ", keepdim=True" if w.constant(given.get("keepdim"), False) else ""
    arguments = f"{x}, {w.constant(given['dim'])}{keep}"
    return f"({w.call(f'reduce_{node.operator}', arguments)}, {w.call(f'index_of_{node.operator}', arguments)})"


@on("var", "std")
def _var(w: Writer, node: Node) -> str:
    given = w.given(node)
    dim = given.get("dim")
    unbiased = w.constant(given.get("unbiased"), True)
    correction = w.constant(given.get("correction"), 1 if unbiased else 0)
    keepdim = given.get("keepdim")
    if isinstance(dim, dict) and isinstance(dim.get("value"), bool):  # var(x, unbiased)
        correction, dim = int(dim["value"]), None
    elif keepdim is not None and len(node.args) > 3:  # var(x, dim, unbiased, keepdim)
        raise NotWritten("old order of arguments of var")
    elif len(node.args) == 3:
        correction, keepdim = int(bool(w.constant(node.args[2]))), node.kwargs.get("keepdim")
    keep = ", keepdim=True" if w.constant(keepdim, False) else ""
    dims = _dims(w, {"x": given["x"]} | ({"dim": dim} if dim else {}))
    text = w.call("variance", f"{w.tensor(given['x'])}, {dims}, {correction}{keep}")
    return text if node.operator == "var" else w.call("sqrt", text)


@on("norm", "linalg_vector_norm", "linalg_norm")
def _norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    order = w.constant(given.get("p", given.get("ord")), 2)
    keep = ", keepdim=True" if w.constant(given.get("keepdim"), False) else ""
    x, dims = w.tensor(given["x"]), _dims(w, given)
    if order in (2, "fro"):
        return w.call("vector_norm", f"{x}, {dims}{keep}")
    if order == 1:
        return w.call("reduce_sum", f"{w.call('absolute', x)}, {dims}{keep}")
    raise NotWritten(f"a norm of order {order}")


@on("normalize")
def _normalize(w: Writer, node: Node) -> str:
    given = w.given(node)
    dim = w.constant(given.get("dim"), 1)
    if w.constant(given.get("p"), 2) != 2 or isinstance(dim, tuple):
        raise NotWritten("another norm")
    eps = w.constant(given.get("eps"), 1e-12)
    return w.call("normalize", f"{w.tensor(given['x'])}, {dim}" + (f", {eps}" if eps != 1e-12 else ""))


@on("softmax", "log_softmax")
def _softmax(w: Writer, node: Node) -> str:
    dim = setting(w, node, "dim", None)
    if dim is None:
        dim = 0 if w.rank(w.given(node)["x"]) in (0, 1, 3) else 1
    if w.given(node).get("dtype", {"code": "torch.float32"}) != {"code": "torch.float32"}:
        raise NotWritten("a dtype of softmax")
    return w.call(node.operator, f"{w.tensor(w.given(node)['x'])}, {dim}")


@on("cumsum")
def _cumsum(w: Writer, node: Node) -> str:
    given = w.given(node)
    if "dtype" in given:
        raise NotWritten("a dtype of a sum")
    return w.call("cumulative_sum", f"{w.tensor(given['x'])}, {w.constant(given['dim'])}")


def weights_of(w: Writer, given: dict[str, Any], *names: str) -> list[str]:
    """Texts of the tensors of a function. One that is None has the module's text too, which may be a variable."""
    return [w.tensor(given[name]) if name in given else w.source(name) or "None" for name in names]


@on("layer_norm", "rms_norm")
def _layer_norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    found = given["normalized_shape"]
    shape, x = found.get("text") or w.constant(found), w.tensor(given["x"])
    if node.operator == "rms_norm":
        (weight,) = weights_of(w, given, "weight")
        return w.call("rms_norm", f"{x}, {shape}, {weight}, {w.constant(given.get('eps'), 1.1920928955078125e-07)}")
    weight, bias = weights_of(w, given, "weight", "bias")
    return w.call("layer_norm", f"{x}, {shape}, {weight}, {bias}{_eps(w, node)}")


def _eps(w: Writer, node: Node) -> str:
    eps = setting(w, node, "eps", 1e-5)
    return f", {eps}" if eps != 1e-5 else ""


@on("group_norm")
def _group_norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    weight, bias = weights_of(w, given, "weight", "bias")
    groups = setting(w, node, "num_groups", None)
    return w.call("group_norm", f"{w.tensor(given['x'])}, {groups}, {weight}, {bias}{_eps(w, node)}")


@on("instance_norm")
def _instance_norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    if not w.constant(given.get("use_input_stats"), True):
        raise NotWritten("an instance norm with running statistics")
    weight, bias = weights_of(w, given, "weight", "bias")
    x = w.tensor(given["x"])
    return w.call("group_norm", f"{x}, {x}.shape[1], {weight}, {bias}{_eps(w, node)}")


@on("batch_norm")
def _batch_norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    if w.constant(given.get("training"), False):
        raise NotWritten("a batch norm of the batch")
    if w.rank(given["x"]) < 2:
        raise NotWritten("a batch norm of a vector")
    mean, var = w.tensor(given["running_mean"]), w.tensor(given["running_var"])
    weight, bias = weights_of(w, given, "weight", "bias")
    return w.call("batch_norm", f"{w.tensor(given['x'])}, {mean}, {var}, {weight}, {bias}{_eps(w, node)}")
