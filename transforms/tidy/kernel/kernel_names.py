"""Name kernels after the operators that they fuse, parameters after their roles, values after their origins."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from ..read.inductor_source import RawKernel
from ..syntax.ast_tools import called, names_in, rename, unused_name, walk
from .addresses import COMPUTED
from .forms import conjuncts, loaded
from .iteration_space import Axis
from .launch_options import Vocabulary
from .named_parts import SUM
from .triton_functions import LIBRARY
from .value_types import Value

# Operators that give a view of their input.
_VIEWS = frozenset(
    "view _unsafe_view permute transpose t expand unsqueeze squeeze clone unbind select slice split split_with_sizes "
    "reshape alias detach as_strided _reshape_alias copy lift_fresh lift_fresh_copy empty_like empty scalar_tensor "
    "full unsafe_split unfold".split()
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
    "constant_pad_nd": "pad", "_prelu_kernel": "prelu", "clamp_min": "clamp", "clamp_max": "clamp",
}  # fmt: skip
# Operators of several steps, whose sum or maximum may be stored in between; and operators named by such a step alone.
_IN_STEPS = frozenset("softmax log_softmax safe_softmax logsumexp layer_norm group_norm batch_norm norm".split())
_NAMED_BY_STEP = frozenset("mean var var_mean std std_mean".split())
_ARITHMETIC = frozenset("add sub mul div neg pow where clone copy _to_copy cat stack reciprocal index".split())
# Name of a size -> name of the index along its axis.
_ALONG = {"height": "h", "width": "w", "depth": "d", "length": "position", "channels": "channel"}
_PER_CHANNEL = re.compile(r"(weight|bias|running_mean|running_var|gamma|beta|scale|shift)_ptr$")
_MADE_BY = {
    "tl.sum": "total", "nan_max": "peak", "nan_min": "low", "tl.exp": "exp",
    "tl.rsqrt": "inverse_std", "tl.sqrt": "root", "tl.sigmoid": "gate",
    "tl.dot": "product", "tl.where": "chosen", "tl.load": "value", "tl.maximum": "highest", "tl.minimum": "lowest",
    "tl.cumsum": "running", "tl.erf": "erf",
}  # fmt: skip

_VAGUE = ("tl.where", "tl.maximum", "tl.minimum")  # these describe a value less well than its use does


def operator_names(operators: Sequence[str]) -> list[str]:
    """Short names of the operators, without views unless there is nothing else."""
    named = [_SHORT.get(name, name).strip("_") for name in operators if name not in _VIEWS]
    return list(dict.fromkeys(named or [_SHORT.get(name, name).strip("_") for name in operators[-1:]]))


def buffer_name(made: str) -> str:
    """The name of a buffer for an entry of `RawKernel.stored`: "relu", "softmax_sum"; "sum" for the sum of a mean."""
    operator, _, role = made.partition(" ")
    name = _SHORT.get(operator, operator).strip("_")
    if role and name in _NAMED_BY_STEP:
        return role
    return f"{name}_{role}" if role and name in _IN_STEPS else name


def kernel_name(operators: Sequence[str], taken: set[str]) -> str:
    """An unused name such as `conv_batch_norm_relu_kernel`."""
    names = operator_names(operators) or ["copy"]
    return unused_name("_".join(names if len(names) <= 4 else [*names[:2], *names[-2:]]) + "_kernel", taken)


def _count(index: str) -> str:
    """The name of an index's number of values: "n_rows", "M"."""
    if index == "offset":
        return "n_elements"
    return index.upper() if len(index) == 1 else f"n_{index}s"


def index_along(size: str) -> str:
    """The name of the index along the axis of a size, "h" for "height" and "conv_2_height"; "" if unknown."""
    *before, last = [part for part in size.split("_") if not part.isdigit()] or [""]
    return "" if before and before[-1] in _ALONG else _ALONG.get(last, "")


def _part(value: ast.expr, whole: str) -> str:
    """The name of a part of the index `whole`: "inner" changes fastest, "outer" slowest."""
    match value:
        case ast.BinOp(left=ast.Name(), op=ast.Mod()):
            place = "inner"
        case ast.BinOp(left=ast.Name(), op=ast.FloorDiv()):
            place = "outer"
        case _:
            place = "middle"
    return place if whole in ("", "offset") else f"{place}_{whole}"


