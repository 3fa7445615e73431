"""Reading Inductor's source: its kernels, and the calls that launch them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema import parse_python

from ..syntax.ast_tools import walk
from .source_expressions import Origin, call_sources, value_origins

_OPERATORS = re.compile(r"Original ATen: \[(.*?)\]")
_GRID = re.compile(r"'grid_type': '(\w+)'")
_ROLES = {"tl.sum(": "sum", "triton_helpers.max2(": "max", "triton_helpers.min2(": "min"}
_MUTATED = re.compile(r"'mutated_arg_names': \[\]")
_ATOMIC = re.compile(r"'atomic_add_found': True")
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
    sources: dict[int, str]  # line of the function -> the reference's expression that it is a part of
    origins: dict[str, Origin]  # of its values, see `sources`
    stored: dict[str, str]  # parameter -> what it takes: an operator's result, "relu", or a part of it, "softmax sum"
    accumulates: bool  # it reads what it writes: a second run on the same memory gives something else

    @property
    def parameters(self) -> list[str]:
        """Those that a launch passes by position: pointers and sizes, no block sizes."""
        return [argument.arg for argument in self.function.args.args if not argument.arg.endswith("BLOCK")]


@dataclass(frozen=True, slots=True)
class RawSource:
    kernels: dict[str, RawKernel]
    call: list[ast.stmt]  # body of the function that launches them
    sources: dict[int, tuple[str, ...]]  # line of a launch -> the reference's expressions that lead to it


def parse(source: str) -> RawSource:
    """Splits Inductor's source.

    Raises:
        NotTidied: it has kernels that are not Triton's, or no function that calls them.
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
                text = args[1]
                assert isinstance(text, ast.Constant) and isinstance(text.value, str)
                kernels[name] = _kernel(name, text.value, comments.get(name, ""))
            case ast.FunctionDef(name="call", body=body):
                call = body
    if call is None:
        raise NotTidied("no function that launches the kernels")
    return RawSource(kernels, call, call_sources(source))


def _comments(source: str) -> dict[str, str]:
    """Kernel -> what stands before its definition, from the line on that names its operators."""
    found: dict[str, str] = {}
    for kernel in _KERNEL.finditer(source):
        if (start := source.rfind("Original ATen: [", 0, kernel.start())) >= 0:
            found[kernel[1]] = source[start : kernel.start()]
    return found


def _operators(comments: str, origins: Mapping[str, Origin]) -> tuple[str, ...]:
    """Those that its values come from; if that is not known, all that led to it."""
    if known := [origin.operator for origin in origins.values() if origin.operator]:
        return tuple(dict.fromkeys(known))
    names = (name.strip().split(".")[-1] for listed in _OPERATORS.findall(comments)[:1] for name in listed.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _kernel(name: str, text: str, comments: str) -> RawKernel:
    functions = [statement for statement in parse_python.parse(text).body if isinstance(statement, ast.FunctionDef)]
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
    origins = value_origins(comments)
    nodes = list(walk(main))
    assigned = [node for node in nodes if isinstance(node, ast.Assign)]
    return RawKernel(
        name=name,
        function=main,
        helpers=tuple(functions[:-1]),
        heuristic=heuristic.func.attr,
        grid=grid[1] if (grid := _GRID.search(text)) else "",
        hints=ast.literal_eval(options["size_hints"]),
        types=ast.literal_eval(signature),
        operators=_operators(comments, origins),
        sources=_sources(assigned, origins),
        origins=origins,
        stored=_stored(nodes, assigned, origins),
        accumulates=not _MUTATED.search(text) or bool(_ATOMIC.search(text)),
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
                parameter = next(part.id for part in walk(pointer) if isinstance(part, ast.Name))
                made = ast.unparse(values[value]) if value in values else ""
                role = next((role for start, role in _ROLES.items() if made.startswith(start)), "")
                found[parameter] = f"{origins[value].operator} {role}".strip()
    return found
