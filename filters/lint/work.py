"""Whether the kernels do the work, as far as the source tells: what is launched, and what PyTorch computes beside it.

Only what is surely wrong is found, since a right kernel that is flagged here is never tried: a tensor is taken for one
where the source uses it as one, and what is not known to compute does not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .finding import Rule
from .host import Function, Host
from .names import COMPUTING, FAMILIES, HARMLESS, PRODUCTS, TYPES
from .reach import Found
from .source import Source, root

_LEAVING = frozenset("item numpy tolist".split())


_HOOK = re.compile(r"_?register_\w*hook")
_CONTAINERS = frozenset("dict list tuple str collections.OrderedDict collections.UserDict collections.UserList".split())
_READING = frozenset("__getitem__ __iter__ get items keys values".split())


def works(source: Source, extern_ops: Collection[str] = ()) -> Iterator[Found]:
    """What is no kernel's work. `extern_ops` are operators that a mixed candidate says it uses ("aten.convolution")."""
    host = Host(source)
    if not _has_entry(source):
        yield source.tree, Rule.NO_ENTRY, f"no class {CANDIDATE_ENTRY_POINT} with forward"
        return
    if not source.kernels:
        yield source.tree, Rule.NO_KERNEL, "no function with triton.jit"
    for name in sorted(source.kernels.keys() - host.launched):
        if name not in host.helpers:
            yield source.kernels[name], Rule.NOT_LAUNCHED, f"{name} is never launched"
    yield from _deferred(source)
    declared = {name.split(".")[1] if "." in name else name for name in extern_ops}
    for node in host.nodes:
        if isinstance(node, ast.Try):
            yield node, Rule.GUARDED, "try"
        elif isinstance(node, ast.Call):
            yield from _call(node, source, host, declared)
        elif isinstance(node, ast.BinOp) and (isinstance(node.op, ast.MatMult) or _on_tensors(node, host)):
            if not (isinstance(node.op, ast.MatMult) and declared & PRODUCTS):
                yield node, Rule.TORCH_COMPUTE, ast.unparse(node)
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not) and host.is_tensor(node.operand):
            yield node, Rule.TORCH_COMPUTE, ast.unparse(node)


def _has_entry(source: Source) -> bool:
    classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
    entry = classes.pop(CANDIDATE_ENTRY_POINT, None)
    while entry is not None:
        names = {member.name for member in entry.body if isinstance(member, Function)}
        assigned = [member for member in entry.body if isinstance(member, ast.Assign)]
        names |= {target.id for member in assigned for target in member.targets if isinstance(target, ast.Name)}
        if names & {"forward", "__call__"}:
            return True
        above = next((root(base) for base in entry.bases if root(base) in classes), "")
        entry = classes.pop(above, None)
    return False


def _deferred(source: Source) -> Iterator[Found]:
    """Hooks, wherever they are registered, and classes whose instances could compute when they are read."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and _HOOK.fullmatch(node.attr):
            yield node, Rule.DEFERRED, ast.unparse(node)
        elif isinstance(node, ast.ClassDef):
            bases = {source.path(base) or root(base) for base in node.bases}
            reads = {member.name for member in node.body if isinstance(member, Function)} & _READING
            if bases & {"torch.Tensor", "torch.nn.Parameter"} or (reads and bases & _CONTAINERS):
                yield node, Rule.DEFERRED, f"class {node.name}({', '.join(sorted(bases))})"


def _call(node: ast.Call, source: Source, host: Host, declared: set[str]) -> Iterator[Found]:
    path = source.path(node.func)
    name = path.rsplit(".", 1)[-1]
    text = ast.unparse(node.func)
    if path == "contextlib.suppress":
        yield node, Rule.GUARDED, text
    elif path.startswith("torch."):
        layer = path.startswith("torch.nn.") and name[:1].isupper() and name not in TYPES
        function = path.startswith("torch.nn.functional.") or (path.count(".") == 1 and name not in HARMLESS)
        linear = path.startswith(("torch.linalg.", "torch.special.", "torch.fft."))
        layer = layer and host.function(node) != 0  # a constructor's shorthand at the top of the file is no work
        if (layer or linear or (function and name[:1].islower())) and not _is_declared(name, declared):
            yield node, Rule.TORCH_COMPUTE, text
    elif isinstance(node.func, ast.Attribute) and not path:
        yield from _method(node, node.func, host, declared)


def _method(node: ast.Call, method: ast.Attribute, host: Host, declared: set[str]) -> Iterator[Found]:
    name, text = method.attr, ast.unparse(method)
    if isinstance(method.value, ast.Name) and method.value.id == "self":
        if name in host.layers and not _is_declared(host.layers[name], declared):
            yield node, Rule.TORCH_COMPUTE, f"{text}, a layer of torch.nn"
    elif name == "as_subclass":
        yield node, Rule.DEFERRED, text
    elif name in _LEAVING:
        yield node, Rule.VALUES_LEAVE, text
    elif name.removesuffix("_") in COMPUTING and not _is_declared(name.removesuffix("_"), declared):
        yield node, Rule.TORCH_COMPUTE, text


def _is_declared(name: str, declared: Collection[str]) -> bool:
    """A mixed candidate may call an operator by any of its names: `linear` is `addmm`, `Conv2d` is `convolution`."""
    name = name.lower()
    return name in declared or any(name in family and family & set(declared) for family in FAMILIES)


def _on_tensors(node: ast.BinOp, host: Host) -> bool:
    return host.is_tensor(node.left) or host.is_tensor(node.right)
