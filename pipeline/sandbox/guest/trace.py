"""A module's forward as a functional graph of aten operators, its state bound to graph inputs by name.

The trace runs on fake CPU tensors, so that it is what eager does on the CPU, and is moved to the GPU
afterwards: a module that makes a tensor in `forward` without naming a device traces as one that does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._dispatch.python import enable_python_dispatcher
from torch._decomp import get_decompositions
from torch._dynamo.source import ConstantSource
from torch._inductor.decomposition import select_decomp_table
from torch._functorch._aot_autograd.functional_utils import from_fun, to_fun
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that the module holds: `source` is "parameter", "buffer" or "constant"."""

    source: str
    name: str  # path from the module, "proj.weight", "anchors[0]"
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Trace:
    graph: GraphModule
    inputs: list[Tensor]  # fake, on the GPU, in the graph's order: state first, then tensors of the call
    outputs: Any  # tree of forward's result, see `describe`


class Untraceable(Exception):
    """`args` are a reason (the name of a member of `Reason`) and its evidence."""


def constants(module: nn.Module) -> Iterator[tuple[str, MutableMapping | MutableSequence, Any]]:
    """Tensors in plain attributes, as (path, container, key): `container[key]` is the tensor."""

    def inside(path: str, value: Any) -> Iterator[tuple[str, Any, Any]]:
        items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
        for key, item in items:
            if type(item) is Tensor:
                yield f"{path}[{key!r}]", value, key
            else:
                yield from inside(f"{path}[{key!r}]", item)

    for prefix, child in module.named_modules():
        for name, value in vars(child).items():
            path = f"{prefix}.{name}" if prefix else name
            if type(value) is Tensor:
                yield path, vars(child), name
            elif not name.startswith("_"):
                yield from inside(path, value)


def state_of(module: nn.Module) -> list[State]:
    """Every tensor that `forward` can reach from the module; tied ones once, under their first name."""
    return [
        *(State("parameter", name, value.detach()) for name, value in module.named_parameters()),
        *(State("buffer", name, value) for name, value in module.named_buffers()),
        *(State("constant", path, container[key].detach()) for path, container, key in constants(module)),
    ]


@contextlib.contextmanager
def _replaced_constants(module: nn.Module, values: dict[str, Tensor]) -> Iterator[None]:
    slots = [(container, key, container[key], values[path]) for path, container, key in constants(module)]
    for container, key, _, value in slots:
        container[key] = value
    try:
        yield
    finally:
        for container, key, original, _ in slots:
            container[key] = original


def fill(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """The arguments that a workload's JSON tree describes."""
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            return tensors[tree["tensor"]]
        return {key: fill(value, tensors) for key, value in tree.items()}
    if isinstance(tree, list):
        return [fill(value, tensors) for value in tree]
    return tree


def describe(value: Any, outputs: list[Tensor]) -> Any:
    """JSON of a result: `{"output": i}`, `{"tuple": [...]}`, `{"list": [...]}`, `{"dict": [[key, value], ...]}`
    or `{"value": plain}`; collects the tensors into `outputs`."""
    if isinstance(value, Tensor):
        outputs.append(value)
        return {"output": len(outputs) - 1}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [describe(item, outputs) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[key, describe(item, outputs)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise Untraceable("GRAPH_BREAK", f"forward returns a {type(value).__name__}")


def symbolic_sizes(shapes: Sequence[Sequence[Sequence[int]]]) -> list[list[bool]]:
    """For each input tensor, which dimensions differ between the workloads (`shapes[workload][tensor]`)."""
    return [[len(set(sizes)) > 1 for sizes in zip(*ranks, strict=True)] for ranks in zip(*shapes, strict=True)]


def _fake_input(mode: FakeTensorMode, name: str, shape: Sequence[int], symbolic: Sequence[bool], dtype: str) -> Tensor:
    sizes: list[Any] = []
    for dim, (size, free) in enumerate(zip(shape, symbolic, strict=True)):
        if free:
            source = ConstantSource(f"{name}_{dim}")
            symbol = mode.shape_env.create_symbol(size, source=source, dynamic_dim=DimDynamic.DYNAMIC)
            sizes.append(mode.shape_env.create_symintnode(symbol, hint=size, source=source))
        else:
            sizes.append(size)
    return torch.empty(sizes, dtype=getattr(torch, dtype))


def _decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        **select_decomp_table(),
        **get_decompositions([aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input]),
        aten.addmm.default: _addmm,
        aten.baddbmm.default: _baddbmm,
    }


def _addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = aten.mm(a, b)
    return (product if alpha == 1 else product * alpha) + (bias if beta == 1 else bias * beta)


def _baddbmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = aten.bmm(a, b)
    return (product if alpha == 1 else product * alpha) + (bias if beta == 1 else bias * beta)


def _functionalized(function: Callable[..., list[Tensor]]) -> Callable[..., list[Tensor]]:
    """`function` without in-place operators; what it did to its arguments becomes a `copy_` at the end."""

    def functional(*args: Tensor) -> list[Tensor]:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)):
            with FunctionalTensorMode():
                wrapped = [to_fun(arg) for arg in args]
                outputs = [from_fun(output) for output in function(*wrapped)]
            for arg, wrapper in zip(args, wrapped, strict=True):
                torch._sync(wrapper)
                final = from_fun(wrapper)
                if final is not arg:
                    arg.copy_(final)
        return outputs

    return functional


