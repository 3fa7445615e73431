"""Patches of Triton that run and record a candidate's launches on the batched interpreter.

Triton must be imported under `TRITON_INTERPRET=1`. The patches stay: a guest runs one candidate and ends.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, TensorHandle
from triton.runtime.jit import JITFunction, KernelParam, mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from ..candidate import fake_cuda
from ..candidate.launch_log import Launched, Order, bind, session, sizes
from ..compiler import autotune
from ..lib.faults import Undefined
from . import libdevice, reductions, type_cache
from .batched_builder import Array, BatchedBuilder, Divergent, TooLarge, encode, uniform

PASS_ELEMENTS = 1 << 18  # of a block times the programs that run together: keeps the arrays in the cache


builder = BatchedBuilder()
_divergent: set[Any] = set()  # kernels whose programs diverged
_largest: dict[Any, int] = {}  # elements of the largest block of a kernel's program


def install() -> None:
    semantic = TritonSemantic(builder)
    interpreter.interpreter_builder, interpreter.interpreter_semantic = builder, semantic
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    for owner in (tl, tl.core, tl.tensor):
        owner.reduce, owner.associative_scan = reductions.reduce, reductions.associative_scan
    tl.tensor.__index__ = lambda self: int(uniform(self.handle.data))
    tl.tensor.__bool__ = lambda self: True if self.type.is_block() else bool(uniform(self.handle.data))
    tl.tensor.T = property(lambda self: tl.trans(self))
    # The result of an operator on a constant and a value is no constant.
    tl.constexpr.__new__ = lambda cls, value: value if isinstance(value, tl.tensor) else object.__new__(cls)
    interpreter.FunctionRewriter.ast_transformer = _Rewriter()
    interpreter.FunctionRewriter.rewrite_ast = _rewritten(interpreter.FunctionRewriter.rewrite_ast)
    # The rewriter's calls name them: Triton copies its own globals into a kernel's.
    interpreter._logical, interpreter._counted, interpreter._extreme = _logical, _counted, _extreme
    TensorHandle.set_attr = _promised
    InterpretedFunction.run = _run
    # PyTorch prints kernels in containers, and reads names of their class.
    InterpretedFunction.__repr__ = lambda self: f"JITFunction({self.fn.__module__}:{self.fn.__qualname__})"
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(InterpretedFunction, name, getattr(JITFunction, name))
    InterpretedFunction.__call__ = lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs)
    autotune.install(session.unseen)
    libdevice.install(semantic)
    type_cache.install()
    _scalar(0)  # its first call imports much of Triton


class _Rewriter(interpreter.ASTTransformer):
    """Triton's own rewriting, and that of operators that Python would decide by truth value.

    `and`, `or`, `not`, `min` and `max` work on blocks. Loops count with a GPU's integers, which overflow and divide
    towards zero. Assertions are dropped: they are not compiled.
    """

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Pass()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return ast.Call(ast.Name("_extreme", ast.Load()), [node.func, *node.args], node.keywords)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        function = node.iter.func if isinstance(node.iter, ast.Call) else None
        if getattr(function, "attr", getattr(function, "id", "")) == "range":
            node.iter = ast.Call(ast.Name("_counted", ast.Load()), [node.iter], [])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        return super().visit_Assign(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        parts = [ast.Lambda(_NO_ARGUMENTS, value) for value in node.values]
        return _call("and" if isinstance(node.op, ast.And) else "or", parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("not", [ast.Lambda(_NO_ARGUMENTS, node.operand)]) if isinstance(node.op, ast.Not) else node


def _rewritten(rewrite: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`rewrite` a function once: a file that a guest loads again has the same functions."""
    known: dict[tuple[CodeType, bytes], CodeType] = {}  # with positions, which equal code may lack

    def once(self: Any) -> Any:
        kernel = self.fn
        key = kernel.__code__, kernel.__code__.co_linetable
        if key not in known:
            made = rewrite(self)
            known[key] = made.__code__
            return made
        for name, value in vars(interpreter).items():
            kernel.__globals__.setdefault(name, value)
        made = FunctionType(known[key], kernel.__globals__, kernel.__name__, kernel.__defaults__, kernel.__closure__)
        made.__kwdefaults__ = kernel.__kwdefaults__
        return made

    return once


