"""Guest job: lower a module to Inductor's source, with the meaning of its arguments."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn.modules.conv import _ConvNd

from kernelquarry.pipeline.sandbox.jobs.lower import LowerRequest

from ..lib.load_source import load_source
from ..lowering.constructor_sizes import ConstructorSizes, constructor_sizes
from ..lowering.devices import pretend_gpu
from ..lowering.functional_graph import State, Trace, differing_sizes, placeholders, state_of, trace
from ..lowering.inductor import OPTIONS, extern_operators, generate
from ..lowering.joint import Halves, Joint, cut, results
from ..lowering.quick_sympy import quick_sympy
from ..lowering.refusal import NotLowered
from ..probing.guarded_call import TooSlow, cpu_time_cap

_CONSTRUCTOR_S = 15.0  # most CPU seconds with symbols that follow from the constructor; the guest has 60

_process = contextlib.ExitStack()  # patches that last as long as this process and its forks


def warm() -> None:
    """Lower small modules, which imports Inductor and fills its caches and sympy's: 4 s that each guest would pay."""
    import tqdm

    tqdm.tqdm.monitor_interval = 0  # torch.fx makes a progress bar, whose monitor would be a second thread
    torch.set_num_threads(1)
    _process.enter_context(quick_sympy())
    layers = [nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU6(), nn.Flatten(2), nn.Softmax(-1), nn.GELU()]
    layers += [nn.Unflatten(1, (2, 4)), nn.AdaptiveAvgPool2d((None, 8)), nn.Linear(8, 4), nn.LayerNorm(4)]
    _lower_small(nn.Sequential(*layers), ([2, 8, 6, 8], [3, 8, 5, 7]))
    _lower_small(_Attention(), ([2, 6, 16], [3, 5, 16]))


class _Attention(nn.Module):
    """Operators that many modules have on inputs `(batch, length, channels)`, for `warm`."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        heads = self.qkv(self.norm(x)).view(batch, length, 3, 4, channels // 4).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind(0)
        weights = (q @ k.transpose(-2, -1) * 0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, channels))
        pooled = torch.cat([x.mean(1), x.amax(1)], -1)
        return x * torch.sigmoid(pooled).chunk(2, -1)[0].unsqueeze(1)


def _lower_small(model: nn.Module, shapes: Sequence[Sequence[int]]) -> None:
    workloads = tuple(
        {"tensors": [{"name": "x", "shape": shape, "dtype": "float32"}], "args": '[{"tensor":0}]', "kwargs": "{}"}
        for shape in shapes
    )
    _lower(model.eval(), LowerRequest("", workloads, "sm_90"))


def run(request: LowerRequest, tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Lower the module for the target and all workloads.

    The reply has `inductor_code`, `bindings`, `outputs`, `shape_general` and `guards`, with gradients `backward`, see
    `_half`, and with symbols for sizes of the state what `_described` adds; or `reason` (the name of a member of
    `Reason`) and `evidence`.
    """
    module = load_source(request.code, "reference")
    torch.manual_seed(0)
    model = _construct(module)
    if request.dtype != "float32":
        model = model.to(getattr(torch, request.dtype))
    try:
        reply = _lower_for_constructor(model, module.get_init_inputs(), request) or _lower(model, request)
        if any(source == "literal" for _, source, _ in reply["bindings"]):
            torch.manual_seed(1)
            _check_literals(reply["bindings"], _construct(module), request.workloads[0])
        return reply, {}
    except NotLowered as refusal:
        reason, evidence = refusal.args
        return {"reason": reason, "evidence": evidence}, {}


def _construct(module: Any) -> nn.Module:
    model: nn.Module = module.Model(*module.get_init_inputs())
    model.eval()  # a module's own `train` may return nothing
    return model


def _lower_for_constructor(model: nn.Module, arguments: Sequence[Any], request: LowerRequest) -> dict[str, Any] | None:
    """Lower with the sizes that follow from the constructor's arguments as symbols; None if that is not possible."""
    if request.training or not request.constructor_sizes:
        return None
    try:
        with cpu_time_cap(_CONSTRUCTOR_S):
            return _settled(model, arguments, request)
    except (Exception, TooSlow):  # noqa: BLE001 - any: the module is lowered with numbers next
        traceback.print_exc()
    return None


