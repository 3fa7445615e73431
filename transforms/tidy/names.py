"""Names: kernels after the operators that they fuse, parameters after their roles, values after what made them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from .axes import Axis
from .forms import loaded
from .functions import LIBRARY
from .raw import RawKernel
from .values import Value

# Operators that only look at memory in another way.
_VIEWS = frozenset(
    "view _unsafe_view permute transpose t expand unsqueeze squeeze clone unbind select slice split split_with_sizes "
    "reshape alias detach as_strided _reshape_alias copy lift_fresh_copy empty_like empty scalar_tensor full "
    "unsafe_split unfold".split()
)
_SHORT = {
    "addmm": "linear", "mm": "matmul", "bmm": "matmul", "baddbmm": "matmul", "convolution": "conv",
    "_native_batch_norm_legit_no_training": "batch_norm", "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm", "_native_batch_norm_legit": "batch_norm",
    "max_pool2d_with_indices": "max_pool2d",
    "max_pool3d_with_indices": "max_pool3d", "_to_copy": "cast", "_unsafe_index": "index",
    "native_layer_norm_backward": "layer_norm_backward", "native_group_norm_backward": "group_norm_backward",
    "native_batch_norm_backward": "batch_norm_backward", "threshold_backward": "relu_backward",
    "_softmax_backward_data": "softmax_backward", "_log_softmax_backward_data": "log_softmax_backward",
    "embedding_dense_backward": "embedding_backward", "convolution_backward": "conv_backward",
    "max_pool2d_with_indices_backward": "max_pool2d_backward", "_unsafe_index_put": "index_put",
    "hardtanh": "clamp", "upsample_nearest2d": "upsample_nearest", "linalg_vector_norm": "norm",
    "constant_pad_nd": "pad", "clamp_min": "clamp", "clamp_max": "clamp",
}  # fmt: skip
# Reductions whose results, or what these are computed from, need no more than the name of what they are.
_NAMED_BY_ROLE = frozenset("sum mean var var_mean std std_mean amax amin max min".split())
_MADE_BY = {
    "tl.sum": "total", "nan_max": "peak", "nan_min": "low", "tl.exp": "exp",
    "tl.rsqrt": "inverse_std", "tl.sqrt": "root", "tl.sigmoid": "gate",
    "tl.dot": "product", "tl.where": "chosen", "tl.load": "value", "tl.maximum": "highest", "tl.minimum": "lowest",
    "tl.cumsum": "running", "tl.erf": "erf",
}  # fmt: skip

_VAGUE = ("tl.where", "tl.maximum", "tl.minimum")  # say less of a value than where it goes


def operator_names(operators: Sequence[str]) -> list[str]:
    """Short names of the operators, views left out unless there is nothing else."""
    named = [_SHORT.get(name, name).strip("_") for name in operators if name not in _VIEWS]
    return list(dict.fromkeys(named or [_SHORT.get(name, name).strip("_") for name in operators[-1:]]))


def buffer_name(made: str) -> str:
    """Of what is stored, see `RawKernel.stored`: "softmax_sum", and "sum" of a mean's."""
    operator, _, role = made.partition(" ")
    name = _SHORT.get(operator, operator).strip("_")
    if not role or name in _NAMED_BY_ROLE:
        return role or name
    return f"{name}_{role}"


def kernel_name(operators: Sequence[str], taken: set[str]) -> str:
    """A free name such as `conv_batch_norm_relu_kernel`."""
    names = operator_names(operators) or ["copy"]
    base = "_".join(names if len(names) <= 4 else [*names[:2], *names[-2:]]) + "_kernel"
    return free(base, taken)


def free(base: str, taken: set[str]) -> str:
    """`base`, numbered if it is taken; takes it."""
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _count(index: str) -> str:
    """The name of how many values an index has: "n_rows", "M"."""
    if index == "offset":
        return "n_elements"
    return index.upper() if len(index) == 1 else f"n_{index}s"


