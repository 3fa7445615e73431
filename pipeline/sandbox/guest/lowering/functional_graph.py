"""Trace a module's forward into a functional graph of aten operators whose inputs are its state and its arguments.

The trace runs on fake CPU tensors, as eager does on the CPU, and moves to the GPU afterwards. A module that makes a
tensor in `forward` without a device therefore traces like one that names the device.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy
import torch
from torch import Tensor, nn
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._functorch._aot_autograd.functional_utils import from_fun, to_fun
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, free_unbacked_symbols
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_map

from ..lib.pytree import fill, flatten
from .decompositions import PlainFunctions, decompositions, pools_of_any_size
from .joint import Joint, prepare
from .origins import Expressions
from .refusal import NotLowered
from .size_guards import conditions
from .sizes import symbolic_roots
from .tensor_values import values_unknown
from .traced_calls import attributes_kept, fused_attention, layouts_cached, linalg_checks_traced, no_inference_mode

if TYPE_CHECKING:
    from .constructor_sizes import ConstructorSizes, Key

aten = torch.ops.aten

_INLINED = 8  # most elements of a constant that Inductor writes into a kernel
_LITERAL = 128  # most elements of a constant that a source can list
_ASSERTIONS = (aten._assert_async.default, aten._assert_async.msg, aten._linalg_check_errors.default)
_ITEM = aten._local_scalar_dense.default


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that the module holds, or a literal of its `forward`."""

    source: str  # "parameter", "buffer", "constant" or "literal"
    name: str  # path from the module, "proj.weight", "anchors[0]"; for a literal its dtype and numbers as JSON
    tensor: Tensor
    trainable: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """One traced call of a module."""

    graph: GraphModule
    inputs: list[Tensor]  # fake, on the GPU, in the graph's order: state, literals, tensors of the call
    outputs: Any  # tree of forward's result, see `pytree.flatten`
    shape_env: ShapeEnv
    symbols: dict[sympy.Symbol, str]  # symbol -> the size that it stands for: `input0_1`, or `state2_0` of the state
    state_sizes: dict[str, int]  # `state2_0` -> its value
    joint: Joint | None  # None without gradients
    literals: list[State]

    def sizes_of(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """The sizes that symbols stand for, in a call with inputs of these shapes."""
        sizes = {f"input{i}_{axis}": size for i, shape in enumerate(shapes) for axis, size in enumerate(shape)}
        return {name: self.state_sizes.get(name) or sizes[name] for name in self.symbols.values()}

    def holds(self, shapes: Sequence[Sequence[int]], sizes: Mapping[sympy.Symbol, sympy.Expr]) -> bool:
        """True if `shapes` satisfy every assumption about the symbols; `sizes` are symbols computed from others."""
        own = self.sizes_of(shapes)
        # Symbols stand for sizes of 2 and more.
        return min(own.values(), default=2) >= 2 and not any(self._contradicted(own, sizes))

    def _contradicted(
        self, values: Mapping[str, int], sizes: Mapping[sympy.Symbol, sympy.Expr]
    ) -> Iterator[set[sympy.Symbol]]:
        """The symbols of each assumption that these values contradict."""
        numbers = {symbol: values[name] for symbol, name in self.symbols.items()}
        for guard in self.shape_env.guards:
            expr = guard.expr.xreplace(sizes)
            if expr.xreplace(numbers) != sympy.true:
                yield expr.free_symbols

    def guards(self, calls: Sequence[Sequence[Sequence[int]]], sizes: Mapping[sympy.Symbol, sympy.Expr]) -> list[str]:
        """The relevant assumptions about the symbols, which `calls` satisfy; see `size_guards.conditions`."""
        return conditions(self.shape_env, self.symbols, sizes, [self.sizes_of(shapes) for shapes in calls])

    def _ties(self) -> dict[sympy.Symbol, sympy.Expr]:
        """Symbols of the state, and of inputs that the assumptions make equal to an expression of these."""
        found = {symbol: symbol for symbol, name in self.symbols.items() if name in self.state_sizes}
        equalities = [guard.expr.args for guard in self.shape_env.guards if isinstance(guard.expr, sympy.Eq)]
        for _ in equalities:
            for one, other in [*equalities, *(sides[::-1] for sides in equalities)]:
                if one in self.symbols and other.free_symbols and other.free_symbols <= found.keys():
                    found.setdefault(one, other.xreplace(found))
        return found

    def tied_inputs(self, state_sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes of inputs that follow from those of the state, for other sizes of the state."""
        values = {symbol: state_sizes[name] for symbol, name in self.symbols.items() if name in state_sizes}
        found = {self.symbols[symbol]: expr.xreplace(values) for symbol, expr in self._ties().items()}
        return {name: int(size) for name, size in found.items() if name not in state_sizes}

    def fixed_sizes(
        self,
        shapes: Sequence[Sequence[int]],
        state_sizes: Mapping[str, int],
        sizes: Mapping[sympy.Symbol, sympy.Expr],
    ) -> set[str]:
        """The sizes of the state in assumptions that other sizes of the state contradict."""
        values = self.sizes_of(shapes) | self.tied_inputs(state_sizes) | dict(state_sizes)
        blamed = set[sympy.Symbol]().union(*self._contradicted(values, sizes))
        ties = self._ties()
        return {self.symbols[s] for symbol in blamed if symbol in ties for s in ties[symbol].free_symbols}

    def forget(self, sizes: Mapping[sympy.Symbol, sympy.Expr]) -> None:
        """Drop computed `sizes`, whose names another source uses anew, with the assumptions about them."""
        self.shape_env.guards = [g for g in self.shape_env.guards if not sizes.keys() & g.expr.free_symbols]
        for symbol in sizes:
            self.shape_env.var_to_range.pop(symbol, None)


def held_tensors(module: nn.Module) -> Iterator[tuple[str, MutableMapping | MutableSequence, Any]]:
    """Tensors and listed parameters in plain attributes, as (path, container, key): `container[key]` is the tensor."""

    def inside(path: str, value: Any) -> Iterator[tuple[str, Any, Any]]:
        items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
        for key, item in items:
            if type(item) in (Tensor, nn.Parameter):
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
    """Every tensor that `forward` can reach from the module; tied tensors once, under their first name."""
    held = [(path, container[key]) for path, container, key in held_tensors(module)]
    return [
        *(State("parameter", name, value.detach(), value.requires_grad) for name, value in module.named_parameters()),
        *(State("buffer", name, value) for name, value in module.named_buffers()),
        *(State("constant", path, value.detach()) for path, value in held if type(value) is Tensor),
    ]


@contextlib.contextmanager
def _replaced(module: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Replace the tensors of `held_tensors` by those of the same state in `values`."""
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    held = [(path, container, key, container[key]) for path, container, key in held_tensors(module)]
    held = [slot for slot in held if type(slot[3]) is Tensor or id(slot[3]) in names]
    new = [values[names.get(id(original), path)] for path, _, _, original in held]
    for (_, container, key, _), value in zip(held, new, strict=True):
        container[key] = value
    try:
        yield
    finally:
        for _, container, key, original in held:
            container[key] = original


def differing_sizes(workloads: Sequence[Mapping[str, Any]]) -> list[list[bool]] | None:
    """For each input tensor, flags of the dimensions that vary; None if workloads differ in more than sizes."""
    first = workloads[0]
    for other in workloads[1:]:
        same = all(other[key] == first[key] for key in ("args", "kwargs")) and [
            (len(spec["shape"]), spec["dtype"]) for spec in other["tensors"]
        ] == [(len(spec["shape"]), spec["dtype"]) for spec in first["tensors"]]
        if not same:
            return None
    shapes = [[spec["shape"] for spec in workload["tensors"]] for workload in workloads]
    return [[len(set(sizes)) > 1 for sizes in zip(*ranks, strict=True)] for ranks in zip(*shapes, strict=True)]


def _fake_inputs(
    shape_env: ShapeEnv,
    specs: Sequence[Mapping[str, Any]],
    symbolic: Sequence[Sequence[bool]],
    symbols: dict[sympy.Symbol, str],
) -> list[Tensor]:
    """Empty tensors for the arguments of a call; adds the name of each symbol among their sizes to `symbols`."""
    tensors = []
    for index, (spec, free) in enumerate(zip(specs, symbolic, strict=True)):
        sizes: list[Any] = list(spec["shape"])
        for dim, size in enumerate(spec["shape"]):
            if not free[dim]:
                continue
            if size < 2:  # no symbol stands for 1 and for larger sizes
                raise NotLowered("GRAPH_BREAK", "a size is 1 in one workload and more in another")
            sizes[dim] = _symbolic_size(shape_env, size, f"input{index}_{dim}", symbols)
        tensors.append(torch.empty(sizes, dtype=getattr(torch, spec["dtype"])))
    return tensors


def _symbolic_size(shape_env: ShapeEnv, size: int, name: str, symbols: dict[sympy.Symbol, str]) -> torch.SymInt:
    source = ConstantSource(name)
    symbol = shape_env.create_symbol(size, source=source, dynamic_dim=DimDynamic.DYNAMIC)
    symbols[symbol] = name
    made = shape_env.create_symintnode(symbol, hint=size, source=source)
    assert isinstance(made, torch.SymInt)
    return made


def _fake_state(state: Sequence[State], constructor: ConstructorSizes | None, sizes: Mapping[Key, Any]) -> list[Tensor]:
    """Empty tensors for the state, whose shapes contain expressions of the symbols `sizes`.

    Raises:
        NotLowered: a tensor with such a shape is not contiguous.
    """
    tensors = []
    for s in state:
        follows = constructor.sizes if constructor else {}
        shape = [
            follows[s.name, axis].of(sizes) if (s.name, axis) in follows else n for axis, n in enumerate(s.tensor.shape)
        ]
        if all(isinstance(size, int) for size in shape):
            tensors.append(torch.empty_strided(shape, s.tensor.stride(), dtype=s.tensor.dtype))
        elif s.tensor.is_contiguous():
            tensors.append(torch.empty(shape, dtype=s.tensor.dtype))
        else:
            raise NotLowered("GRAPH_BREAK", f"{s.name} is not contiguous")
    return tensors


def _functionalized(function: Callable[..., list[Tensor]]) -> Callable[..., list[Tensor]]:
    """`function` without in-place operators; a change of an argument becomes a `copy_` at the end."""

    def functional(*args: Tensor) -> list[Tensor]:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)):
            with FunctionalTensorMode():
                wrapped = [to_fun(arg) for arg in args]
                given = {id(wrapper): arg for arg, wrapper in zip(args, wrapped, strict=True)}
                # An argument that is a result stays that argument, changed or not.
                outputs: list[Any] = [
                    given.get(id(output), from_fun(output)) if isinstance(output, Tensor) else output  # a size
                    for output in function(*wrapped)
                ]
            for arg, wrapper in zip(args, wrapped, strict=True):
                torch._sync(wrapper)  # type: ignore[attr-defined]
                final: Any = from_fun(wrapper)
                if final is not arg:
                    arg.copy_(final)
        return outputs

    return functional


