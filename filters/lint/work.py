"""Rules on who does the work: kernels that are not launched, and computation by PyTorch or Python.

A candidate with a finding is never run, so the rules only report what is certainly wrong. A value counts as a tensor
only if the source uses it as one, and unknown functions count as harmless.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .finding import Rule
from .host_code import Function, HostCode, live
from .parsed_source import Source, root
from .torch_names import (
    COMPUTING,
    COMPUTING_BUILTINS,
    COMPUTING_TENSORS,
    PRODUCTS,
    is_compute,
    is_function,
    same_operator,
)

_TO_PYTHON = frozenset("item numpy tolist".split())
_MAX_NAMES = 5  # in a message

Found = tuple[ast.AST, Rule, str]


def find_torch_work(source: Source, extern_ops: Collection[str] = ()) -> Iterator[Found]:
    """Work that no kernel does.

    Args:
        extern_ops: operators that a mixed candidate declares ("aten.convolution").
    """
    host = HostCode(source)
    if not _has_entry(source):
        yield source.tree, Rule.NO_ENTRY, f"no class {CANDIDATE_ENTRY_POINT} with forward{_other_definitions(source)}"
        return
    if not source.kernels:
        yield source.tree, Rule.NO_KERNEL, "no function with triton.jit"
    for name in sorted(source.kernels.keys() - host.launched):
        if name not in host.helpers | host.launched_outside_forward | host.returning:
            yield source.kernels[name], Rule.NOT_LAUNCHED, f"{name} is never launched"
    for name in sorted(host.launched_on_grids):
        if _stores_nothing(source.kernels[name]):
            yield source.kernels[name], Rule.STORES_NOTHING, f"{name} stores nothing"
    declared = {name.split(".")[1] if "." in name else name for name in extern_ops}
    for node in host.nodes:
        if isinstance(node, ast.Call):
            yield from _call(node, source, host, declared)
        elif isinstance(node, ast.For):
            yield from _loop_over_layers(node, host, declared)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            yield from _function_reference(node, source, host, declared)
        elif _computes(node, host) and not (_is_product(node) and declared & PRODUCTS):
            yield node, Rule.TORCH_COMPUTE, ast.unparse(node)


def _computes(node: ast.AST, host: HostCode) -> bool:
    """True if an operator computes on a tensor."""
    if isinstance(node, ast.BinOp):
        return _is_product(node) or host.is_tensor(node.left) or host.is_tensor(node.right)
    if isinstance(node, ast.AugAssign):
        return _is_product(node) or host.is_tensor(node.target)
    if isinstance(node, ast.Compare):
        ordered = all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) for op in node.ops)
        return ordered and any(map(host.is_tensor, (node.left, *node.comparators)))
    return isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not) and host.is_tensor(node.operand)


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult)


def _stores_nothing(kernel: Function) -> bool:
    """True if the live code of a kernel neither stores nor calls a helper, which may store."""
    called = [node.func for node in live(kernel) if isinstance(node, ast.Call)]
    methods = [ast.unparse(function) for function in called if not isinstance(function, ast.Name)]
    helpers = [function.id for function in called if isinstance(function, ast.Name) and function.id != "range"]
    return not helpers and not any(word in method for method in methods for word in ("store", "atomic", "asm", "copy"))


def _function_reference(
    node: ast.Attribute | ast.Name, source: Source, host: HostCode, declared: Collection[str]
) -> Iterator[Found]:
    """A computing function of PyTorch that is assigned, or passed as an argument."""
    parent = source.parents[node]
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        return
    path = source.path(node)
    name = path.rsplit(".", 1)[-1]
    bound = isinstance(node, ast.Attribute) and node.attr in COMPUTING_TENSORS and host.is_tensor(node.value)
    if (is_function(path) or bound) and not _is_declared(name or ast.unparse(node), declared):
        yield node, Rule.TORCH_COMPUTE, ast.unparse(node)


def _loop_over_layers(node: ast.For, host: HostCode, declared: Collection[str]) -> Iterator[Found]:
    """`for layer in self.layers: x = layer(x)` with layers of torch.nn."""
    stacks = {name for inner in ast.walk(node.iter) if (name := host.stacks.get(ast.unparse(inner)))}
    if ast.unparse(node.iter) in ("self.children()", "self.modules()"):
        stacks |= {name for target, name in host.layers.items() if target.startswith("self.")}
    names = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
    calls = [inner for body in node.body for inner in ast.walk(body) if isinstance(inner, ast.Call)]
    if stacks and not any(_is_declared(name, declared) for name in stacks):
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id in names:
                yield call, Rule.TORCH_COMPUTE, f"{ast.unparse(call.func)}, a layer of torch.nn"


def _has_entry(source: Source) -> bool:
    classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
    entry = source.entry
    while entry is not None:
        names = {member.name for member in entry.body if isinstance(member, Function)}
        assigned = [member for member in entry.body if isinstance(member, ast.Assign)]
        names |= {target.id for member in assigned for target in member.targets if isinstance(target, ast.Name)}
        if names & {"forward", "__call__"}:
            return True
        parent = next((root(base) for base in entry.bases if root(base) in classes), "")
        entry = classes.pop(parent, None)
    return False


def _other_definitions(source: Source) -> str:
    """A list of the top-level classes and functions, to tell the author what was found in place of the entry."""
    there = [node for node in source.tree.body if isinstance(node, (ast.ClassDef, Function))]
    names = [f"class {node.name}" if isinstance(node, ast.ClassDef) else f"def {node.name}" for node in there]
    names = [name for name in names if name.partition(" ")[2] not in source.kernels]
    return f", but {', '.join(names[:_MAX_NAMES])}" if names else ""


def _call(node: ast.Call, source: Source, host: HostCode, declared: set[str]) -> Iterator[Found]:
    path = source.path(node.func)
    name = path.rsplit(".", 1)[-1]
    text = ast.unparse(node.func)
    owner = node.func.value if isinstance(node.func, (ast.Attribute, ast.Subscript)) and not path else node.func
    if isinstance(node.func, ast.Attribute) and node.func.attr != "forward":
        owner = node.func
    layer = host.layers.get(ast.unparse(owner)) or host.stacks.get(ast.unparse(owner))
    if layer:
        if not _is_declared(layer, declared):
            yield node, Rule.TORCH_COMPUTE, f"{text}, PyTorch's {layer}"
    elif path.startswith("torch."):
        if is_compute(path, host.function(node) != 0) and not _is_declared(name, declared):
            yield node, Rule.TORCH_COMPUTE, text
    elif isinstance(node.func, ast.Attribute) and not path:
        yield from _method(node, node.func, host, declared)
    else:
        yield from _builtin(node, path, host)


def _builtin(node: ast.Call, path: str, host: HostCode) -> Iterator[Found]:
    """Computation on tensors by builtins or `operator`."""
    text = ast.unparse(node.func)
    given = [
        inner for value in node.args for inner in (value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value])
    ]
    on_tensors = any(map(host.is_tensor, given))
    computes = path.startswith("operator.") or path == "functools.reduce" or text in COMPUTING_BUILTINS
    if path == "operator.matmul" or (on_tensors and computes):
        yield node, Rule.TORCH_COMPUTE, text
    elif text in ("bool", "float", "int") and on_tensors:
        yield node, Rule.VALUES_LEAVE, text


def _method(node: ast.Call, method: ast.Attribute, host: HostCode, declared: set[str]) -> Iterator[Found]:
    name, text = method.attr, ast.unparse(method)
    if isinstance(method.value, ast.Name) and method.value.id == "self":
        return
    if name in _TO_PYTHON:
        yield node, Rule.VALUES_LEAVE, text
    elif _is_declared(name.removesuffix("_"), declared):
        return
    elif name.removesuffix("_") in (COMPUTING_TENSORS if host.is_tensor(method.value) else COMPUTING):
        yield node, Rule.TORCH_COMPUTE, text


def _is_declared(name: str, declared: Collection[str]) -> bool:
    """True if a mixed candidate declares the operator, by any of its names."""
    return any(same_operator(name, each) for each in declared)