def _settled(model: nn.Module, arguments: Sequence[Any], request: LowerRequest) -> dict[str, Any] | None:
    """Lower with symbols for the sizes that follow from those arguments whose numbers the trace does not depend on.

    Sizes of inputs that no workload varies become symbols where the trace requires that they follow from the state.
    """
    state, differing = state_of(model), differing_sizes(request.workloads)
    is_general, shapes = differing is not None, [spec["shape"] for spec in request.workloads[0]["tensors"]]
    if differing is None or not any(map(any, differing)):
        request, differing = replace(request, workloads=request.workloads[:1]), [[False] * len(one) for one in shapes]
    fixed, untied = _kernel_sizes(model, constructor_sizes(model, arguments)), set[str]()
    while (constructor := constructor_sizes(model, arguments, fixed)) is not None:
        candidates = {
            f"input{index}_{axis}": (index, axis)
            for index, shape in enumerate(shapes)
            for axis, size in enumerate(shape)
            if size > 1 and size in constructor.values and not differing[index][axis]
        }
        symbolic = [list(flags) for flags in differing]
        for name in candidates.keys() - untied:
            index, axis = candidates[name]
            symbolic[index][axis] = True
        traced = trace(model, state, request.workloads[0], symbolic, constructor=constructor)
        others = [constructor.base_sizes(one) for one in constructor.constructions]
        loose = candidates.keys() - untied - traced.tied_inputs(others[0]).keys()
        contradicted = set[str]().union(*(traced.fixed_sizes(shapes, other, {}) for other in others))
        if not loose and not contradicted:
            reply = _generated(traced, state, request, is_general, others)
            if extern_operators(reply["inductor_code"]):
                return None  # with numbers, a kernel may be possible
            return reply | _described(traced, state, constructor)
        untied |= loose
        fixed |= {i for base in constructor.bases.values() if base.name in contradicted for i in base.arguments}
    return None


def _kernel_sizes(model: nn.Module, constructor: ConstructorSizes | None) -> set[int]:
    """Arguments that sizes of convolutions' kernels follow from: as symbols, they turn matrix products into sums."""
    if constructor is None:
        return set()
    layers = {f"{name}.weight" for name, layer in model.named_modules() if isinstance(layer, _ConvNd)}
    spatial = [found.base for (name, axis), found in constructor.sizes.items() if name in layers and axis >= 2]
    return {index for base in spatial for index in constructor.bases[base].arguments}


def _described(traced: Trace, state: Sequence[State], constructor: ConstructorSizes) -> dict[str, Any]:
    """The sizes of the state that are symbols, and for other arguments the shapes of state and the sizes of inputs."""
    constructions = []
    for one in constructor.constructions:
        shapes = [(s.name, [one.sizes[s.name, axis] for axis in range(s.tensor.dim())]) for s in state]
        inputs = traced.tied_inputs(constructor.base_sizes(one))
        constructions.append(([*one.arguments.items()], shapes, [*inputs.items()]))
    words = [(base.name, base.word) for base in constructor.bases.values()]
    return {"constructor_sizes": words, "constructions": constructions}


def _lower(model: nn.Module, request: LowerRequest) -> dict[str, Any]:
    """Lower for all workloads or, if one source cannot serve all their sizes, for the first."""
    state, first = state_of(model), replace(request, workloads=request.workloads[:1])
    differing = differing_sizes(request.workloads)
    if differing is None or not any(map(any, differing)):
        return _attempt(model, state, first, None, is_general=differing is not None)
    try:
        return _attempt(model, state, request, differing, is_general=True)
    except NotLowered as refusal:
        if refusal.args[0] != "GRAPH_BREAK":
            raise
    except Exception:  # noqa: BLE001 - the compiler is weakest with symbolic sizes; numbers are tried next
        traceback.print_exc()
    return _attempt(model, state, first, None, is_general=False)


def _attempt(
    model: nn.Module,
    state: Sequence[State],
    request: LowerRequest,
    symbolic: Sequence[Sequence[bool]] | None,
    is_general: bool,
) -> dict[str, Any]:
    """Lower with the sizes that `symbolic` names as symbols, and the others as numbers.

    Raises:
        NotLowered: the module cannot be lowered, or a workload contradicts an assumption on a symbol.
    """
    traced = trace(model, state, request.workloads[0], symbolic, request.training)
    return _generated(traced, state, request, is_general)


