"""Parse Inductor's source into its kernels and the body of the function that launches them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema import parse_python

from ..refusals import NotTidied
from ..syntax.ast_tools import keywords_of, names_in, walk
from .source_expressions import Origin, call_sources, value_origins

_OPERATORS = re.compile(r"Original ATen: \[(.*?)\]")
_GRID = re.compile(r"'grid_type': '(\w+)'")
_ROLES = {"tl.sum(": "sum", "triton_helpers.max2(": "max", "triton_helpers.min2(": "min"}
_KERNEL = re.compile(r"^(\w+) = async_compile\.triton\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RawKernel:
    """A kernel as Inductor writes it."""

    function: ast.FunctionDef
    helpers: tuple[ast.FunctionDef, ...]  # combine functions that its source defines
    grid: str  # mapping of programs to axes, "Grid1D"
    hints: dict[str, int]  # rounded sizes of the axes for the first workload, by prefix
    types: dict[str, str]  # parameter -> "*fp32", "i32", "constexpr"
    operators: tuple[str, ...]  # aten operators that it fuses, in order
    sources: dict[int, str]  # line of the function -> expression of the reference that the line belongs to
    origins: dict[str, Origin]  # name of a value -> its origin
    stored: dict[str, str]  # parameter -> the result stored through it: an operator, "relu", or a part, "softmax sum"
    accumulates: bool  # it reads its own output: a second run on the same memory gives another result

    @property
    def parameters(self) -> list[str]:
        """Parameters that a launch passes by position: pointers and sizes, no block sizes."""
        return [argument.arg for argument in self.function.args.args if not argument.arg.endswith("BLOCK")]


@dataclass(frozen=True, slots=True)
class RawSource:
    """One source of Inductor's."""

    kernels: dict[str, RawKernel]
    call: list[ast.stmt]  # body of the function that launches them
    sources: dict[int, tuple[str, ...]]  # line of a launch -> expressions of the reference that lead to it


def parse(source: str) -> RawSource:
    """Split Inductor's source.

    Raises:
        NotTidied: a kernel is not in Triton, or no function launches the kernels.
    """
    comments = _comments(source)
    kernels: dict[str, RawKernel] = {}
    call: list[ast.stmt] | None = None
    for statement in parse_python.parse(source).body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name("async_compile"), attr=language), args=args),
            ):
                if language != "triton":
                    raise NotTidied(f"a kernel in {language}")
                kernels[name] = _kernel(name, ast.literal_eval(args[1]), comments.get(name, ""))
            case ast.FunctionDef(name="call", body=body):
                call = body
    if call is None:
        raise NotTidied("no function that launches the kernels")
    return RawSource(kernels, call, call_sources(source))


def _comments(source: str) -> dict[str, str]:
    """Kernel -> the comments before its definition, from the line that names its operators."""
    found: dict[str, str] = {}
    for kernel in _KERNEL.finditer(source):
        if (start := source.rfind("Original ATen: [", 0, kernel.start())) >= 0:
            found[kernel[1]] = source[start : kernel.start()]
    return found


def _operators(comments: str, origins: Mapping[str, Origin]) -> tuple[str, ...]:
    """Operators of the kernel's values; if they are unknown, all operators that led to the kernel."""
    if known := [origin.operator for origin in origins.values() if origin.operator]:
        return tuple(dict.fromkeys(known))
    names = (name.strip().split(".")[-1] for listed in _OPERATORS.findall(comments)[:1] for name in listed.split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def _kernel(name: str, text: str, comments: str) -> RawKernel:
    functions = [statement for statement in parse_python.parse(text).body if isinstance(statement, ast.FunctionDef)]
    main = functions[-1]
    heuristic = main.decorator_list[0]
    if not (isinstance(heuristic, ast.Call) and isinstance(heuristic.func, ast.Attribute)):
        raise NotTidied(f"kernel {name} without launch heuristics")
    if heuristic.func.attr not in ("pointwise", "reduction", "persistent_reduction"):
        raise NotTidied(f"kernel of kind {heuristic.func.attr}")
    options = keywords_of(heuristic)
    meta = options["triton_meta"]
    assert isinstance(meta, ast.Dict)
    entries = {ast.unparse(key): value for key, value in zip(meta.keys, meta.values, strict=True) if key}
    origins = value_origins(comments)
    nodes = list(walk(main))
    assigned = [node for node in nodes if isinstance(node, ast.Assign)]
    return RawKernel(
        function=main,
        helpers=tuple(functions[:-1]),
        grid=grid[1] if (grid := _GRID.search(text)) else "",
        hints=ast.literal_eval(options["size_hints"]),
        types=ast.literal_eval(entries["'signature'"]),
        operators=_operators(comments, origins),
        sources=_sources(assigned, origins),
        origins=origins,
        stored=_stored(nodes, assigned, origins),
        accumulates="'mutated_arg_names': []" not in text or "'atomic_add_found': True" in text,
    )


def _sources(assigned: Sequence[ast.Assign], origins: Mapping[str, Origin]) -> dict[int, str]:
    lines = [(node.lineno, origins.get(ast.unparse(node.targets[0]))) for node in assigned]
    return {line: origin.expression for line, origin in lines if origin and origin.expression}


def _stored(nodes: Sequence[ast.AST], assigned: Sequence[ast.Assign], origins: Mapping[str, Origin]) -> dict[str, str]:
    values = {node.targets[0].id: node.value for node in assigned if isinstance(node.targets[0], ast.Name)}
    found: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="store"), args=[pointer, ast.Name(value), *_]) if value in origins:
                made = ast.unparse(values[value]) if value in values else ""
                role = next((role for start, role in _ROLES.items() if made.startswith(start)), "")
                found[names_in(pointer)[0]] = f"{origins[value].operator} {role}".strip()
    return found
