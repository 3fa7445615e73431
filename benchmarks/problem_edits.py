"""Edits of a benchmark's problems, as files that a source of modules could contain. The ladder must find them.

Each edit takes the text of a problem's file and returns that of another file, or "" where it does not apply.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable

ENTRY = "Model"
_TESTS = frozenset({"get_inputs", "get_init_inputs"})
_LARGE, _OTHER_SIZE = 16, 48


def as_is(text: str) -> str:
    return text


def renamed(text: str) -> str:
    """Every name that the file binds becomes one without a meaning."""
    tree = _without_tests(text)
    renamer = _Renamer(tree)
    return ast.unparse(renamer.visit(tree))


def resized(text: str) -> str:
    """Every size from 16 on becomes another; the benchmark's arguments become defaults of the constructor."""
    arguments = init_arguments(text)
    tree = _without_tests(text)
    constructor = _method(tree, "__init__")
    if constructor is not None and 0 < len(arguments) <= len(constructor.args.args) - 1:
        kept = constructor.args.defaults[
            len(arguments) + len(constructor.args.defaults) + 1 - len(constructor.args.args) :
        ]
        if len(arguments) + len(kept) == len(constructor.args.args) - 1:
            constructor.args.defaults = [*arguments, *kept]
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int]
    sizes = sorted({node.value for node in constants if node.value >= _LARGE})  # type: ignore[operator,type-var]
    for node in constants:
        if node.value in sizes:  # sizes that differ go on to differ, and to divide what they divide
            node.value = _OTHER_SIZE * (sizes.index(node.value) + 1)
    changed = ast.unparse(ast.fix_missing_locations(tree))
    return changed if changed != ast.unparse(_without_tests(text)) else ""


def refactored(text: str) -> str:
    """Layers of the file's own in place of PyTorch's, and other operators in place of known ones."""
    tree = _without_tests(text)
    changed = ast.unparse(ast.fix_missing_locations(_Refactoring().visit(tree)))
    if changed == ast.unparse(_without_tests(text)):
        return ""
    used = [code for name, code in _own_layers().items() if f"{name}(" in changed]
    return "\n\n".join([_IMPORTS, *used, changed])


def one_added(text: str) -> str:
    """A random one of the values that forward computes or returns goes through one more operator."""
    tree = _without_tests(text)
    forward = _method(tree, "forward")
    if forward is None:
        return ""
    places = [
        node
        for node in ast.walk(forward)
        if (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Return) and node.value is not None)
    ]
    if not places:
        return ""
    place = random.Random(text).choice(places)
    assert isinstance(place, ast.Assign | ast.Return) and place.value is not None
    place.value = ast.Call(ast.parse("torch.atan", mode="eval").body, [place.value], [])
    return f"import torch\n{ast.unparse(ast.fix_missing_locations(tree))}"


EDITS: dict[str, Callable[[str], str]] = {
    "as_is": as_is, "renamed": renamed, "resized": resized, "refactored": refactored, "added": one_added,
}  # fmt: skip


def init_arguments(text: str) -> list[ast.expr]:
    """The items that `get_init_inputs` returns, as literals; empty if there are none or they are no literals."""
    tree = ast.parse(text)
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = node.value
    for node in tree.body:
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == "get_init_inputs"
            and isinstance(node.body[-1], ast.Return)
        ):
            value = node.body[-1].value
            items = value.elts if isinstance(value, ast.List) else []
            try:
                known = [constants.get(item.id, item) if isinstance(item, ast.Name) else item for item in items]
                return [ast.parse(repr(ast.literal_eval(item)), mode="eval").body for item in known]
            except ValueError:
                return []
    return []


def _without_tests(text: str) -> ast.Module:
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in _TESTS]
    return tree