def _generated(
    traced: Trace,
    state: Sequence[State],
    request: LowerRequest,
    is_general: bool,
    others: Sequence[Mapping[str, int]] = (),
) -> dict[str, Any]:
    """The reply for a traced module; `others` are other sizes of the state for which the source must be right.

    Raises:
        NotLowered: a workload contradicts an assumption on a symbol, or other sizes do.
    """
    _check_sizes(traced, request.workloads, {})  # before the compiler, which takes longest
    reply = {"outputs": traced.outputs, "shape_general": is_general}
    with pretend_gpu(request.target):
        if traced.joint is None:
            given = _given(traced.graph, [*state, *traced.literals])
            return reply | _half(traced, traced.graph, given, request, others)
        halves = cut(traced.graph, traced.inputs, traced.joint)
        from_forward = _from_forward(halves, traced.joint)
        reply |= _half(traced, halves.forward, _given(halves.forward, state), request)
        backward = _half(traced, halves.backward, from_forward, request)
        guards = dict.fromkeys([*reply["guards"], *backward.pop("guards")])
        return reply | {"backward": backward, "guards": list(guards)}


def _half(
    traced: Trace,
    graph: GraphModule,
    bindings: list[list[str]],
    request: LowerRequest,
    others: Sequence[Mapping[str, int]] = (),
) -> dict[str, Any]:
    """The source of a graph, its arguments, and its assumptions. Raises as `_generated`."""
    code, sizes = generate(graph, [node.meta["val"] for node in placeholders(graph)], OPTIONS, request.most_kernels)
    calls = _check_sizes(traced, request.workloads, sizes)
    if any(traced.fixed_sizes(calls[0], other, sizes) for other in others):
        raise NotLowered("GRAPH_BREAK", "depends on sizes that follow from the constructor")
    guards = traced.guards(calls, sizes)
    traced.forget(sizes)
    return {"inductor_code": code, "bindings": bindings, "guards": guards}


def _check_sizes(
    traced: Trace, workloads: Sequence[dict[str, Any]], sizes: Mapping[sympy.Symbol, sympy.Expr]
) -> list[list[list[int]]]:
    """The shapes of each workload. Raises `NotLowered` if one contradicts an assumption."""
    calls = [[spec["shape"] for spec in workload["tensors"]] for workload in workloads]
    if not all(traced.holds(shapes, sizes) for shapes in calls):
        raise NotLowered("GRAPH_BREAK", "depends on sizes that differ between the workloads")
    return calls


def _check_literals(bindings: Sequence[Sequence[str]], other: nn.Module, workload: dict[str, Any]) -> None:
    """Raise `NotLowered` if a module of another seed has other literals: the constructor drew them."""
    literals = [name for _, source, name in bindings if source == "literal"]
    if literals != [literal.name for literal in trace(other, state_of(other), workload, None).literals]:
        raise NotLowered("UNSUPPORTED_OP", "a constant that the constructor draws in forward")


def _given(graph: GraphModule, state: Sequence[State]) -> list[list[str]]:
    names = [node.name for node in placeholders(graph)]
    bound = [[name, s.source, s.name] for name, s in zip(names, state, strict=False)]
    return bound + [[name, "input", str(index)] for index, name in enumerate(names[len(state) :])]


def _from_forward(halves: Halves, joint: Joint) -> list[list[str]]:
    """The arguments of the backward: results of the forward's graph, or gradients of its outputs."""
    saved = {node.name: index for index, node in enumerate(results(halves.forward)) if node and index >= joint.outputs}
    nodes = placeholders(halves.backward)
    ends = len(nodes) - len(joint.differentiable)
    kinds = ["saved" if isinstance(node.meta["val"], Tensor) else "size" for node in nodes]
    return [
        *([node.name, kind, str(saved[node.name])] for node, kind in zip(nodes[:ends], kinds, strict=False)),
        *([node.name, "gradient", str(index)] for node, index in zip(nodes[ends:], joint.differentiable, strict=True)),
    ]