_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _promised(value: TensorHandle, name: str, numbers: Sequence[int]) -> None:
    """Check a hint of divisibility on a number.

    Hints on blocks concern their runs, and on addresses the caller's memory: neither is checked.
    """
    if name != "tt.divisibility" or value.data.ndim > 1 or value.dtype.is_ptr():
        return
    if (value.data % numbers[0]).any():
        raise ValueError(f"a number is said to be a multiple of {numbers[0]}, and is not")


def _call(operator: str, parts: list[ast.Lambda]) -> ast.Call:
    return ast.Call(ast.Name("_logical", ast.Load()), [ast.Constant(operator), *parts], [])


def _counted(numbers: Iterable[int]) -> Iterator[Any]:
    for number in numbers:
        yield _argument(number)


def _extreme(function: Any, *values: Any, **options: Any) -> Any:
    if function not in (min, max) or not any(isinstance(value, tl.tensor) for value in values):
        return function(*values, **options)
    return functools.reduce(tl.minimum if function is min else tl.maximum, values)


def _logical(operator: str, *parts: Any) -> Any:
    value = parts[0]()
    if operator == "not":
        return interpreter.interpreter_semantic.not_(value) if isinstance(value, tl.tensor) else not value
    for part in parts[1:]:
        if not isinstance(value, tl.tensor) and bool(value) == (operator == "or"):
            return value  # Python's short circuit
        other = part()
        if isinstance(value, tl.tensor) or isinstance(other, tl.tensor):
            semantic = interpreter.interpreter_semantic
            left, right = semantic.to_tensor(value), semantic.to_tensor(other)
            value = semantic.logical_and(left, right) if operator == "and" else semantic.logical_or(left, right)
        else:
            value = other
    return value


def _run(self: InterpretedFunction, *args: Any, grid: Any, warmup: bool = False, **options: Any) -> Launched:
    """Run every program of a launch, and record it. Replaces `run`, which `kernel[grid](...)` calls."""
    if warmup:
        return Launched()
    try:
        bound = bind(self.fn, args, options)
        shape = sizes(grid, bound)
        for hook in self.pre_run_hooks:
            hook(*args, **options)
        if 0 in shape:  # Triton launches nothing
            return Launched()
        if not session.skip:
            _execute(self, bound, shape)
    except Exception as error:
        session.failed.append(f"{self.__name__}: {type(error).__name__}: {error}")
        raise
    session.launches.append((self.__name__, shape))
    session.add(self.__name__, shape, bound, options)
    return Launched()


def _execute(kernel: InterpretedFunction, bound: dict[str, Any], grid: tuple[int, ...]) -> None:
    constant, types = _declared(kernel.fn)
    given = kernel.kwargs.get("do_not_specialize") or ()
    general = {
        *kernel.fn.__annotations__,
        *(kernel.arg_names[item] if isinstance(item, int) else item for item in given),
    }
    arguments = {
        name: value if name in constant else _argument(value, name not in general, types.get(name, ""))
        for name, value in bound.items()
    }
    fake_cuda.check_reachable(bound.values())
    cells = session.memory.of_launch(bound) if session.memory is not None else None
    builder.memory.allow(fake_cuda.tensors_of(bound.values()), cells)
    builder.begin()
    builder.set_grid_dim(*grid, *(1,) * (3 - len(grid)))
    programs = np.stack(np.meshgrid(*(np.arange(n, dtype=np.int32) for n in builder.grid_dim), indexing="ij"), -1)
    programs = _ordered(programs.reshape(-1, 3))
    function = kernel.rewrite()
    with np.errstate(all="ignore"):
        if kernel.fn in _divergent or len(programs) == 1:
            _one_by_one(function, arguments, programs)
            return
        before = builder.memory.snapshot()
        try:
            _together(kernel.fn, function, arguments, programs, before)
        except (Divergent, Undefined):  # programs in lockstep load before an earlier one stores
            _divergent.add(kernel.fn)
            builder.memory.restore(before)
            builder.begin()
            _one_by_one(function, arguments, programs)


