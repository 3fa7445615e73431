"""Inductor's Triton source for a GPU that is not there.

Inductor asks torch and Triton what device it generates for. `pretend_gpu` answers those questions for a
chosen target while its context lasts, with torch's CPU and CUDA builds alike; nothing is compiled or run.
Tested with torch 2.11 to 2.13.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

import sympy
import torch
import triton
from torch._dynamo.device_interface import CudaInterface
from torch._dynamo.source import ConstantSource
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx, config, ir, lowering
from torch._inductor.choices import InductorChoices
from torch._inductor.debug import DebugContext
from torch._inductor.fx_passes import post_grad
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._prims_common import is_non_overlapping_and_dense_or_false as is_dense
from torch._subclasses import fake_tensor
from torch.fx import GraphModule, Node
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ValueRangesSLoc
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges
from triton.backends.compiler import GPUTarget

from .convolution import pure_convolutions

# The properties that Inductor's heuristics read, by compute capability.
_SHARED = {
    "warp_size": 32,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "max_threads_per_block": 1024,
    "shared_memory_per_block": 49152,
    "gcnArchName": "",
    "is_integrated": 0,
}
DEVICES = {
    "sm_80": SimpleNamespace(
        name="NVIDIA A100-SXM4-80GB", major=8, minor=0, total_memory=80 << 30, multi_processor_count=108,
        shared_memory_per_block_optin=166912, L2_cache_size=40 << 20, **_SHARED,
    ),
    "sm_90": SimpleNamespace(
        name="NVIDIA H100 80GB HBM3", major=9, minor=0, total_memory=80 << 30, multi_processor_count=132,
        shared_memory_per_block_optin=232448, L2_cache_size=50 << 20, **_SHARED,
    ),
    "sm_100": SimpleNamespace(
        name="NVIDIA B200", major=10, minor=0, total_memory=180 << 30, multi_processor_count=148,
        shared_memory_per_block_optin=232448, L2_cache_size=126 << 20, **_SHARED,
    ),
}  # fmt: skip

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


_MAX_DEPTH = 64  # of a matmul that is one block deep


class _TargetDriver:
    """Stands where Triton's GPU driver would be; it only names the target."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    @staticmethod
    def is_active() -> bool:
        return True


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


@contextlib.contextmanager
def pretend_gpu(target: str) -> Iterator[None]:
    """Makes torch, Inductor and Triton believe in one GPU of `target`, a key of `DEVICES`."""
    device = DEVICES[target]
    capability = (device.major, device.minor)
    number = device.major * 10 + device.minor

    def constant(value: Any) -> Any:
        return lambda *args, **kwargs: value

    def static(value: Any) -> Any:
        return staticmethod(constant(value))

    cuda, worker = torch.cuda, CudaInterface.Worker
    patches = [
        (fake_tensor, "init_gpu_context", _nothing),  # torch's CUDA build would look for a GPU here
        (post_grad, "reinplace_inplaceable_ops", _nothing),  # copies fakes outside their mode; torch's CPU build fails
        (torch.version, "cuda", torch.version.cuda or "13.0"),
        (cuda, "is_available", constant(True)),
        (cuda, "device_count", constant(1)),
        (cuda, "current_device", constant(0)),
        (cuda, "get_device_properties", constant(device)),
        (cuda, "get_device_capability", constant(capability)),
        (cuda, "get_device_name", constant(device.name)),
        (cuda, "is_initialized", constant(False)),
        (cuda, "_lazy_init", _nothing),
        (cuda, "synchronize", _nothing),
        (cuda, "set_device", _nothing),
        (cuda, "_exchange_device", constant(0)),
        (cuda, "_maybe_exchange_device", constant(0)),
        (CudaInterface, "is_available", static(True)),
        (CudaInterface, "device_count", static(1)),
        (CudaInterface, "current_device", static(0)),
        (CudaInterface, "synchronize", static(None)),
        (CudaInterface, "get_device_properties", static(device)),
        (CudaInterface, "get_compute_capability", static(number)),
        (worker, "get_device_properties", static(device)),
        (worker, "current_device", static(0)),
    ]
    triton_driver = triton.runtime.driver
    previous = triton_driver._active
    with contextlib.ExitStack() as stack:
        for owner, name, value in patches:
            stack.enter_context(mock.patch.object(owner, name, value))
        triton_driver.set_active(_TargetDriver(GPUTarget("cuda", number, device.warp_size)))
        stack.callback(setattr, triton_driver, "_active", previous)
        yield