def trace(
    module: nn.Module,
    state: Sequence[State],
    workload: Mapping[str, Any],
    symbolic: Sequence[Sequence[bool]] | None,
    training: bool = False,
    constructor: ConstructorSizes | None = None,
) -> Trace:
    """Trace one call of `module`, which is in eval mode; `symbolic` selects the sizes of its inputs that are symbols.

    With `training`, the graph has the gradients too, see `joint`. With `constructor`, its sizes are symbols too.

    Raises:
        NotLowered: the graph draws random numbers, changes state, depends on values, or cannot be traced.
    """
    tensors, args, kwargs = workload["tensors"], workload["args"], workload["kwargs"]
    symbolic = symbolic or [[False] * len(spec["shape"]) for spec in tensors]
    shape_env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True)
    mode.cache_enabled = False  # calls in a module rarely repeat, and caching takes a tenth of the time
    tree: Any = None

    def call(*flat: Tensor) -> list[Tensor]:
        nonlocal tree
        held = dict(zip((s.name for s in state), flat, strict=False))
        inputs = flat[len(state) :]
        if constructor:  # sizes of the traced tensors, so that the trace computes with them; `attributes_kept` restores
            constructor.set_attributes(
                module, {(name, axis): held[name].shape[axis] for name, axis in constructor.bases}
            )
        with _replaced(module, held):
            named = {s.name: held[s.name] for s in state if s.source != "constant"}
            result = torch.func.functional_call(
                module, named, tuple(fill(json.loads(args), inputs)), fill(json.loads(kwargs), inputs)
            )
        outputs: list[Tensor] = []
        try:
            tree = flatten(result, outputs)
        except TypeError as error:
            raise NotLowered("GRAPH_BREAK", f"forward returns {error}") from error
        return outputs

    with contextlib.ExitStack() as stack:
        for context in (
            mode,
            enable_python_dispatcher(),
            torch.no_grad(),
            sdpa_kernel(SDPBackend.MATH),
            torch.backends.mkldnn.flags(enabled=False),
            torch.backends.nnpack.flags(enabled=False),  # torch selects it by the size of the kernel
            preserve_node_meta(),
            Expressions(module),
            PlainFunctions(),
            values_unknown(module),
            attributes_kept(module),
            linalg_checks_traced(),
            no_inference_mode(),
            symbolic_roots(),
            pools_of_any_size(),
            layouts_cached(),
            contextlib.nullcontext() if training else fused_attention(),
        ):
            stack.enter_context(context)
        symbols: dict[sympy.Symbol, str] = {}
        bases = constructor.bases.values() if constructor else ()
        sizes = {base.key: _symbolic_size(shape_env, base.size, base.name, symbols) for base in bases}
        fake = _fake_state(state, constructor, sizes)
        arguments = _fake_inputs(shape_env, tensors, symbolic, symbols)
        fake += arguments
        try:
            joint, function, gradients = None, call, list[Tensor]()
            if training:
                needs = [s.trainable for s in state] + [value.is_floating_point() for value in arguments]
                joint, function, gradients = prepare(call, fake, needs)
            fake += gradients
            graph = make_fx(_functionalized(function), decomposition_table=decompositions())(*fake)
        except NotLowered:
            raise
        except Exception as error:
            raise NotLowered("GRAPH_BREAK", f"{type(error).__name__}: {error}") from error
    _without_assertions(graph)
    _check(graph, state)
    literals = _inline_constants(graph, mode, 0 if training else _LITERAL)
    fake[len(state) : len(state)] = _given_literals(graph, literals, mode, len(state))
    _to_gpu(graph, fake)
    state_sizes = {base.name: base.size for base in bases}
    return Trace(graph, fake, tree, shape_env, symbols, state_sizes, joint, literals)