def _ordered(programs: Array) -> Array:
    """The programs in the session's order."""
    if session.order is Order.RANDOM:
        return programs[np.random.default_rng(len(programs)).permutation(len(programs))]
    return programs[:: -1 if session.order is Order.REVERSE else 1]


def _together(kernel: Any, function: Any, arguments: dict[str, Any], programs: Array, before: Any) -> None:
    """Run as many programs at once as fit a pass, which the largest block decides.

    Programs of one pass run in lockstep, which hides dependencies between them. In another order than forward there are
    at least three passes, so that a dependency on an earlier program fails.
    """
    least = 1 if session.order is Order.FORWARD else min(3, len(programs))
    while True:
        passes = max(least, -(-len(programs) * _largest.get(kernel, 1) // PASS_ELEMENTS))
        try:
            for part in np.array_split(programs, min(passes, len(programs))):
                builder.programs = part
                builder.most = PASS_ELEMENTS // len(part) if len(part) > 1 else 0
                function(**arguments)
            return
        except TooLarge as block:
            _largest[kernel] = block.size
            builder.memory.restore(before)
            builder.begin()
        finally:
            builder.most = 0


def _one_by_one(function: Any, arguments: dict[str, Any], programs: Array) -> None:
    for index in range(len(programs)):
        builder.programs = programs[index : index + 1]
        function(**arguments)


@functools.cache
def _declared(function: Any) -> tuple[set[str], dict[str, str]]:
    """The parameters that are annotated as constants, and the annotated types of the others."""
    named = inspect.signature(function).parameters.values()
    parameters = [KernelParam(number, each, False, False) for number, each in enumerate(named)]
    types = {each.name: each.annotation_type for each in parameters if each.annotation_type}
    return {each.name for each in parameters if each.is_constexpr}, types


def _argument(value: Any, specialized: bool = False, declared: str = "") -> Any:
    """A launch's argument as the kernel gets it: pointers and numbers become values, others stay.

    Args:
        specialized: Triton compiles a kernel of its own for the number 1, so 1 stays a constant.
        declared: the annotated type, which the value is converted to.
    """
    if isinstance(value, tuple):
        items = tuple(_argument(item, specialized) for item in value)
        return type(value)(*items) if hasattr(value, "_fields") else items
    if specialized and type(value) is int and value == 1:
        return value
    if isinstance(value, TensorDescriptor):
        return _descriptor(value)
    if isinstance(value, torch.Tensor):
        data: Array = np.array([value.data_ptr()], dtype=np.uint64)
    elif isinstance(value, bool):
        data = np.array([value])
    elif isinstance(value, int):
        data = np.array([value], dtype=interpreter._get_np_dtype(_scalar(value)))
    elif isinstance(value, float):
        data = np.array([value], dtype=np.float32)
    else:
        return value
    if declared:
        dtype = tl.str_to_ty(declared, None)
        data = data if isinstance(value, torch.Tensor) else encode(data, dtype)
    else:
        dtype = _scalar(value)
    return tl.tensor(TensorHandle(data, dtype), dtype)


def _descriptor(value: TensorDescriptor) -> tl.tensor_descriptor:
    """A descriptor that the host made, as the kernel would make it. Its last stride is 1."""
    return interpreter.interpreter_semantic.make_tensor_descriptor(
        base=_argument(value.base),
        shape=[_argument(size) for size in value.shape],
        strides=[*(_argument(stride) for stride in value.strides[:-1]), tl.constexpr(1)],
        block_shape=[tl.constexpr(size) for size in value.block_shape],
        padding_option=value.padding,
    )


def _scalar(value: Any) -> tl.dtype:
    return tl.str_to_ty("i1" if isinstance(value, bool) else mangle_type(value), None)
