"""Inductor's Triton source for a graph; nothing is compiled or run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from unittest import mock

import sympy
import torch
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx, config, lowering
from torch._inductor.choices import InductorChoices
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.triton import TritonKernelOverrides, TritonOverrides, TritonScheduling
from torch._inductor.debug import DebugContext
from torch._inductor.virtualized import V
from torch._inductor.virtualized import _ops as ops
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule
from torch.utils._sympy.functions import Identity

from .operator_lowerings import pure_operators
from .origins import sources_of_values, told
from .refusal import Refused
from .sizes import NamingLowering

OPTIONS: dict[str, Any] = {
    # Pure Triton: matmuls are generated from scratch as tl.dot, sorts as bitonic networks.
    "triton.native_matmul": True,
    "triton.decompose_sort_ops": True,
    # One plain kernel for each fused group: what is generated is what runs, with no choice left to tuning.
    "max_autotune": False,
    "max_autotune_gemm": False,
    "triton.autotune_pointwise": False,
    "triton.multi_kernel": 0,
    "triton.cooperative_reductions": False,
    "triton.mix_order_reduction": False,
    "combo_kernels": False,
    "split_reductions": False,
    "online_softmax": False,
    "benchmark_kernel": False,
    # Readability: a buffer has one meaning, sizes are what they look like, no run-time checks.
    "allow_buffer_reuse": False,
    "inplace_buffers": False,
    "comprehensive_padding": False,
    "memory_planning": False,
    "layout_optimization": False,
    "size_asserts": False,
    "alignment_asserts": False,
    "assert_indirect_indexing": False,
    "nan_asserts": False,
    "triton.codegen_upcast_to_fp32": True,
    "triton.descriptive_names": "original_aten",
    "graph_partition": False,
    # The process: no worker pool, no cache on disk.
    "compile_threads": 1,
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
}


_EXTERN = re.compile(r"= torch\.ops\.aten\.(\w+)|^\s+extern_kernels\.(\w+)", re.MULTILINE)
_PATHS = re.compile(r"^# kernel path: .*\n", re.MULTILINE)  # of the cache in this guest's scratch folder
_MAX_DEPTH = 64  # of a matmul that is one block deep


class _Choices(InductorChoices):
    """A matmul walks its depth in blocks, as a whole row of it in registers would spill, and has a kernel to itself:
    what another reduction keeps in its blocks is laid out in another way."""

    @staticmethod
    def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:
        is_matmul = "dot" in _reductions(features.scheduler_nodes())
        if is_matmul and not V.graph.sizevars.statically_known_leq(features.reduction_numel, _MAX_DEPTH):
            return False
        return InductorChoices.should_use_persistent_reduction(features, cooperative_reduction)

    @staticmethod
    def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
        kinds = _reductions([*node1.get_nodes(), *node2.get_nodes()])
        if "dot" in kinds and len(kinds) > 1:
            return False
        return InductorChoices.can_fuse(scheduler, node1, node2, shared_data_score)


def _reductions(nodes: Iterable[Any]) -> set[str]:
    return {node.node.get_reduction_type() for node in nodes if node.is_reduction()}


def _arc_tangent(x: Any) -> str:
    """Triton's own, where Inductor spells out what nvcc makes of it in assembly."""
    return f"libdevice.atan({x})"


def _number_itself(cls: type, value: sympy.Expr) -> sympy.Expr | None:
    """Of `Identity`, which keeps an index of `cat` from being expanded. Of a number it only gets in the way: sympy
    cannot compare what is computed from it, and a maximum of that raises."""
    return value if value.is_Number else None


def _masked(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's masking. It masks a load where it loads, which it does not if the kernel has the value at hand: with
    sizes of 1, what is read outside of a tensor, as the padding of a convolution, has the place of what is inside."""

    def masked(mask: Any, body: Any, other: Any) -> Any:
        result = plain(mask, body, other)
        (given,) = body.graph.find_nodes(op="output")[0].args
        if given.target == "load" and given.args[1] in V.kernel.cse.store_cache:
            return ops.where(mask, result, ops.constant(other, V.graph.get_dtype(given.args[1])))
        return result

    return masked


def _at_most(number: int) -> Callable[..., str]:
    """Inductor's definition of a kernel, for one graph; a kernel that is launched often is defined once.

    Raises:
        Refused: it has more than `number` kernels; the rest of a deep graph is then not written.
    """
    define = TritonScheduling.define_kernel

    def counted(*args: Any, **kwargs: Any) -> str:
        name = define(*args, **kwargs)
        if len(V.graph.wrapper_code.src_to_kernel) > number:
            raise Refused("TOO_MANY_KERNELS", f"more than {number} kernels")
        return name

    return counted


def generate(
    graph: GraphModule, inputs: Sequence[Any], options: dict[str, Any], most_kernels: int
) -> tuple[str, dict[sympy.Symbol, sympy.Expr]]:
    """Inductor's source for an inference graph of aten operators, and the sizes that it computes from others.

    `inputs` are fake tensors on the pretended GPU; each node knows its value, as `make_fx` leaves it.

    Raises:
        Refused: there is no kernel in it, or more than `most_kernels`.
    """
    fake_mode = next(value.fake_mode for value in inputs if isinstance(value, FakeTensor))
    known = {name: value for name, value in options.items() if name in config._config}
    with (
        config.patch(known),
        pure_operators(),
        sources_of_values() as values,
        # Variance in two passes: as exact as Welford's update, and a kernel can be read.
        mock.patch.object(lowering, "use_two_step_variance", lambda *args, **kwargs: True),
        # Proving this of symbolic sizes takes a quarter of the time; tensors of 2**31 elements are not our workloads.
        mock.patch.object(SIMDScheduling, "can_use_32bit_indexing", lambda *args: True),
        mock.patch.object(TritonOverrides, "atan", staticmethod(_arc_tangent)),
        mock.patch.object(TritonKernelOverrides, "masked", staticmethod(_masked(TritonKernelOverrides.masked))),
        mock.patch.object(Identity, "eval", classmethod(_number_itself)),
        mock.patch.object(TritonScheduling, "define_kernel", _at_most(most_kernels)),
        V.set_choices_handler(_Choices()),
        tracing(TracingContext(fake_mode)),
        torch.no_grad(),
    ):
        compile_fx.view_to_reshape(graph)
        with V.set_fake_mode(fake_mode), V.set_debug_handler(DebugContext()):
            compile_fx._recursive_post_grad_passes(graph, is_inference=True)
            lowered = NamingLowering(
                graph, example_inputs=inputs, shape_env=fake_mode.shape_env, is_inference=True, layout_opt=False
            )
            with V.set_graph_handler(lowered), V.set_extern_kernel_nodes([]):
                lowered.run(*inputs)
                code, _ = lowered.codegen()
    text = told(_PATHS.sub("", str(getattr(code, "value", code))), values)
    kernels = text.count("async_compile.triton(")
    if kernels == 0:
        extern = sorted({a or b for a, b in _EXTERN.findall(text)})
        raise Refused(*(("UNSUPPORTED_OP", ", ".join(extern)) if extern else ("NOTHING_TO_LOWER", "views or copies")))
    return text, dict(lowered.sizevars.inv_precomputed_replacements)