def _method(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == ENTRY:
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == name:
                    return part
    return None


class _Renamer(ast.NodeTransformer):
    """Renames variables, parameters, functions, classes, and the attributes that methods give `self`."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        bound = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        bound += [n.arg for n in nodes if isinstance(n, ast.arg)]
        bound += [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        own = [n.attr for n in nodes if _is_own(n) and isinstance(n.ctx, ast.Store)]  # type: ignore[attr-defined]
        for n in nodes:
            if isinstance(n, ast.ClassDef):
                own += [part.name for part in n.body if isinstance(part, ast.FunctionDef)]
        fixed = {"self", "forward", ENTRY, "args", "kwargs"}
        names = dict.fromkeys(name for name in bound if name not in fixed and not name.startswith("__"))
        attributes = dict.fromkeys(name for name in own if name not in fixed and not name.startswith("__"))
        self._names = {name: f"u{i}" for i, name in enumerate(names)}
        self._attributes = {name: f"w{i}" for i, name in enumerate(attributes)}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = self._names.get(node.arg, node.arg), None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_own(node):
            node.attr = self._attributes.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        return self._bare(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name, node.returns = self._attributes.get(node.name, self._names.get(node.name, node.name)), None
        return self._bare(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        own = isinstance(function, ast.Name) and function.id in self._names
        if own or _is_own(function) or "super()" in ast.unparse(function):
            for keyword in node.keywords:
                keyword.arg = keyword.arg and self._names.get(keyword.arg, keyword.arg)
        return self.generic_visit(node)

    def _bare(self, node: ast.ClassDef | ast.FunctionDef) -> ast.AST:
        """The definition without its docstring."""
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


_OPERATORS = {  # function -> expression of its first argument {0}, its second or its keyword `dim` {1}
    "relu": "torch.clamp({0}, min=0)",
    "sigmoid": "1 / (1 + torch.exp(-({0})))",
    "tanh": "2 / (1 + torch.exp(-2 * ({0}))) - 1",
    "gelu": "0.5 * ({0}) * (1 + torch.erf(({0}) / math.sqrt(2.0)))",
    "silu": "({0}) / (1 + torch.exp(-({0})))",
    "softplus": "torch.log(1 + torch.exp({0}))",
    "matmul": "({0}) @ ({1})",
    "bmm": "({0}) @ ({1})",
    "mm": "({0}) @ ({1})",
    "abs": "torch.maximum({0}, -({0}))",
    "softmax": "torch.exp({0}) / torch.exp({0}).sum(dim={1}, keepdim=True)",
}
_OWNERS = ("torch", "F", "nn.functional", "torch.nn.functional")
_LAYERS = {
    **{f"Conv{n}d": "Conv" for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": "BatchNorm" for n in (1, 2, 3)},
    **{name: name for name in ("Linear", "ReLU", "Sigmoid", "Tanh", "GELU", "LayerNorm", "GroupNorm", "Softmax")},
}


class _Refactoring(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        owner, _, name = ast.unparse(node.func).rpartition(".")
        if owner in _OWNERS and name in _OPERATORS and node.args:
            second = (
                node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "dim"), None)
            )
            wanted = "{1}" in _OPERATORS[name]
            if wanted == (second is not None) and len(node.args) + len(node.keywords) == 1 + wanted:
                shown = [ast.unparse(node.args[0]), ast.unparse(second) if second else ""]
                return ast.parse(f"({_OPERATORS[name].format(*shown)})", mode="eval").body
        if owner in ("nn", "torch.nn") and name in _LAYERS:
            node.func = ast.Name(f"Own{name}", ast.Load())
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow) and ast.unparse(node.right) == "2" and isinstance(node.left, ast.Name):
            return ast.BinOp(node.left, ast.Mult(), node.left)
        if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Attribute):
            return ast.BinOp(node.right, ast.Mult(), node.left)
        return node


_IMPORTS = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F"


def _own_layers() -> dict[str, str]:
    """Name -> source of a layer that computes what PyTorch's does with other operators."""
    layers = {f"OwnConv{n}d": _CONV.format(n=n, ones=", 1" * n) for n in (1, 2, 3)}
    layers |= {f"OwnBatchNorm{n}d": _BATCH_NORM.format(n=n) for n in (1, 2, 3)}
    return layers | {code.split("(")[0].split()[1]: code for code in _PLAIN.strip().split("\n\n\n")}


_CONV = """class OwnConv{n}d(nn.Conv{n}d):
    def forward(self, x):
        y = self._conv_forward(x, self.weight, None)
        if self.bias is not None:
            y = y + self.bias.view(1, -1{ones})
        return y"""
_BATCH_NORM = """class OwnBatchNorm{n}d(nn.BatchNorm{n}d):
    def forward(self, x):
        shape = [1, -1] + [1] * (x.dim() - 2)
        y = (x - self.running_mean.view(shape)) / torch.sqrt(self.running_var.view(shape) + self.eps)
        return y * self.weight.view(shape) + self.bias.view(shape)"""
_PLAIN = """
class OwnLinear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / math.sqrt(in_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        y = torch.matmul(x, self.weight.t())
        return y if self.bias is None else y + self.bias


class OwnReLU(nn.Module):
    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return torch.clamp(x, min=0)


class OwnSigmoid(nn.Module):
    def forward(self, x):
        return 1 / (1 + torch.exp(-x))


class OwnTanh(nn.Module):
    def forward(self, x):
        return 2 / (1 + torch.exp(-2 * x)) - 1


class OwnGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2.0)))


class OwnSoftmax(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        y = torch.exp(x)
        return y / y.sum(dim=self.dim, keepdim=True)


class OwnLayerNorm(nn.LayerNorm):
    def forward(self, x):
        dims = [-1 - i for i in range(len(self.normalized_shape))]
        centred = x - x.mean(dim=dims, keepdim=True)
        y = centred / torch.sqrt((centred * centred).mean(dim=dims, keepdim=True) + self.eps)
        return y * self.weight + self.bias


class OwnGroupNorm(nn.GroupNorm):
    def forward(self, x):
        grouped = x.reshape(x.shape[0], self.num_groups, -1)
        centred = grouped - grouped.mean(dim=-1, keepdim=True)
        y = centred / torch.sqrt((centred * centred).mean(dim=-1, keepdim=True) + self.eps)
        shape = [1, -1] + [1] * (x.dim() - 2)
        return y.reshape(x.shape) * self.weight.view(shape) + self.bias.view(shape)
"""
