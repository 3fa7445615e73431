"""Reading Inductor's source: its kernels, and the calls that launch them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_OPERATORS = re.compile(r"Original ATen: \[(.*?)\]")
_GRID = re.compile(r"'grid_type': '(\w+)'")
_KERNEL = re.compile(r"^(\w+) = async_compile\.triton\(", re.MULTILINE)


class NotTidied(Exception):
    """The source has a form that is not known; the message says which."""


@dataclass(frozen=True, slots=True)
class RawKernel:
    name: str
    function: ast.FunctionDef
    helpers: tuple[ast.FunctionDef, ...]  # combine functions that are defined beside it
    heuristic: str  # "pointwise", "reduction" or "persistent_reduction"
    grid: str  # how programs map to axes, "Grid1D"
    hints: dict[str, int]  # rounded sizes of the axes for the first workload, by prefix
    types: dict[str, str]  # parameter -> "*fp32", "i32", "constexpr"
    operators: tuple[str, ...]  # aten operators that it fuses, in order

    @property
    def parameters(self) -> list[str]:
        """Those that a launch passes by position: pointers and sizes, no block sizes."""
        return [argument.arg for argument in self.function.args.args if not argument.arg.endswith("BLOCK")]


@dataclass(frozen=True, slots=True)
class RawSource:
    kernels: dict[str, RawKernel]
    call: list[ast.stmt]  # body of the function that launches them


def parse(source: str) -> RawSource:
    """Splits Inductor's source.

    Raises:
        NotTidied: it has kernels that are not Triton's, or no function that calls them.
    """
    operators = _operators(source)
    kernels: dict[str, RawKernel] = {}
    call: list[ast.stmt] | None = None
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name("async_compile"), attr=language), args=args),
            ):
                if language != "triton":
                    raise NotTidied(f"a kernel in {language}")
                text = args[1]
                assert isinstance(text, ast.Constant) and isinstance(text.value, str)
                kernels[name] = _kernel(name, text.value, operators.get(name, ()))
            case ast.FunctionDef(name="call", body=body):
                call = body
    if call is None:
        raise NotTidied("no function that launches the kernels")
    return RawSource(kernels, call)


def _operators(source: str) -> dict[str, tuple[str, ...]]:
    """Kernel -> the operators that the comment before its definition names."""
    found: dict[str, tuple[str, ...]] = {}
    for kernel in _KERNEL.finditer(source):
        comments = _OPERATORS.findall(source, 0, kernel.start())
        if comments:
            names = (name.strip().split(".")[-1] for name in comments[-1].split(","))
            found[kernel[1]] = tuple(dict.fromkeys(name for name in names if name))
    return found


def _kernel(name: str, text: str, operators: tuple[str, ...]) -> RawKernel:
    functions = [statement for statement in ast.parse(text).body if isinstance(statement, ast.FunctionDef)]
    main = functions[-1]
    heuristic = main.decorator_list[0]
    if not (isinstance(heuristic, ast.Call) and isinstance(heuristic.func, ast.Attribute)):
        raise NotTidied(f"kernel {name} without launch heuristics")
    if heuristic.func.attr not in ("pointwise", "reduction", "persistent_reduction"):
        raise NotTidied(f"kernel of kind {heuristic.func.attr}")
    options = {keyword.arg: keyword.value for keyword in heuristic.keywords}
    meta = options["triton_meta"]
    assert isinstance(meta, ast.Dict)
    signature = next(
        value for key, value in zip(meta.keys, meta.values, strict=True) if ast.unparse(key or meta) == "'signature'"
    )
    return RawKernel(
        name=name,
        function=main,
        helpers=tuple(functions[:-1]),
        heuristic=heuristic.func.attr,
        grid=grid[1] if (grid := _GRID.search(text)) else "",
        hints=ast.literal_eval(options["size_hints"]),
        types=ast.literal_eval(signature),
        operators=operators,
    )
