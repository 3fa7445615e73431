"""Name sizes that are computed from others, such as `(height - 1) // 2 + 1`.

Inductor computes such a size on the host where a kernel takes it as an argument, but indexes with its parts. With a
name from the start, it is one symbol in every index, and later operators can be fused with a strided convolution.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch._inductor import ir, lowering
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._prims_common import is_non_overlapping_and_dense_or_false as is_dense
from torch.fx import Node
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ValueRangesSLoc
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges


@contextlib.contextmanager
def symbolic_roots() -> Iterator[None]:
    """Compute `math.sqrt(x.shape[-1])` symbolically; the function itself would replace the symbol by its number."""
    root = math.sqrt

    def square_root(value: Any) -> Any:
        return value**0.5 if isinstance(value, torch.SymInt | torch.SymFloat) else root(value)

    with mock.patch.object(math, "sqrt", square_root):
        yield


class NamingLowering(GraphLowering):
    """Inductor's lowering of a graph, with named sizes."""

    def run_node(self, n: Node) -> Any:
        if any(user.op == "output" for user in n.users) and isinstance(n.meta.get("val"), torch.Tensor):
            n.meta["val"] = _with_named_sizes(n.meta["val"])
        return super().run_node(n)

    def init_wrapper_code(self, *args: Any, **kwargs: Any) -> None:
        """Compute all named sizes first.

        Inductor computes a size before the first kernel that takes it, which may be after a buffer of that size.
        """
        super().init_wrapper_code(*args, **kwargs)
        for symbol in self.sizevars.inv_precomputed_replacements:
            self.wrapper_code.ensure_size_computed(symbol)

    def output(self, target: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Copy each result that Inductor computes into a part of another result, as for `cat`.

        In eager mode such results do not share memory: for example the output and the last state of a recurrent layer.
        """
        (results,) = args
        clone = lowering.lowerings[torch.ops.aten.clone.default]
        own = [clone(value) if _is_part(value) else value for value in results]
        return super().output(target, (own,), kwargs)

    def register_operation_list(self, operation_names: list[str]) -> str:
        """Give each operation its own kernel. By default, a `cat` of many becomes one kernel of several branches."""
        return f"list_{'_'.join(operation_names)}"

    def call_function(self, target: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        result = super().call_function(target, args, kwargs)
        for box in result if isinstance(result, tuple | list) else (result,):
            if isinstance(box, ir.TensorBox) and isinstance(box.data, ir.StorageBox):
                _name_sizes(box.data)
        return result


def _is_part(value: Any) -> bool:
    while isinstance(value, ir.MutableBox | ir.BaseView):
        value = value.data
    return isinstance(value, ir.Buffer) and isinstance(value.layout, ir.NonOwningLayout)


def _name_sizes(box: ir.StorageBox) -> None:
    loops = box.data
    if isinstance(loops, ir.Pointwise):
        named = [named_size(size) for size in loops.ranges]
        if named != list(loops.ranges):
            box.data = dataclasses.replace(loops, ranges=named)


def named_size(size: sympy.Expr) -> sympy.Expr:
    """`size`, or a symbol that the caller of the kernels computes once if `size` has a division."""
    if not isinstance(size, sympy.Expr) or size.is_number or not size.has(FloorDiv):
        return size
    size = _canonical(size)
    sizevars, shape_env = V.graph.sizevars, V.graph.sizevars.shape_env
    symbol = sizevars.lookup_precomputed_size(size)
    if symbol not in shape_env.var_to_range:
        _hints(shape_env)[symbol] = sympy.Integer(_hint(size))
        shape_env.var_to_range[symbol] = ValueRanges(1, int_oo)
        shape_env.var_to_range_sloc[symbol] = ValueRangesSLoc(shape_env._get_sloc(), shape_env._get_sloc())
        shape_env.var_to_sources[symbol] = [ConstantSource(symbol.name)]
    return symbol


def _canonical(size: sympy.Expr) -> sympy.Expr:
    """One form for sizes that operators compute in different ways: `(s + 1) // 2` for `1 + (s - 1) // 2`."""

    def rounded(base: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
        constant, rest = sympy.expand(base).as_coeff_Add()
        if not (divisor.is_Integer and constant.is_Integer):
            return FloorDiv(base, divisor)
        return FloorDiv(rest + constant % divisor, divisor) + constant // divisor

    return sympy.expand(size.replace(FloorDiv, rounded))


def _with_named_sizes(value: torch.Tensor) -> torch.Tensor:
    """A fake tensor with named sizes, and strides in terms of them."""
    shape = ir.convert_shape_to_inductor(value.shape)
    sizes = [_symint(named_size(size)) for size in shape]
    if not any(size.has(FloorDiv) for size in shape) or not is_dense(value):
        return value
    order = ir.get_stride_order(value.stride())
    strides: list[Any] = [1] * value.dim()
    span: Any = 1
    for dim in sorted(range(value.dim()), key=lambda dim: order[dim]):  # innermost first
        strides[dim] = span
        span = span * sizes[dim]
    return value.new_empty_strided(sizes, strides)


def _symint(size: Any) -> Any:
    if isinstance(size, int) or size.is_number:
        return int(size)
    return torch.SymInt(SymNode(size, V.graph.sizevars.shape_env, int, _hint(size)))


def _hints(shape_env: ShapeEnv) -> dict[sympy.Symbol, sympy.Integer]:
    """Symbol -> its size in the first workload; torch 2.12 renamed the attribute."""
    return shape_env.backed_var_to_val if hasattr(shape_env, "backed_var_to_val") else shape_env.var_to_val


def _hint(size: sympy.Expr) -> int:
    return int(size.xreplace(_hints(V.graph.sizevars.shape_env)))
