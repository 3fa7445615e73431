"""Render a probed module as one file in KernelBench's form: `Model`, `get_inputs()` and `get_init_inputs()`."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import TensorSpec, Workload

from .split_lines import lines_of

_WIDTH = 100
_INDENT = "    "


def render(code: str, init_args: str, workload: Workload) -> str:
    """`code` followed by functions that return the constructor's and forward's positional arguments.

    Args:
        code: source of the module, whose class is called `Model`.
        init_args: Python source of a list.
        workload: the call that `get_inputs()` makes; it has no keyword arguments.
    """
    inputs = [_argument(tree, workload.tensors) for tree in json.loads(workload.args)]
    arguments = [ast.get_source_segment(init_args, node) or "" for node in _list(init_args).elts]
    functions = f"{_function('get_inputs', inputs)}\n\n{_function('get_init_inputs', arguments)}"
    return f"{_with_imports(code, functions).rstrip()}\n\n\n{functions}"


def is_list(init_args: str) -> bool:
    """True if the text is the source of a list and nothing else."""
    try:
        _list(init_args)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _list(init_args: str) -> ast.List:
    node = parse_expression(init_args)
    if not isinstance(node, ast.List):
        raise ValueError(f"not a list: {init_args[:80]}")
    return node


def _argument(tree: Any, tensors: Sequence[TensorSpec]) -> str:
    """Python source of one argument."""
    if isinstance(tree, dict) and tree.keys() == {"tensor"}:
        return _tensor(tensors[tree["tensor"]])
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key!r}: {_argument(value, tensors)}' for key, value in tree.items())}}}"
    if isinstance(tree, list):
        return f"[{', '.join(_argument(item, tensors) for item in tree)}]"
    return repr(tree)


def _tensor(spec: TensorSpec) -> str:
    sizes = ", ".join(map(str, spec.shape)) or "()"
    if spec.dtype == "bool":
        return f"torch.rand({sizes}) < 0.5"
    if spec.dtype.startswith(("float", "bfloat")):
        dtype = "" if spec.dtype == "float32" else f", dtype=torch.{spec.dtype}"
        if spec.low < spec.high:
            bounds = "" if (spec.low, spec.high) == (0, 1) else f".uniform_({spec.low}, {spec.high})"
            return f"torch.rand({sizes}{dtype}){bounds}"
        return f"torch.randn({sizes}{dtype})"
    dtype = "" if spec.dtype == "int64" else f", dtype=torch.{spec.dtype}"
    return f"torch.randint({spec.low}, {spec.high}, {spec.shape}{dtype})"


def _function(name: str, items: Sequence[str]) -> str:
    line = f"{_INDENT}return [{', '.join(items)}]"
    if len(line) > _WIDTH:
        inside = "".join(f"{_INDENT * 2}{item},\n" for item in items)
        line = f"{_INDENT}return [\n{inside}{_INDENT}]"
    return f"def {name}():\n{line}\n"


def _with_imports(code: str, functions: str) -> str:
    """Add `import torch` and `from torch import nn` where the functions need them and the code lacks them."""
    tree = parse(code)
    bound = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    used = {node.id for node in ast.walk(parse(functions)) if isinstance(node, ast.Name)}
    wanted = {"torch": "import torch\n", "nn": "from torch import nn\n"}
    missing = "".join(line for name, line in wanted.items() if name in used and name not in bound)
    if not missing:
        return code
    lines = lines_of(code)
    at = _first_line_after_preamble(tree)
    return "".join([*lines[:at], missing, *lines[at:]])


def _first_line_after_preamble(tree: ast.Module) -> int:
    """Number of lines up to the docstring and the `__future__` imports, with the empty line after them."""
    end = 0
    for index, node in enumerate(tree.body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            return min(node.lineno - 1, end + 1) if end else 0
        end = node.end_lineno or end
    return end