class Names:
    """The new names of one kernel."""

    def __init__(
        self,
        raw: RawKernel,
        axes: Sequence[Axis],
        words: Mapping[str, tuple[str, str]],
        pointers: Mapping[str, str],
        sizes: Mapping[str, str],
        values: Mapping[str, Value],
    ) -> None:
        self._values = values
        self._pointers = {parameter for parameter, kind in raw.types.items() if kind.startswith("*")}
        self._stored: dict[str, str] = {}  # value -> the parameter that it is stored through
        self._taken: set[str] = {"tl", "triton", "torch", "libdevice", "float", "True", "False", "None", "range"}
        self._taken |= LIBRARY.keys()
        self._names: dict[str, str] = {}
        for axis in axes:
            index, block = words[axis.prefix]
            self._name(axis.index, index)
            self._name(axis.mask, "mask" if index == "offset" else f"{index}_mask")
            self._name(f"{axis.prefix}offset", f"{index}_start")
            self._name(axis.numel, _count(index))
            if block:
                self._name(f"{axis.prefix.upper()}BLOCK", block)
        for parameter, kind in raw.types.items():
            if kind.startswith("*"):
                self._name(parameter, f"{pointers.get(parameter, parameter)}_ptr")
            elif parameter not in self._names and kind != "constexpr":
                self._name(parameter, sizes.get(parameter, parameter))

    def _name(self, old: str, new: str) -> None:
        self._names[old] = free(new, self._taken)

    def parameter(self, old: str) -> str:
        return self._names[old]

    def rename(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        for node in (node for statement in body for node in ast.walk(statement)):
            match node:
                case ast.Call(func=function, args=[pointer, ast.Name(value), *_]) if (
                    ast.unparse(function) == "tl.store"
                ):
                    names = [part.id for part in ast.walk(pointer) if isinstance(part, ast.Name)]
                    self._stored[value] = next(name for name in names if name in self._pointers)
        for statement in body:
            self._collect(statement)
        return [_Renaming(self._names).visit(statement) for statement in body]

    def _collect(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(old)], value=value):
                if old not in self._names:
                    self._name(old, self._proposal(old, value))
            case ast.Assign(targets=[ast.Tuple(elts=elements)]):
                for element in elements:
                    assert isinstance(element, ast.Name)
                    if element.id not in self._names:
                        self._name(element.id, "value")
            case ast.For(body=inner):
                for child in inner:
                    self._collect(child)

    def _proposal(self, old: str, value: ast.expr) -> str:
        if split := re.fullmatch(r"([xyz]|r\d_)\d+", old):
            return f"{self._names[f'{split[1]}index']}_part" if f"{split[1]}index" in self._names else "part"
        if isinstance(value, ast.Subscript):  # "tl.sum(x, 1)[:, None]"
            value = value.value
        if isinstance(value, ast.Call):
            function = ast.unparse(value.func)
            if (load := loaded(value)) is not None:
                pointer = load.args[0].left if isinstance(load.args[0], ast.BinOp) else load.args[0]
                return self._names[ast.unparse(pointer)].removesuffix("_ptr")
            if function in ("tl.zeros", "tl.full"):
                return "acc"
            if function == "tl.maximum" and ast.unparse(value.args[1]) == "0.0":
                return "relu"
            if function in _MADE_BY and function not in _VAGUE:
                return _MADE_BY[function]
        return self._by_use(old, value)

    def _by_use(self, old: str, value: ast.expr) -> str:
        """What a value is called that no function names: after where it is stored, or what it can be used for."""
        if pointer := self._names.get(self._stored.get(old, "")):
            role = pointer.removesuffix("_ptr")
            return "result" if re.fullmatch(r"out(_\d+)?", role) else role
        dtype = self._values.get(old, Value()).dtype
        if dtype == "int1":
            return "inside" if ">= 0" in ast.unparse(value) else "test"
        if dtype.startswith("int"):
            return "index"
        if re.search(r"tl\.rsqrt\([^()]* \+ ", ast.unparse(value)):  # of a variance and what keeps it from 0
            return "normed"
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and self._is_mean(value.right):
            return "centred"
        return _MADE_BY.get(ast.unparse(value.func), "value") if isinstance(value, ast.Call) else "value"

    def _is_mean(self, value: ast.expr) -> bool:
        """A mean that was loaded, or a sum divided by how many there are."""
        names = [self._names.get(node.id, "") for node in ast.walk(value) if isinstance(node, ast.Name)]
        return any("mean" in name or name.startswith("total") for name in names)


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)
