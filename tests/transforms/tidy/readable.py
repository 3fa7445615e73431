"""Check the form of a tidied file on its syntax tree; `complaints` is empty for a good file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import triton.language as tl

WIDTH = 120
# Names with a meaning in Inductor only.
_INDUCTOR = re.compile(
    r"(in|out|in_out)_ptr\d+|tmp\d+|[xyz](index|numel|mask|offset|\d)|r\d_\w+|R\d_BLOCK|[XYZ]BLOCK|ks\d+|ps\d+|s\d+"
    r"|arg\d+_\d+|buf\d+|_triton_helper\w*|triton_helpers|tl_math|triton_heuristics|async_compile|extern_kernels"
    r"|reinterpret_tensor|empty_strided_cuda|assert_size_stride|get_raw_stream"
)

STANDARD = "abc collections copy dataclasses enum functools itertools math numbers operator typing warnings".split()


def complaints(code: str) -> list[str]:
    tree = ast.parse(code)
    checks = (_imports, _names, _libdevice, _unused, _masks)
    found = [complaint for check in checks for complaint in check(tree)]
    return found + [f"line of {len(line)}: {line}" for line in code.splitlines() if len(line) > WIDTH]


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def kernels(tree: ast.AST) -> list[ast.FunctionDef]:
    return [f for f in functions(tree) if any(ast.unparse(d) == "triton.jit" for d in f.decorator_list)]


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            if module.split(".")[0] not in ("torch", "triton", *STANDARD) or "_inductor" in module:
                yield f"import of {module}"
        if modules and node not in tree.body:
            yield f"an import inside of a function: {ast.unparse(node)}"


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg | ast.FunctionDef | ast.Attribute):
            name = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name", ast.Attribute: "attr"}[type(node)]
            if _INDUCTOR.fullmatch(getattr(node, name)):
                yield f"Inductor's name {getattr(node, name)}"


def _libdevice(tree: ast.Module) -> Iterator[str]:
    """Calls of libdevice for which Triton's own language has a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "libdevice" and hasattr(tl, node.attr):
            yield f"libdevice.{node.attr}, which is tl.{node.attr}"


def _unused(tree: ast.Module) -> Iterator[str]:
    """Unused imports and functions, and unused parameters and variables of kernels and `forward`."""
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for node in tree.body:
        names = [alias.asname or alias.name for alias in getattr(node, "names", [])]
        names += [node.name] if isinstance(node, ast.FunctionDef) else []
        yield from (f"{name} is not used" for name in names if name not in loaded)
    forward = [function for function in functions(tree) if function.name == "forward"]
    for function in [*kernels(tree), *forward[-1:]]:
        nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
        given = [] if function in forward else [argument.arg for argument in function.args.args]
        statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
        stored = [[n.id for n in ast.walk(s.targets[0]) if isinstance(n, ast.Name)] for s in statements]
        for names in [*([name] for name in given), *stored]:
            if not set(names) & read:
                yield f"{', '.join(names)} in {function.name} is not used"


def _masks(tree: ast.Module) -> Iterator[str]:
    """Conditions that are constants or compare constants."""
    for node in ast.walk(tree):
        keywords = {keyword.arg: keyword.value for keyword in node.keywords} if isinstance(node, ast.Call) else {}
        if isinstance(mask := keywords.get("mask"), ast.Constant):
            yield f"mask={mask.value}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.full" and "int1" in ast.unparse(node):
            yield f"a block of truths: {ast.unparse(node)}"
        if isinstance(node, ast.Compare) and all(isinstance(n, ast.Constant) for n in [node.left, *node.comparators]):
            yield f"a comparison of constants: {ast.unparse(node)}"
