"""Rules on kernels: which names of Triton, of the file and of Python they may use."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from . import tables
from .body_rules import Body, Found, named
from .definitions import Context, Definitions, Function
from .parsed_source import root
from .scopes import arguments, passed, stored

_LISTED = "use the functions of triton.language that the language lists"
# Names of triton.language that are outside of the language; it has no others.
_UNLISTED = frozenset(
    "TRITON_MAX_TENSOR_NUMEL condition constexpr_type core inline_asm_elementwise philox_impl random semantic standard "
    "str_to_ty target_info tensor_descriptor_base tensor_descriptor_type tuple tuple_type void".split()
)
_MODULES = frozenset(("triton", "triton.language", "triton.language.extra", "triton.language.extra.cuda", "math"))
_FUNCTIONS = frozenset(("triton.cdiv", "triton.next_power_of_2", "torch"))
# What stands before the name of a function: all functions of these modules may be called.
_OPEN = tuple(f"triton.language.{part}" for part in ("math", "extra.libdevice", "extra.cuda.libdevice"))
_OF_COMPILERS = frozenset("fn handle run src".split())  # attributes of values while a kernel compiles


def check_kernels(file: Definitions) -> Iterator[Found]:
    """Findings in kernels."""
    for kernel in file.kernels.values():
        for decorator in kernel.decorator_list:
            yield from _check_decorator(decorator, file)
        if id(kernel) in file.reached:
            yield from _check_kernel(kernel, file)


def _check_decorator(node: ast.expr, file: Definitions) -> Iterator[Found]:
    made = node.func if isinstance(node, ast.Call) else node
    if file.source.path(made) not in tables.KERNEL_DECORATORS:
        yield node, f"a kernel under {ast.unparse(made)}", "use triton.jit, autotune and heuristics"
    for argument in passed(node):
        yield from Body(file, None, Context.CALL).expression(argument)
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg in tables.DECORATOR_KEYWORDS:
            yield node, f"the argument {keyword.arg} of {ast.unparse(made)}", "leave it out"


def _check_kernel(kernel: Function, file: Definitions) -> Iterator[Found]:
    local = stored(kernel) | arguments(kernel)
    annotated = [each.annotation for each in ast.walk(kernel) if isinstance(each, ast.AnnAssign)]
    skipped = {inner for each in annotated for inner in ast.walk(each)}
    known = tables.KERNEL_STATEMENTS | tables.KERNEL_EXPRESSIONS
    for node in (inner for statement in kernel.body for inner in ast.walk(statement)):
        if node in skipped:
            continue
        if isinstance(node, (ast.stmt, ast.expr)) and type(node) not in known:
            yield node, f"{named(node)} in a kernel", "write what Triton compiles"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
            yield from _check_name(node, file)
        elif isinstance(node, ast.Attribute):
            yield from _check_attribute(node, file, local)


def _check_name(node: ast.Name, file: Definitions) -> Iterator[Found]:
    name, path = node.id, file.source.path(node)
    constant = name in file.constants and file.is_constant(file.constants[name])
    builtin = name in tables.KERNEL_BUILTINS and not path and name not in file.names
    if not (name in file.kernels or constant or builtin or (path and _is_known(path))):
        if not (path or name in file.names or name in vars(builtins) or name.startswith("__")):
            yield node, f"{name} in a kernel is not defined", ""
            return
        what = f"the global {name}" if name in file.names else path or f"the name {name}"
        yield node, f"{what} in a kernel", "pass it as an argument, or make it a constant"


def _check_attribute(node: ast.Attribute, file: Definitions, local: set[str]) -> Iterator[Found]:
    name = node.attr
    if path := "" if root(node) in local else file.source.path(node):
        if path.startswith("triton.language.") and not _exists(path):
            yield node, f"Triton has no {path}", ""
        elif not _is_known(path):
            yield node, f"{path} in a kernel", _LISTED
    elif name not in tables.KERNEL_ATTRIBUTES.names and (
        name.startswith("_") or name in _OF_COMPILERS or root(node) not in local
    ):
        yield node, f"the attribute {name} in a kernel", _LISTED


def _exists(path: str) -> bool:
    name = path.split(".")[2]
    return name in tables.LANGUAGE.names | _UNLISTED | {"extra", "math"} or name.startswith("_")


def _is_known(path: str) -> bool:
    """True for a path that kernels may use, or for a module that leads to such."""
    if "._" in path:
        return False
    if path in _MODULES | _FUNCTIONS or path.startswith(("math.", *_OPEN)):
        return True
    head, _, last = path.removeprefix("triton.language.").partition(".")
    known = path.startswith("triton.language.") and head in tables.LANGUAGE.names
    return known and (not last or head == "PropagateNan")