class KernelNames:
    """The new names of one kernel."""

    def __init__(
        self,
        raw: RawKernel,
        axes: Sequence[Axis],
        words: Vocabulary,
        pointers: Mapping[str, str],
        sizes: Mapping[str, str],
        values: Mapping[str, Value],
        same: Mapping[str, str],
    ) -> None:
        """`pointers` and `sizes` name parameters by their roles; `same` maps a size to one whose name it gets."""
        self._values = values
        self._operators = {name: origin.operator for name, origin in raw.origins.items()}
        self._results = set({origin: name for name, origin in raw.origins.items()}.values())
        self._bounds: dict[str, str] = {}  # value -> the size that it is compared with
        self._channels: set[str] = set()  # indices into parameters with one value a channel
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
                self._name(axis.block_name, block)
        for parameter, kind in raw.types.items():
            if kind.startswith("*"):
                self._name(parameter, f"{pointers.get(parameter, parameter)}_ptr")
            elif parameter not in self._names and kind != "constexpr":
                self._name(parameter, sizes.get(parameter, parameter))
        for one, other in same.items():
            old, new = self._names[one], self._names[other]
            self._names[one] = self._names[other] = old if re.fullmatch(r"size(_\d+)?", new) else new

    def _name(self, old: str, new: str) -> None:
        self._names[old] = unused_name(new, self._taken)

    def parameter(self, old: str) -> str:
        return self._names[old]

    def rename(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rename everything in the body of the kernel."""
        for node in (node for statement in body for node in walk(statement)):
            match node:
                case ast.Call(args=[pointer, ast.Name(value), *_]) if called(node) == "tl.store":
                    self._stored[value] = next(name for name in names_in(pointer) if name in self._pointers)
                case ast.Compare(left=ast.Name(value), ops=[ast.Lt()], comparators=[ast.Name(size)]):
                    self._bounds[value] = self._names.get(size, "")
                case ast.Call(args=[ast.BinOp(left=ast.Name(pointer), op=ast.Add(), right=ast.Name(value)), *_]):
                    if _PER_CHANNEL.search(self._names.get(pointer, "")):
                        self._channels.add(value)
        for statement in body:
            self._collect(statement)
        return [rename(statement, self._names) for statement in body]

    def _collect(self, statement: ast.stmt) -> None:
        """Choose names for the values that a statement assigns."""
        match statement:
            case ast.Assign(targets=[ast.Name(old)], value=value) if old not in self._names:
                self._name(old, self._proposal(old, value))
            case ast.Assign(targets=[ast.Tuple() as targets]):
                for old in names_in(targets):
                    if old not in self._names:
                        self._name(old, "value")
            case ast.For(body=inner):
                for child in inner:
                    self._collect(child)

    def _proposal(self, old: str, value: ast.expr) -> str:
        if old.startswith(COMPUTED):
            return old.removeprefix(COMPUTED)
        if old.startswith(SUM):
            return "offset"
        if split := re.fullmatch(r"([xyz]|r\d_)\d+", old):
            return self._index_name(old, value) or _part(value, self._names.get(f"{split[1]}index", ""))
        if isinstance(value, ast.Subscript):  # "tl.sum(x, 1)[:, None]"
            value = value.value
        function = called(value)
        if (load := loaded(value)) is not None:
            pointer = load.args[0].left if isinstance(load.args[0], ast.BinOp) else load.args[0]
            return self._names[ast.unparse(pointer)].removesuffix("_ptr")
        if function in ("tl.zeros", "tl.full"):
            return "acc"
        if function == "tl.maximum" and self._operators.get(old, "relu") == "relu":
            assert isinstance(value, ast.Call)
            if ast.unparse(value.args[1]) == "0.0":
                return "relu"
        if function in _MADE_BY and function not in _VAGUE:
            return _MADE_BY[function]
        return self._by_use(old, value)

    def _index_name(self, old: str, value: ast.expr) -> str:
        """The name of a part of an index after the axis that it indexes; "" if the axis is unknown."""
        match value:
            case ast.BinOp(op=ast.Mod(), right=ast.Name(size)) if word := index_along(self._names.get(size, "")):
                return word
            case ast.BinOp(left=ast.Name(), op=ast.FloorDiv(), right=ast.Name(size)):
                if self._names.get(size, "").startswith("channels_"):
                    return "image"
        return "channel" if old in self._channels else ""

    def _by_use(self, old: str, value: ast.expr) -> str:
        """The name of a value after its use, its type or its operator."""
        if pointer := self._names.get(self._stored.get(old, "")):
            role = pointer.removesuffix("_ptr")
            return "result" if re.fullmatch(r"out(_\d+)?", role) else role
        dtype = self._values.get(old, Value()).dtype
        if dtype == "int1":
            return "inside" if self._is_within(value) else "test"
        if dtype.startswith("int"):
            return index_along(self._bounds.get(old, "")) or "index"
        if re.search(r"tl\.rsqrt\([^()]* \+ ", ast.unparse(value)):  # the root of a variance plus an epsilon
            return "normed"
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and self._is_mean(value.right):
            return "centred"
        if old in self._results and (operator := self._operators[old]) and operator not in _ARITHMETIC:
            return buffer_name(operator)
        return _MADE_BY.get(called(value), "value")

    def _is_within(self, value: ast.expr) -> bool:
        """True if a condition tests bounds from below and from above."""
        parts = [self._names.get(part.id, "") if isinstance(part, ast.Name) else "" for part in conjuncts(value)]
        if all(part.startswith("inside") for part in parts):
            return True
        text = ast.unparse(value)
        return ">= 0" in text or (">= " in text and "< " in text)

    def _is_mean(self, value: ast.expr) -> bool:
        """True if the expression has a loaded mean or a sum in it."""
        names = [self._names.get(name, "") for name in names_in(value)]
        return any("mean" in name or name.startswith("total") for name in names)
