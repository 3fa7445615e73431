"""Read BackendBench: operators such as `aten.add.Tensor`, each with calls such as `((T([4, 2], f16), 2), {})`.

A problem is the call of one operator. Calls that differ in numbers alone are one problem.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from kernelquarry.pipeline.schema.parse_python import parse_expression
from kernelquarry.pipeline.schema.records import ENTRY_POINT

_OPERATOR, _CALL = re.compile(r"Operator: (\S+)$"), re.compile(r"cnt: \d+, (.+)$")
_NUMBER = re.compile(r"-?\b\d[\d.e+-]*")
_DTYPES = {
    "b8": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128", "f16": "float16", "f32": "float32",
    "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
}  # fmt: skip


def read_trace(text: str) -> Iterator[tuple[str, str]]:
    """(operator, call) of each call in a trace file."""
    operator = ""
    for line in text.splitlines():
        if match := _OPERATOR.match(line):
            operator = match[1]
        elif (match := _CALL.match(line)) and operator:
            yield operator, match[1]


def problems_of(calls: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """(name, source of `Model`) for each call that differs from the earlier ones in more than numbers."""
    seen: dict[str, set[str]] = {}
    for operator, call in calls:
        code = module_of_call(operator, call)
        kinds = seen.setdefault(operator, set())
        if code and (kind := _NUMBER.sub("0", code)) not in kinds:
            kinds.add(kind)
            yield f"{operator}-{len(kinds)}", code


def module_of_call(operator: str, call: str) -> str:
    """Source of a module whose forward takes the call's tensors and makes the call; "" for an unknown syntax."""
    tensors = _Tensors()
    try:
        match parse_expression(call):
            case ast.Tuple(elts=[ast.Tuple() as args, ast.Dict() as options]):
                arguments = [ast.unparse(tensors.visit(arg)) for arg in args.elts]
                for key, value in zip(options.keys, options.values, strict=True):
                    assert isinstance(key, ast.Constant) and isinstance(key.value, str)
                    arguments.append(f"{key.value}={ast.unparse(tensors.visit(value))}")
            case _:
                return ""
    except (SyntaxError, KeyError, AssertionError):
        return ""
    takes = ", ".join(["self", *(f"x{i}" for i in range(tensors.count))])
    return (
        f"import torch\n\n\nclass {ENTRY_POINT}(torch.nn.Module):\n    def forward({takes}):\n"
        f"        return torch.ops.{operator}({', '.join(arguments)})\n"
    )


class _Tensors(ast.NodeTransformer):
    """Replaces tensors by names, and short dtypes by full ones. Raises: KeyError: a name is no dtype."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.count += 1
        return ast.Name(f"x{self.count - 1}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(f"torch.{_DTYPES[node.id]}")