def _without_assertions(graph: GraphModule) -> None:
    """Drop torch's assertions of values, such as the indices of `one_hot`, and unused numbers of tensors.

    Each would become a kernel without a result.
    """
    idle = [n for n in graph.graph.nodes if n.target in _ASSERTIONS or (n.target is _ITEM and not n.users)]
    for node in idle:
        graph.graph.erase_node(node)
    if idle:
        graph.graph.eliminate_dead_code()


def _check(graph: GraphModule, state: Sequence[State]) -> None:
    """Raise NotLowered for random operators, results that depend on values, and writes to the state."""
    inputs = placeholders(graph)
    for node in graph.graph.nodes:
        if node.op != "call_function":
            continue
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            raise NotLowered("RANDOM_OP", str(node.target))
        if torch.Tag.data_dependent_output in tags or free_unbacked_symbols(node.meta.get("val")):
            raise NotLowered("GRAPH_BREAK", f"{node.target} depends on values")
        if node.target is aten.copy_.default and node.args[0] in inputs[: len(state)]:
            raise NotLowered("STATEFUL", state[inputs.index(node.args[0])].name)


def _inline_constants(graph: GraphModule, mode: FakeTensorMode, most: int) -> list[State]:
    """Replace small tensors of numbers in `forward` by operators; larger ones are returned as literals.

    Raises:
        NotLowered: a tensor has more than `most` numbers, or numbers that JSON cannot hold.
    """
    literals = []
    for node in graph.graph.nodes:
        if node.op != "get_attr":
            continue
        value = getattr(graph, node.target)
        is_one = value.numel() == 1 or (value.numel() > 0 and bool((value == value.flatten()[0]).all()))
        if not (is_one or 1 <= value.numel() <= _INLINED):
            literals.append(_literal(value, most))
            continue
        shape, options = list(value.shape), {"dtype": value.dtype, "device": torch.device("cpu")}
        with graph.graph.inserting_before(node):
            if is_one:
                made = graph.graph.call_function(aten.full.default, (shape, value.flatten()[0].item()), options)
            else:
                listed = graph.graph.call_function(torch.tensor, (value.flatten().tolist(),), options)
                made = graph.graph.call_function(aten.view.default, (listed, shape))
                listed.meta["val"] = mode.from_tensor(value.flatten(), static_shapes=True)
        made.meta["val"] = mode.from_tensor(value, static_shapes=True)
        node.replace_all_uses_with(made)
        graph.graph.erase_node(node)
    return literals


