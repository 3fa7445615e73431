"""Generate Inductor's Triton source for a graph, without compiling or running it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from unittest import mock

import sympy
import torch
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx, config, lowering
from torch._inductor.choices import InductorChoices
from torch._inductor.codegen import common
from torch._inductor.codegen.block_analysis import BlockPatternMatcher
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.triton import TritonKernelOverrides, TritonOverrides, TritonScheduling
from torch._inductor.debug import DebugContext
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V
from torch._inductor.virtualized import _ops as ops
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule
from torch.utils._sympy.functions import Identity

from .operator_lowerings import pure_operators
from .origins import sources_of_values, with_values
from .refusal import NotLowered
from .sizes import NamingLowering

OPTIONS: dict[str, Any] = {
    # Pure Triton: matmuls as tl.dot, sorts as bitonic networks.
    "triton.native_matmul": True,
    "triton.decompose_sort_ops": True,
    # One plain kernel for each fused group, with no choice left to tuning.
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
    # Readability: each buffer has one meaning, sizes are plain, no run-time checks.
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
    # A grid with the axes that a kernel tells apart, and the same kernels: no axis keeps operators apart.
    "triton.prefer_nd_tiling": True,
    "triton.max_tiles": 3,
    "triton.tile_reductions": True,
    "triton.tiling_prevents_pointwise_fusion": False,
    "triton.tiling_prevents_reduction_fusion": False,
}

_EXTERN = re.compile(r"= torch\.ops\.aten\.(\w+)|^\s+extern_kernels\.(\w+)", re.MULTILINE)
_PATHS = re.compile(r"^# kernel path: .*\n", re.MULTILINE)  # in the scratch folder of this guest
_MAX_DEPTH = 64  # most depth of a matmul that is one block deep


class _Choices(InductorChoices):
    """Inductor's choices, except for matmuls.

    A matmul loops over its depth in blocks, as a whole row would spill from registers. No other reduction shares its
    kernel, as blocks of other reductions have another layout.
    """

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


def _masked(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Mask loads of values that the kernel has just stored too.

    Inductor masks a load where it loads, and reuses a stored value without the mask. With sizes of 1, the padding of a
    convolution has the same index as the value inside.
    """

    def masked(mask: Any, body: Any, other: Any) -> Any:
        result = plain(mask, body, other)
        (given,) = body.graph.find_nodes(op="output")[0].args
        if given.target == "load" and given.args[1] in V.kernel.cse.store_cache:
            return ops.where(mask, result, ops.constant(other, V.graph.get_dtype(given.args[1])))
        return result

    return masked


def _of_programs(create_tiling: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's tiling of a kernel, of whose reduced axes one is made: only programs have several axes."""

    def create(programs: Sequence[sympy.Expr], reduced: Sequence[sympy.Expr]) -> Any:
        return create_tiling(programs, [sympy_product(reduced)] if reduced else [])

    return create


def _at_most(number: int) -> Callable[..., str]:
    """Inductor's function that defines a kernel, with a limit of `number` kernels for a graph.

    Raises:
        NotLowered: the graph has more kernels; the rest of it is not generated.
    """
    define = TritonScheduling.define_kernel

    def counted(*args: Any, **kwargs: Any) -> str:
        name = define(*args, **kwargs)
        if len(V.graph.wrapper_code.src_to_kernel) > number:
            raise NotLowered("TOO_MANY_KERNELS", f"more than {number} kernels")
        return name

    return counted


def extern_operators(code: str) -> list[str]:
    """Operators that Inductor's source calls, for want of a Triton lowering."""
    return sorted({a or b for a, b in _EXTERN.findall(code)})


def generate(
    graph: GraphModule, inputs: Sequence[Any], options: dict[str, Any], most_kernels: int
) -> tuple[str, dict[sympy.Symbol, sympy.Expr]]:
    """Inductor's source for an inference graph of aten operators, and the sizes that it computes from others.

    `inputs` are fake tensors on the pretended GPU. The nodes of the graph have their fake values, as from `make_fx`.

    Raises:
        NotLowered: the source has no kernel, or more than `most_kernels`.
    """
    fake_mode = next(value.fake_mode for value in inputs if isinstance(value, FakeTensor))
    known = {name: value for name, value in options.items() if name in config._config}
    with (
        config.patch(known),
        pure_operators(),
        sources_of_values() as values,
        # Variance in two passes: as exact as Welford's update, and more readable.
        mock.patch.object(lowering, "use_two_step_variance", lambda *args, **kwargs: True),
        # Axes are those of the loops: to match them in addresses takes sympy several times as long as all else.
        mock.patch.object(BlockPatternMatcher, "match_mod_div_block_expr", lambda *args: None),
        mock.patch.object(SIMDScheduling, "create_tiling", staticmethod(_of_programs(SIMDScheduling.create_tiling))),
        # A proof for symbolic sizes takes a quarter of the time; workloads have no tensors of 2**31 elements.
        mock.patch.object(SIMDScheduling, "can_use_32bit_indexing", lambda *args: True),
        # libdevice, where Inductor copies nvcc's assembly.
        mock.patch.object(TritonOverrides, "atan", staticmethod(lambda x: f"libdevice.atan({x})")),
        mock.patch.object(TritonKernelOverrides, "masked", staticmethod(_masked(TritonKernelOverrides.masked))),
        # `Identity` keeps indices of `cat` from expanding; sympy could not compare an `Identity` of a number.
        mock.patch.object(Identity, "eval", classmethod(lambda cls, value: value if value.is_Number else None)),
        mock.patch.object(TritonScheduling, "define_kernel", _at_most(most_kernels)),
        # Inductor makes it anew for each operation of a kernel, with the same hundreds of attributes.
        mock.patch.object(common, "DtypePropagationOpsHandler", functools.cache(common.DtypePropagationOpsHandler)),
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
    text = with_values(_PATHS.sub("", str(getattr(code, "value", code))), values)
    if "async_compile.triton(" not in text:
        if extern := extern_operators(text):
            raise NotLowered("UNSUPPORTED_OP", ", ".join(extern))
        raise NotLowered("NOTHING_TO_LOWER", "views or copies")
    return text, dict(lowered.sizevars.inv_precomputed_replacements)
