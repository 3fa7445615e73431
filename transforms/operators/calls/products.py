"""Products of matrices and convolutions."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .axes import weights_of
from .table import NotWritten, on, repeated, setting

if TYPE_CHECKING:
    from ..write_call import Writer


def matmul(w: Writer, one: tuple[str, int], other: tuple[str, int]) -> str:
    """The product of two tensors (text, rank)."""
    (x, rank), (y, second) = one, other
    if rank > 1 and second > 1:
        return w.call("matmul", f"{x}, {y}")
    if rank == second == 1:
        return w.call("reduce_sum", f"{w.call('mul', f'{x}, {y}')}, 0")
    if rank == 1:
        return w.call("matmul", f"{x}.unsqueeze(0), {y}") + ".squeeze(-2)"
    return w.call("matmul", f"{x}, {y}.unsqueeze(-1)") + ".squeeze(-1)"


@on("infix:@", "matmul", "bmm", "mm", "mv", "dot")
def _matmul(w: Writer, node: Node) -> str:
    one, other = w.given(node)["x"], w.given(node)["other"]
    return matmul(w, (w.tensor(one), w.rank(one)), (w.tensor(other), w.rank(other)))


@on("baddbmm", "addmm")
def _addmm(w: Writer, node: Node) -> str:
    given = w.given(node)
    found = w.call("matmul", f"{w.tensor(given['batch1'])}, {w.tensor(given['batch2'])}")
    return w.call("add", f"{w.tensor(given['x'])}, {found}")


@on("outer")
def _outer(w: Writer, node: Node) -> str:
    given = w.given(node)
    return w.call("mul", f"{w.tensor(given['x'])}.unsqueeze(1), {w.tensor(given['other'])}")


@on("linear")
def _linear(w: Writer, node: Node) -> str:
    given = w.given(node)
    weight, bias = weights_of(w, given, "weight", "bias")
    return w.call("linear", f"{w.tensor(given['x'])}, {weight}, {bias}")


@on(*(f"conv{n}d" for n in "123"))
def _conv(w: Writer, node: Node) -> str:
    n = int(node.operator[-2])
    given = w.given(node)
    padding = setting(w, node, "padding", 0)
    stride, dilation = (_each(setting(w, node, name, 1), given.get(name), n) for name in ("stride", "dilation"))
    if isinstance(padding, str):
        steps = repeated(setting(w, node, "dilation", 1), n)
        totals = [d * (k - 1) for d, k in zip(steps, w.node(given["weight"]).shapes[0][2:], strict=True)]
        if padding == "same" and any(total % 2 for total in totals):
            raise NotWritten("a padding that differs between the sides")
        padding = tuple(total // 2 if padding == "same" else 0 for total in totals)
    paddings = _each(padding, given.get("padding"), n)
    x, weight, bias = w.tensor(given["x"]), *weights_of(w, given, "weight", "bias")
    single = w.rank(given["x"]) == n + 1
    x = f"{x}.unsqueeze(0)" if single else x
    groups = setting(w, node, "groups", 1)
    text = w.call(f"conv{n}d", ", ".join(map(str, [x, weight, bias, stride, paddings, dilation, groups])))
    return f"{text}.squeeze(0)" if single else text


def _each(value: Any, tree: Any, n: int) -> Any:
    """A setting for each of `n` axes; the module's expression if it has them all."""
    if isinstance(value, tuple) and len(value) == n and "text" in (tree or {}):
        return tree["text"]
    return repeated(value, n)


@on("conv_transpose1d", "conv_transpose2d")
def _conv_transpose(w: Writer, node: Node) -> str:
    n = int(node.operator[-2])
    given = w.given(node)
    names = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}
    settings = [_each(setting(w, node, name, default), given.get(name), n) for name, default in names.items()]
    if w.rank(given["x"]) != n + 2:
        raise NotWritten("a transposed convolution of one image")
    weight, bias = weights_of(w, given, "weight", "bias")
    groups = setting(w, node, "groups", 1)
    return w.call(f"conv_transpose{n}d", ", ".join(map(str, [w.tensor(given["x"]), weight, bias, *settings, groups])))