def _literal(value: Tensor, most: int) -> State:
    is_plain = value.is_contiguous() and not value.is_complex() and bool(value.isfinite().all())
    if not (is_plain and 1 <= value.numel() <= most):
        raise NotLowered("UNSUPPORTED_OP", f"a constant of shape {tuple(value.shape)} in forward")
    numbers = value
    if value.is_floating_point():  # the shortest decimals of its own precision: as a float64, 0.299 is longer
        known = value if value.dtype == torch.float64 else value.to(torch.float32)
        shortest = [float(str(number)) for number in known.flatten().numpy()]
        numbers = torch.tensor(shortest, dtype=torch.float64).view(value.shape)
    return State("literal", json.dumps({"dtype": str(value.dtype), "numbers": numbers.tolist()}), value)


def _given_literals(graph: GraphModule, literals: Sequence[State], mode: FakeTensorMode, at: int) -> list[Tensor]:
    """Make the remaining constants of the graph inputs, from index `at` on; returns their fake tensors."""
    nodes = list(graph.graph.nodes)
    constants = [node for node in nodes if node.op == "get_attr"]
    values: list[Tensor] = [mode.from_tensor(literal.tensor, static_shapes=True) for literal in literals]
    with graph.graph.inserting_before(nodes[at]):
        given = [graph.graph.placeholder(f"arg{len(nodes) + index}_1") for index in range(len(values))]
    for node, made, value in zip(constants, given, values, strict=True):
        made.meta["val"] = value
        node.replace_all_uses_with(made)
        graph.graph.erase_node(node)
    return values


def _to_gpu(graph: GraphModule, inputs: Sequence[Tensor]) -> None:
    """Move the graph, the fake values of its nodes and its inputs to the GPU."""
    gpu = torch.device("cuda", 0)

    def moved(value: Any) -> Any:
        if isinstance(value, FakeTensor):
            value.fake_device = gpu
        return gpu if isinstance(value, torch.device) else value

    for node in graph.graph.nodes:
        node.args = torch.fx.node.map_aggregate(node.args, moved)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, moved)
        tree_map(moved, node.meta.get("val"))
    tree_map(moved, list(inputs))
    graph.recompile()


def placeholders(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]