class _Lowering(GraphLowering):
    """Gives sizes that are not polynomials a name, `(height - 1) // 2 + 1` for one.

    Inductor computes such a size once on the host where it meets it, but indexes with its parts; named from
    the start, it is one symbol in every index, and what follows a strided convolution fuses with it.
    """

    def run_node(self, n: Node) -> Any:
        if any(user.op == "output" for user in n.users) and isinstance(n.meta.get("val"), torch.Tensor):
            n.meta["val"] = _with_named_sizes(n.meta["val"])
        return super().run_node(n)

    def call_function(self, target: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        result = super().call_function(target, args, kwargs)
        for box in result if isinstance(result, tuple | list) else (result,):
            if isinstance(box, ir.TensorBox) and isinstance(box.data, ir.StorageBox):
                _name_sizes(box.data)
        return result


def _name_sizes(box: ir.StorageBox) -> None:
    loops = box.data
    if isinstance(loops, ir.Pointwise):
        named = [named_size(size) for size in loops.ranges]
        if named != list(loops.ranges):
            box.data = dataclasses.replace(loops, ranges=named)


def named_size(size: sympy.Expr) -> sympy.Expr:
    """`size`, or if it is compound a symbol that the caller of the kernels computes once."""
    if not isinstance(size, sympy.Expr) or size.is_number or not size.has(FloorDiv):
        return size
    sizevars, shape_env = V.graph.sizevars, V.graph.sizevars.shape_env
    symbol = sizevars.lookup_precomputed_size(size)
    if symbol not in shape_env.var_to_range:
        hint = sizevars.guarding_hint_or_throw(size)
        shape_env.backed_var_to_val[symbol] = sympy.Integer(hint)
        shape_env.var_to_range[symbol] = ValueRanges(1, int_oo)
        shape_env.var_to_range_sloc[symbol] = ValueRangesSLoc(shape_env._get_sloc(), shape_env._get_sloc())
        shape_env.var_to_sources[symbol] = [ConstantSource(symbol.name)]
    return symbol


def _with_named_sizes(value: torch.Tensor) -> torch.Tensor:
    """A fake tensor with its sizes named, and its strides in terms of them."""
    sizes = [_symint(named_size(size)) for size in ir.convert_shape_to_inductor(value.shape)]
    if not any(size.has(FloorDiv) for size in ir.convert_shape_to_inductor(value.shape)) or not is_dense(value):
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
    hint = V.graph.sizevars.guarding_hint_or_throw(size)
    return torch.SymInt(SymNode(size, V.graph.sizevars.shape_env, int, hint))


class _Choices(InductorChoices):
    """A matmul walks its depth in blocks: a whole row of it in registers would spill."""

    @staticmethod
    def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:
        is_matmul = any(
            node.node.get_reduction_type() == "dot" for node in features.scheduler_nodes() if node.is_reduction()
        )
        if is_matmul and not V.graph.sizevars.statically_known_leq(features.reduction_numel, _MAX_DEPTH):
            return False
        return InductorChoices.should_use_persistent_reduction(features, cooperative_reduction)


def generate(graph: GraphModule, inputs: Sequence[Any], options: dict[str, Any]) -> str:
    """Inductor's source for an inference graph of aten operators, given fake inputs on the pretended GPU."""
    fake_mode = next(value.fake_mode for value in inputs if isinstance(value, fake_tensor.FakeTensor))
    with (
        config.patch(options),
        pure_convolutions(),
        # Variance in two passes: as exact as Welford's update, and a kernel can be read.
        mock.patch.object(lowering, "use_two_step_variance", lambda *args, **kwargs: True),
        V.set_choices_handler(_Choices()),
        tracing(TracingContext(fake_mode)),
        torch.no_grad(),
    ):
        compile_fx.view_to_reshape(graph)
        compile_fx.fake_tensor_prop(graph, inputs)
        with V.set_fake_mode(fake_mode), V.set_debug_handler(DebugContext()):
            compile_fx._recursive_post_grad_passes(graph, is_inference=True)
            lowered = _Lowering(
                graph, example_inputs=inputs, shape_env=fake_mode.shape_env, is_inference=True, layout_opt=False
            )
            with V.set_graph_handler(lowered), V.set_extern_kernel_nodes([]):
                lowered.run(*inputs)
                code, _ = lowered.codegen()
    return str(getattr(code, "value", code))