@on("scaled_dot_product_attention")
def _attention(w: Writer, node: Node) -> str:
    given = w.given(node)
    q, k, v = (w.tensor(given[name]) for name in ("x", "key", "value"))
    if w.constant(given.get("dropout_p"), 0.0) or w.constant(given.get("enable_gqa"), False):
        raise NotWritten("attention with dropout or fewer heads")
    scores = w.call("matmul", f"{q}, {k}.transpose(-2, -1)")
    scale = w.constant(given.get("scale"))
    value = f"{q}.shape[-1] ** -0.5" if scale is None else w.number(scale)
    scores = w.call("mul_scalar", f"{scores}, {value}")
    if w.constant(given.get("is_causal"), False):
        scores = w.call("causal_scores", scores)
    if "attn_mask" in given:
        mask = given["attn_mask"]
        if w.node(mask).dtype == "float32":
            scores = w.call("add", f"{scores}, {w.tensor(mask)}")
        else:
            scores = w.call("masked_scores", f"{scores}, {w.tensor(mask, 'bool')}")
    return w.call("matmul", f"{w.call('softmax', f'{scores}, -1')}, {v}")


@on("einsum")
def _einsum(w: Writer, node: Node) -> str:
    given = w.given(node)
    equation = w.constant(given["equation"]).replace(" ", "")
    trees = given["x"].get("tuple") or given["x"].get("list")
    sources, arrow, target = equation.partition("->")
    if not arrow:
        target = "".join(sorted(i for i in set(sources) - {","} if sources.count(i) == 1))
    inputs = sources.split(",")
    if "..." in sources:
        rests = {w.rank(tree) - len(one) + 3 for tree, one in zip(trees, inputs, strict=True) if "..." in one}
        if len(rests) != 1 or not arrow:
            raise NotWritten("an einsum of other ranks")
        rest = "".join(sorted(set(ascii_letters) - set(equation)))[: rests.pop()]
        inputs, target = [one.replace("...", rest) for one in inputs], target.replace("...", rest)
    if len(set(target)) != len(target) or any(len(set(one)) != len(one) for one in inputs):
        raise NotWritten("an einsum with a diagonal")
    sized = {
        (i, n)
        for tree, one in zip(trees, inputs, strict=True)
        for i, n in zip(one, w.node(tree).shapes[0], strict=True)
    }
    if len(sized) != len({i for i, _ in sized}):
        raise NotWritten("an einsum that broadcasts")
    texts = [w.tensor(tree) for tree in trees]
    if len(inputs) == 1:
        return _permuted_sum(w, texts[0], inputs[0], target)
    if len(inputs) != 2:
        raise NotWritten("an einsum of more than two tensors")
    (a, b), (x, y) = inputs, texts
    if alone := (set(a) ^ set(b)) - set(target):
        raise NotWritten(f"an axis {min(alone)} that one operand has alone")
    common = [i for i in target if i in a and i in b]
    summed = [i for i in a if i in b and i not in target]
    ones, others = [i for i in target if i in a and i not in b], [i for i in target if i in b and i not in a]
    if not summed:
        aligned = [_aligned(text, labels, target) for text, labels in ((x, a), (y, b))]
        return w.call("mul", ", ".join(aligned))
    sizes = {label: f"{text}.shape[{labels.index(label)}]" for text, labels in ((x, a), (y, b)) for label in labels}
    left = _merged(x, a, [common, ones, summed], sizes)
    right = _merged(y, b, [common, summed, others], sizes)
    text = w.call("matmul", f"{left}, {right}")
    order = [*common, *ones, *others]
    if len(ones) != 1 or len(others) != 1:
        text += f".view({', '.join(sizes[label] for label in order)})"
    if order != list(target):
        text += f".permute({', '.join(str(order.index(label)) for label in target)})"
    return text


def _permuted_sum(w: Writer, x: str, labels: str, target: str) -> str:
    dims = tuple(i for i, label in enumerate(labels) if label not in target)
    rest = [label for label in labels if label in target]
    text = w.call("reduce_sum", f"{x}, {dims}") if dims else x
    return text if rest == list(target) else f"{text}.permute({', '.join(str(rest.index(i)) for i in target)})"


def _aligned(x: str, labels: str, target: str) -> str:
    order = [labels.index(label) for label in target if label in labels]
    text = x if order == sorted(order) else f"{x}.permute({', '.join(map(str, order))})"
    index = ", ".join(":" if label in labels else "None" for label in target)
    return text if "None" not in index else f"{text}[{index}]"


def _merged(x: str, labels: str, groups: list[list[str]], sizes: dict[str, str]) -> str:
    """A tensor with the axes of each group as one; those of the first stay apart where the others are one each."""
    order = [labels.index(label) for group in groups for label in group]
    text = x if order == sorted(order) else f"{x}.permute({', '.join(map(str, order))})"
    if len(groups[1]) == 1 and len(groups[2]) == 1:
        return text
    shape = [sizes[label] for label in groups[0]]
    shape += [" * ".join(sizes[label] for label in group) or "1" for group in groups[1:]]
    return f"{text}.reshape({', '.join(shape)})"
