"""Parse the body of Inductor's calling function into steps: sizes, buffers, views, launches, results."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..refusals import NotTidied

_IGNORED_CALLS = ("args.clear", "torch.cuda.set_device", "assert_size_stride", "assert_alignment")


@dataclass(frozen=True, slots=True)
class Size:
    """A symbol that stands for one dimension of an input."""

    name: str
    argument: str
    dim: int


@dataclass(frozen=True, slots=True)
class Define:
    """A number computed from sizes."""

    name: str
    value: ast.expr


@dataclass(frozen=True, slots=True)
class Allocate:
    """A new buffer."""

    name: str
    shape: list[ast.expr]
    stride: list[ast.expr]
    dtype: str


@dataclass(frozen=True, slots=True)
class Bind:
    """A name for a view of a buffer or for the result of a library operator."""

    name: str
    value: ast.expr


@dataclass(frozen=True, slots=True)
class Run:
    """A library operator called for its effect."""

    call: ast.Call


@dataclass(frozen=True, slots=True)
class LaunchKernel:
    """A launch of a Triton kernel."""

    kernel: str
    args: list[ast.expr]
    line: int  # in the source


@dataclass(frozen=True, slots=True)
class Return:
    """The results."""

    values: list[ast.expr]


Step = Size | Define | Allocate | Bind | Run | LaunchKernel | Return


def steps(call: Sequence[ast.stmt]) -> list[Step]:
    """Parse the statements of the calling function.

    Raises:
        NotTidied: a statement has an unknown form.
    """
    sizes: dict[str, str] = {}  # "arg0_1_size" -> "arg0_1"
    parsed = (_step(_PlainNumbers().visit(statement), sizes) for statement in _flat(call))
    return [step for step in parsed if step is not None]


class _PlainNumbers(ast.NodeTransformer):
    """Rewrite sizes that go through a fraction, `math.trunc(0.5 * torch.sym_float(s))`, to plain Python."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(ast.Name("math"), "trunc"), args=[value]):
                return ast.Call(ast.Name("int"), [value], [])
            case ast.Call(func=ast.Attribute(ast.Name("torch"), "sym_float"), args=[value]):
                return ast.Call(ast.Name("float"), [value], [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Constant(float()), ast.Mult(), ast.Call(func=ast.Name("float"), args=[size])):
                return ast.BinOp(node.left, node.op, size)
        return node


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the `with` blocks in it."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _flat(statement.body)
        else:
            yield statement


def _step(statement: ast.stmt, sizes: dict[str, str]) -> Step | None:
    match statement:
        case ast.Delete() | ast.Assign(targets=[ast.Tuple()], value=ast.Name("args")):
            return None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(kernel), attr="run"), args=args)):
            return LaunchKernel(kernel, list(args), statement.lineno)
        case ast.Expr(value=ast.Call(func=func) as call):
            return None if ast.unparse(func) in _IGNORED_CALLS else Run(call)
        case ast.Assign(targets=[ast.Name(name)], value=value):
            return _assignment(name, value, sizes)
        case ast.Return(value=ast.Tuple(elts=values)):
            return Return(list(values))
    raise NotTidied(f"statement {ast.unparse(statement)[:120]}")


def _assignment(name: str, value: ast.expr, sizes: dict[str, str]) -> Step | None:
    match value:
        case ast.Call(func=ast.Name("get_raw_stream" | "copy_if_misaligned")):
            return None
        case ast.Call(func=ast.Attribute(value=ast.Name(argument), attr="size"), args=[]):
            sizes[name] = argument
            return None
        case ast.Subscript(value=ast.Name(whole), slice=ast.Constant(value=int(dim))) if whole in sizes:
            return Size(name, sizes[whole], dim)
        case ast.Call(func=ast.Name("empty_strided_cuda"), args=[ast.Tuple(elts=shape), ast.Tuple(elts=stride), dtype]):
            return Allocate(name, shape, stride, ast.unparse(dtype))
    return Bind(name, value) if name.startswith(("buf", "arg")) else Define(name, value)