def trace(
    module: nn.Module,
    state: Sequence[State],
    tensors: Sequence[dict[str, Any]],
    args: str,
    kwargs: str,
    symbolic: Sequence[Sequence[bool]],
) -> Trace:
    """Traces one call of `module` in eval mode; `tensors` are its `TensorSpec`s, `args` and `kwargs` their trees.

    Raises:
        Untraceable: the graph draws random numbers, changes state or depends on values.
    """
    shape_env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True)
    tree: Any = None

    def call(*flat: Tensor) -> list[Tensor]:
        nonlocal tree
        held = dict(zip((s.name for s in state), flat, strict=False))
        inputs = flat[len(state) :]
        with _replaced_constants(module, {s.name: held[s.name] for s in state if s.source == "constant"}):
            named = {s.name: held[s.name] for s in state if s.source != "constant"}
            result = torch.func.functional_call(
                module, named, tuple(fill(json.loads(args), inputs)), fill(json.loads(kwargs), inputs)
            )
        outputs: list[Tensor] = []
        tree = describe(result, outputs)
        return outputs

    with contextlib.ExitStack() as stack:
        stack.enter_context(mode)
        stack.enter_context(enable_python_dispatcher())
        stack.enter_context(torch.no_grad())
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(preserve_node_meta())
        fake = [torch.empty_strided(s.tensor.shape, s.tensor.stride(), dtype=s.tensor.dtype) for s in state]
        fake += [
            _fake_input(mode, f"input{i}", spec["shape"], free, spec["dtype"])
            for i, (spec, free) in enumerate(zip(tensors, symbolic, strict=True))
        ]
        graph = make_fx(_functionalized(call), decomposition_table=_decompositions())(*fake)
    _check(graph, state)
    with mode:
        inputs = [
            torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda") for value in fake
        ]
    _to_gpu(graph)
    return Trace(graph, inputs, tree)


def _check(graph: GraphModule, state: Sequence[State]) -> None:
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node in graph.graph.nodes:
        if node.op != "call_function":
            continue
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Untraceable("RANDOM_OP", str(node.target))
        if node.target is aten.copy_.default and node.args[0] in placeholders[: len(state)]:
            raise Untraceable("STATEFUL", state[placeholders.index(node.args[0])].name)


def _to_gpu(graph: GraphModule) -> None:
    gpu = torch.device("cuda", 0)

    def moved(value: Any) -> Any:
        return gpu if isinstance(value, torch.device) else value

    for node in graph.graph.nodes:
        node.args = torch.fx.node.map_aggregate(node.args, moved)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, moved)
    graph.recompile()


def placeholders(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]
