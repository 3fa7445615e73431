"""Patches of Triton that run and record a candidate's launches on the batched interpreter.

Triton must be imported under `TRITON_INTERPRET=1`. The patches stay: a guest runs one candidate and ends.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
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
from . import interpreted_source, libdevice, reductions, type_cache
from .batched_builder import Array, Divergent, TooLarge, encode
from .tape import Retake, identity_of, recorder

PASS_ELEMENTS = 1 << 18  # of a block times the programs that run together: keeps the arrays in the cache

builder = recorder.builder
_divergent = set[object]()  # identities of kernels whose programs diverged
_largest: dict[object, int] = {}  # elements of the largest block of a kernel's program


def install() -> None:
    semantic = TritonSemantic(recorder)
    interpreter.interpreter_builder, interpreter.interpreter_semantic = recorder, semantic
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    for owner in (tl, tl.core, tl.tensor):
        owner.reduce, owner.associative_scan = reductions.reduce, reductions.associative_scan
    tl.tensor.__index__ = lambda self: recorder.decide(self.handle, int)
    tl.tensor.__bool__ = lambda self: True if self.type.is_block() else recorder.decide(self.handle, bool)
    tl.tensor.T = property(lambda self: tl.trans(self))
    # The result of an operator on a constant and a value is no constant.
    tl.constexpr.__new__ = lambda cls, value: value if isinstance(value, tl.tensor) else object.__new__(cls)
    interpreter.FunctionRewriter.rewrite_ast = interpreted_source.rewrite
    interpreted_source.definitions(inspect.getsource(tl.standard))  # before the first fork
    TensorHandle.__init__ = _handle
    TensorHandle.set_attr = lambda self, name, numbers: recorder.run(_promised, self, name, numbers)
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


def _handle(self: TensorHandle, data: Array, dtype: tl.dtype) -> None:
    """Triton's own looks at the size of the numbers, each time."""
    self.data, self.dtype = data, dtype


def _promised(value: TensorHandle, name: str, numbers: Sequence[int]) -> None:
    """Check a hint of divisibility on a number.

    Hints on blocks concern their runs, and on addresses the caller's memory: neither is checked.
    """
    if name != "tt.divisibility" or value.data.ndim > 1 or value.dtype.is_ptr():
        return
    if (value.data % numbers[0]).any():
        raise ValueError(f"a number is said to be a multiple of {numbers[0]}, and is not")


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
    function, before = kernel.rewrite(), builder.memory.snapshot()
    identity = identity_of(function)
    run = partial(recorder.call, function, tuple(arguments[name] for name in kernel.arg_names))
    with np.errstate(all="ignore"), contextlib.ExitStack() as recording:
        while True:
            try:
                if identity in _divergent or len(programs) == 1:
                    return _one_by_one(run, programs)
                return _together(identity, run, programs, before)
            except (Divergent, Undefined):  # programs in lockstep load before an earlier one stores
                if identity in _divergent or len(programs) == 1:
                    raise
                _divergent.add(identity)
            except Retake:
                recording.enter_context(recorder.recording(identity))
            builder.memory.restore(before)
            builder.begin()


def _ordered(programs: Array) -> Array:
    """The programs in the session's order."""
    if session.order is Order.RANDOM:
        return programs[np.random.default_rng(len(programs)).permutation(len(programs))]
    return programs[:: -1 if session.order is Order.REVERSE else 1]


def _together(kernel: Any, run: Callable[[], Any], programs: Array, before: Any) -> None:
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
                run()
            return
        except TooLarge as block:
            _largest[kernel] = block.size
            builder.memory.restore(before)
            builder.begin()
        finally:
            builder.most = 0


def _one_by_one(run: Callable[[], Any], programs: Array) -> None:
    for index in range(len(programs)):
        builder.programs = programs[index : index + 1]
        run()


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
