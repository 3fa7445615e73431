"""Triton's interpreter, over all programs of a grid at once, on a CPU.

Triton's own interpreter (`TRITON_INTERPRET=1`) runs one program after another, each operation on
NumPy arrays of one block, so that a grid of a thousand small programs costs seconds of Python. Here
every value has a hidden leading axis for the programs: data of shape `(programs, *block)`, or
`(1, *block)` where all programs hold the same value. Triton's frontend (`TritonSemantic`) only looks
at types, so it works unchanged on top of this builder.

Programs whose control flow differs cannot share one pass: a value that differs raises `Divergent` where Python needs
one number, and the launch starts again, one program at a time.

Where Triton's interpreter differs from the hardware, this builder follows the hardware:

- Minimum and maximum drop NaN unless it is propagated.
- `tl.dot` with TF32 rounds its operands to ten bits.
- bfloat16 rounds to nearest even and computes in float32.
- A number that is too large for an integer becomes the largest one.
- Masked loads without `other`, and gathers beyond a block, give poison.
- Elements that the compiler may reorder are reordered.
- A load or store outside of the launch's tensors is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, InterpreterOptions, TensorHandle
from triton.runtime.interpreter import _get_np_dtype as find_np_dtype

from ..candidate.launch_log import session
from ..lib.faults import OutOfBounds
from . import libdevice
from .memory import Memory, whole

Array = np.ndarray[Any, np.dtype[Any]]
_STORED_AS: dict[str, np.dtype[Any]] = {}
_ALIGNED = 16  # bytes, of what a GPU's tensor maps describe


class Divergent(Exception):
    """Programs that run together hold different values where Python needs one."""


class TooLarge(Exception):
    """A block is too large for the programs that run together."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a block of {size} elements")
        self.size = size


def uniform(data: Array) -> Any:
    """The one scalar that all programs hold."""
    values = data.reshape(-1)
    if values.size > 1 and not (values == values[0]).all():
        raise Divergent
    return values[0].item()


def stored_as(dtype: tl.dtype) -> np.dtype[Any]:
    """NumPy's type for the elements of a value. Cached: Triton's function builds a table in each call."""
    scalar = dtype.scalar
    if scalar.name not in _STORED_AS:
        _STORED_AS[scalar.name] = find_np_dtype(scalar)
    return _STORED_AS[scalar.name]


def decode(data: Array, dtype: tl.dtype) -> Array:
    """Numbers that NumPy can compute with: bfloat16 is kept as its upper 16 bits."""
    if dtype.scalar.name == "bf16":
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return data


def encode(data: Array, dtype: tl.dtype) -> Array:
    """The stored form of `data` in `dtype`, rounded to nearest even."""
    if dtype.scalar.name != "bf16":
        return data.astype(stored_as(dtype), copy=False)
    bits = np.ascontiguousarray(data, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(data), np.uint16(0x7FC0), rounded.astype(np.uint16))


def to_integer(data: Array, stored: np.dtype[Any]) -> Array:
    """Round toward zero, saturate, and turn NaN into 0. Fewer than 32 bits are the low bits of 32."""
    wide = stored if stored.itemsize >= 4 else np.dtype("i4" if stored.kind == "i" else "u4")
    if stored.kind not in "iu":
        return data
    least, most = np.iinfo(wide).min, np.iinfo(wide).max
    inside = np.nan_to_num(data.astype(np.float64), nan=0.0)
    above, below = inside >= float(most) + (wide.itemsize == 4), inside <= float(least)
    rounded = np.where(above | below, 0.0, inside).astype(wide)
    return np.where(above, most, np.where(below, least, rounded)).astype(wide)


def undefined(dtype: tl.dtype) -> Array:
    """Poison for a masked load without `other`: on a GPU, the register keeps its contents."""
    if dtype.is_floating():
        return encode(np.array([np.nan], dtype=np.float32), dtype)
    stored = stored_as(dtype)
    return np.array([np.iinfo(stored).max // 3 if stored.kind in "iu" else True], dtype=stored)


def round_to_tf32(data: Array) -> Array:
    """float32 with ten bits of mantissa, ties away from zero, as the tensor cores take it."""
    bits = np.ascontiguousarray(data).view(np.uint32)
    return np.where(np.isfinite(data), (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), bits).view(np.float32)


def stretched(data: Array, shape: tuple[int, ...]) -> Array:
    """NumPy's `broadcast_to` for arrays of as many axes, in a third of its time."""
    if not data.flags.c_contiguous:
        return np.broadcast_to(data, shape)
    strides = [step if size == wide else 0 for step, size, wide in zip(data.strides, data.shape, shape, strict=True)]
    return np.ndarray(shape, data.dtype, data, strides=strides)


class BlockPointer:
    """A `tl.make_block_ptr` or tensor descriptor: an address for each element of a block, and a mask of its bounds."""

    def __init__(
        self,
        base: TensorHandle,
        shape: list[TensorHandle],
        strides: list[TensorHandle],
        offsets: list[TensorHandle],
        block: list[int],
        padding: Any = None,
    ) -> None:
        self.base, self.shape, self.strides, self.offsets = base, shape, strides, offsets
        self.block, self.padding = list(block), padding

    def moved(self, offsets: list[TensorHandle]) -> BlockPointer:
        moved = [TensorHandle(old.data + new.data, old.dtype) for old, new in zip(self.offsets, offsets, strict=True)]
        return self.at(moved)

    def at(self, offsets: list[TensorHandle]) -> BlockPointer:
        return BlockPointer(self.base, self.shape, self.strides, offsets, self.block, self.padding)

    def written(self) -> BlockPointer:
        """The block pointer for stores through a descriptor: a GPU pads the end of rows to sixteen bytes."""
        unit = max(1, _ALIGNED // self.size)
        end = TensorHandle(-(-self.shape[-1].data // unit) * unit, self.shape[-1].dtype)
        return BlockPointer(self.base, [*self.shape[:-1], end], self.strides, self.offsets, self.block, self.padding)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return max(1, self.base.get_element_ty().primitive_bitwidth // 8)

    def materialize(self, checked: list[int]) -> tuple[TensorHandle, Array]:
        rank, size = len(self.block), self.size
        column = (slice(None),) + (None,) * rank
        addresses, inside = self.base.data[column], np.ones((1,) * (rank + 1), dtype=bool)
        for axis, length in enumerate(self.block):
            steps = np.arange(length, dtype=np.int64).reshape([1] + [-1 if i == axis else 1 for i in range(rank)])
            index = self.offsets[axis].data.astype(np.int64)[column] + steps
            addresses = addresses + (size * index * self.strides[axis].data.astype(np.int64)[column]).astype(np.uint64)
            if axis in checked:
                inside = inside & (index >= 0) & (index < self.shape[axis].data[column])
        return TensorHandle(addresses, self.base.dtype.scalar), inside


class BatchedBuilder(InterpreterBuilder):
    """Builder of `TritonSemantic`, with the programs as a leading axis of each value."""

    def __init__(self) -> None:
        super().__init__()
        self.options = InterpreterOptions(sanitize_overflow=False)
        self.memory = Memory()
        self.programs: Array = np.zeros((1, 3), dtype=np.int32)  # coordinates of the programs of this pass
        self.most = 0  # elements of a block, for one program; 0: no limit
        self._owners: dict[int, bytes] = {}  # address -> the one program with atomics of scope `cta` there

    # -- the grid ----------------------------------------------------------------------------------
    def create_get_program_id(self, axis: int) -> TensorHandle:
        return TensorHandle(self.programs[:, axis], tl.int32)

    # -- values: every result passes here ----------------------------------------------------------
    def _value(self, data: Array, dtype: tl.dtype) -> TensorHandle:
        return TensorHandle(encode(data, dtype), dtype.scalar)

    def _block(self, data: Array, dtype: tl.dtype) -> TensorHandle:
        if 0 < self.most < data[0].size:
            raise TooLarge(data[0].size)
        return TensorHandle(data, dtype.scalar)

    def binary_op(self, lhs: TensorHandle, rhs: TensorHandle, op: Callable[..., Array]) -> TensorHandle:
        dtype = lhs.dtype.scalar
        if dtype.name == "int1" and op in (np.add, np.subtract):
            op = np.logical_xor  # integers of one bit
        result = op(decode(lhs.data, dtype), decode(rhs.data, rhs.dtype))
        if result.dtype == bool:
            return TensorHandle(result, tl.int1)
        return TensorHandle(result if result.dtype == lhs.data.dtype else encode(result, dtype), dtype)

    def get_bf16(self, value: float) -> TensorHandle:
        return self._value(np.array([value]), tl.bfloat16)

    def unary_op(self, arg: TensorHandle, op: Callable[..., Array]) -> TensorHandle:
        return self._value(op(decode(arg.data, arg.dtype)), arg.dtype)

    def cast_impl(self, src: TensorHandle, dst_type: tl.dtype) -> TensorHandle:
        data = decode(src.data, src.dtype)
        if src.dtype.scalar.is_floating() and dst_type.scalar.is_int():
            data = to_integer(data, stored_as(dst_type))
        return self._value(data, dst_type)

    def create_ptr_to_int(self, src: TensorHandle, dst_type: tl.dtype) -> TensorHandle:
        raise OutOfBounds("a kernel looks at an address")  # an address differs from any on a GPU

    def create_fp_to_fp(self, src: TensorHandle, dst_type: tl.dtype, rounding: Any) -> TensorHandle:
        if 8 in (src.dtype.scalar.primitive_bitwidth, dst_type.scalar.primitive_bitwidth):
            raise NotImplementedError("eight-bit floating point")
        return self.cast_impl(src, dst_type)

    # NaN loses against a number unless it is propagated, as `min.f32` and `max.f32` do
    def create_minnumf(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: TensorHandle, low: TensorHandle, high: TensorHandle, nan: Any) -> TensorHandle:
        propagate = nan == ir.PROPAGATE_NAN.ALL
        least, most = (np.minimum, np.maximum) if propagate else (np.fmin, np.fmax)
        return self.binary_op(self.binary_op(arg, low, most), high, least)

    def create_idiv(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        if lhs.data.size and lhs.data.min() >= 0 and rhs.data.min() > 0:
            return TensorHandle(lhs.data // rhs.data, lhs.dtype.scalar)
        nothing = rhs.data == 0  # a masked lane may divide by zero
        divisor = np.where(nothing, 1, rhs.data)
        quotient = (lhs.data - np.fmod(lhs.data, divisor)) // divisor
        return self._value(np.where(nothing, ~np.zeros_like(quotient), quotient), lhs.dtype)

    def create_ashr(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        signed = np.dtype(f"int{lhs.data.itemsize * 8}")
        return self._value(np.right_shift(lhs.data.view(signed), rhs.data.astype(signed)), lhs.dtype)

    def create_select(self, cond: TensorHandle, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        chosen = cond.data.reshape(cond.data.shape + (1,) * (lhs.data.ndim - cond.data.ndim))
        other = rhs.data.astype(lhs.data.dtype, copy=False)  # atomics on floats choose among bits of either sign
        return TensorHandle(np.where(chosen, lhs.data, other), lhs.dtype.scalar)

    def create_fma(self, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        return self.binary_op(self.binary_op(x, y, np.multiply), z, np.add)

    def create_fabs(self, arg: TensorHandle) -> TensorHandle:
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg: TensorHandle) -> TensorHandle:
        return self.unary_op(arg, libdevice.FUNCTIONS["erf"])

    def create_rsqrt(self, arg: TensorHandle) -> TensorHandle:
        return self.unary_op(arg, libdevice.FUNCTIONS["rsqrt"])

    def create_umulhi(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        bits = lhs.data.itemsize * 8
        wide = np.dtype(object) if bits == 64 else np.dtype(f"uint{2 * bits}")
        unsigned = np.dtype(f"uint{bits}")
        product = lhs.data.view(unsigned).astype(wide) * rhs.data.view(unsigned).astype(wide)
        return TensorHandle((product >> bits).astype(lhs.data.dtype), lhs.dtype.scalar)

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, args: list[TensorHandle], ret_type: tl.dtype, pure: bool
    ) -> TensorHandle:
        function = libdevice.by_symbol(symbol)
        return self._value(function(*(decode(a.data, a.dtype) for a in args)), ret_type)

    # -- shapes ------------------------------------------------------------------------------------
    def create_make_range(self, ret_ty: tl.dtype, start: int, stop: int) -> TensorHandle:
        return self._block(np.arange(start, stop, dtype=np.int32)[None], tl.int32)

    def create_splat(self, ret_ty: tl.dtype, arg: TensorHandle) -> TensorHandle:
        return self.splat(arg, tuple(int(n) for n in ret_ty.shape))

    def splat(self, arg: TensorHandle, sizes: tuple[int, ...]) -> TensorHandle:
        """Blocks of these sizes, each of one value: NumPy's `broadcast_to`, in a tenth of its time."""
        data = np.ascontiguousarray(arg.data.reshape(-1))
        strides = (data.itemsize, *(0,) * len(sizes))
        return self._block(np.ndarray((len(data), *sizes), data.dtype, data, strides=strides), arg.dtype)

    def create_unsplat(self, arg: TensorHandle) -> TensorHandle:
        return TensorHandle(arg.data.reshape(-1), arg.dtype.scalar)

    def create_broadcast(self, arg: TensorHandle, shape: Any) -> TensorHandle:
        return self._block(stretched(arg.data, (len(arg.data), *shape)), arg.dtype)

    def create_reshape(self, arg: TensorHandle, shape: Any, allow_reorder: bool) -> TensorHandle:
        data = _turned(arg.data) if allow_reorder else arg.data
        return TensorHandle(data.reshape((len(data), *(int(n) for n in shape))), arg.dtype.scalar)

    def create_expand_dims(self, arg: TensorHandle, axis: int) -> TensorHandle:
        shape = arg.data.shape
        return TensorHandle(arg.data.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :])), arg.dtype.scalar)

    def create_trans(self, arg: TensorHandle, perm: Any) -> TensorHandle:
        return TensorHandle(np.transpose(arg.data, [0, *(int(p) + 1 for p in perm)]), arg.dtype.scalar)

    def create_cat(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return self._block(_turned(np.concatenate(_same_programs(lhs.data, rhs.data), axis=1)), lhs.dtype)

    def create_join(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return self._block(np.stack(_same_programs(lhs.data, rhs.data), axis=-1), lhs.dtype)

    def create_gather(self, src: TensorHandle, indices: TensorHandle, axis: int) -> TensorHandle:
        data, places = _same_programs(src.data, indices.data)
        inside = (places >= 0) & (places < data.shape[axis + 1])
        taken = np.take_along_axis(data, np.where(inside, places, 0), axis=axis + 1)
        return self._block(np.where(inside, taken, undefined(src.dtype)), src.dtype)

    def create_histogram(self, data: TensorHandle, bins: int, mask: TensorHandle | None) -> TensorHandle:
        keep = np.ones(data.data.shape, dtype=bool) if mask is None else np.broadcast_to(mask.data, data.data.shape)
        inside = data.data & (bins - 1)  # values beyond the bins count in some bin
        rows = [np.bincount(row[kept], minlength=bins) for row, kept in zip(inside, keep, strict=True)]
        return self._block(np.stack(rows).astype(np.int32), tl.int32)

    def create_dot(self, a: TensorHandle, b: TensorHandle, d: TensorHandle, precision: Any, _: int) -> TensorHandle:
        left, right = decode(a.data, a.dtype), decode(b.data, b.dtype)
        if left.dtype == np.float32 and a.dtype.scalar == tl.float32 and precision == ir.INPUT_PRECISION.TF32:
            left, right = round_to_tf32(left), round_to_tf32(right)
        return self._block(np.matmul(left, right, dtype=d.data.dtype) + d.data, d.dtype)

    # -- memory ------------------------------------------------------------------------------------
    def create_load(self, ptr: TensorHandle, cache: Any, eviction: Any, volatile: bool) -> TensorHandle:
        return self._load(ptr, np.ones((1,) * ptr.data.ndim, dtype=bool), None)

    def create_masked_load(
        self, ptrs: TensorHandle, mask: TensorHandle, other: TensorHandle | None, cache: Any, eviction: Any, _: bool
    ) -> TensorHandle:
        return self._load(ptrs, mask.data, None if other is None else other.data)

    def create_store(self, ptr: TensorHandle, value: TensorHandle, cache: Any, eviction: Any) -> None:
        self._store(ptr, value.data, np.ones((1,) * ptr.data.ndim, dtype=bool))

    def create_masked_store(
        self, ptrs: TensorHandle, value: TensorHandle, mask: TensorHandle, cache: Any, eviction: Any
    ) -> None:
        self._store(ptrs, value.data, mask.data)

    def _load(self, ptrs: TensorHandle, mask: Array, other: Array | None) -> TensorHandle:
        dtype = ptrs.get_element_ty()
        stored = stored_as(dtype)
        filler = other
        if filler is None:
            nothing = np.zeros(1, dtype=stored) if session.zero_masked else undefined(dtype)
            filler = nothing.reshape((1,) * ptrs.data.ndim)
        return self._block(self.memory.load(ptrs.data, mask, filler.astype(stored, copy=False), stored), dtype)

    def _store(self, ptrs: TensorHandle, value: Array, mask: Array) -> None:
        self.memory.store(ptrs.data, value, mask)

    def create_make_block_ptr(
        self, base: TensorHandle, shape: Any, strides: Any, offsets: Any, block: Any, order: Any
    ) -> BlockPointer:
        return BlockPointer(base, shape, strides, offsets, block)

    def create_advance(self, ptr: BlockPointer, offsets: list[TensorHandle]) -> BlockPointer:
        return ptr.moved(offsets)

    def create_tensor_pointer_load(
        self, ptr: BlockPointer, checked: list[int], padding: Any, cache: Any, eviction: Any, volatile: bool
    ) -> TensorHandle:
        ptrs, inside = ptr.materialize(checked)
        filler = np.nan if padding == ir.PADDING_OPTION.PAD_NAN else 0
        other = np.full((1,) * ptrs.data.ndim, filler, dtype=stored_as(ptrs.get_element_ty()))
        return self._load(ptrs, inside, other)

    def create_tensor_pointer_store(
        self, ptr: BlockPointer, value: TensorHandle, checked: list[int], cache: Any, eviction: Any
    ) -> None:
        ptrs, inside = ptr.materialize(checked)
        self._store(ptrs, value.data, inside)

    def create_make_tensor_descriptor(
        self, base: TensorHandle, shape: Any, strides: Any, block: Any, is_signed: bool, padding: Any = None
    ) -> BlockPointer:
        made = BlockPointer(base, shape, strides, [], block, padding)
        starts = [base.data, *(stride.data * made.size for stride in strides[:-1])]
        if any((start.astype(np.int64) % _ALIGNED).any() for start in starts):
            raise ValueError(f"a tensor descriptor's base and rows must be at multiples of {_ALIGNED} bytes")
        return made

    def create_descriptor_load(
        self, desc: BlockPointer, indices: list[TensorHandle], cache: Any, eviction: Any
    ) -> TensorHandle:
        return self.create_tensor_pointer_load(
            desc.at(indices), list(range(len(desc.block))), desc.padding, cache, eviction, False
        )

    def create_descriptor_store(self, desc: BlockPointer, value: TensorHandle, indices: list[TensorHandle]) -> None:
        written = desc.at(indices).written()
        self.create_tensor_pointer_store(written, value, list(range(len(desc.block))), None, None)

    # -- atomics: done once for each program, also where all programs hold the same address ---------
    def begin(self) -> None:
        """Start a launch."""
        self._owners.clear()

    def _check_scope(self, addresses: Array, active: Array, scope: Any) -> None:
        """Raise OutOfBounds where atomics of scope `cta` of two programs have one address."""
        if scope != ir.MEM_SYNC_SCOPE.CTA:
            return
        for program, own, used in zip(self.programs, addresses, active, strict=True):
            for address in own[used].tolist():
                if self._owners.setdefault(address, program.tobytes()) != program.tobytes():
                    raise OutOfBounds("atomics of scope cta of several programs are at one address")

    def create_atomic_rmw(
        self, operation: Any, ptr: TensorHandle, val: TensorHandle, mask: TensorHandle, sem: Any, scope: Any
    ) -> TensorHandle:
        each = np.ones((len(self.programs),) + (1,) * (ptr.data.ndim - 1), dtype=bool)
        addresses, value, active = whole(ptr.data, val.data, mask.data & each)
        self.memory.check_atomic(addresses, active, value.itemsize)
        self._check_scope(addresses, active, scope)
        operation, sem = self.ir_rmw_op_to_interpreter_rmw_op[operation], self.ir_sem_to_interpreter_sem[sem]
        return TensorHandle(native.atomic_rmw(operation, addresses, value, active, sem), val.dtype.scalar)

    def create_descriptor_reduce(
        self, kind: Any, desc: BlockPointer, value: TensorHandle, indices: list[TensorHandle]
    ) -> None:
        dtype = value.dtype.scalar
        if dtype == tl.bfloat16:
            raise NotImplementedError("a descriptor's atomics in bfloat16")
        of_numbers = "F" if kind.name == "ADD" and dtype.is_floating() else ""
        unsigned = "U" if kind.name in ("MIN", "MAX") and dtype.is_int_unsigned() else ""
        operation = getattr(ir.ATOMIC_OP, of_numbers + unsigned + kind.name)
        ptrs, inside = desc.at(indices).written().materialize(list(range(len(desc.block))))
        mask = TensorHandle(inside, tl.int1)
        self.create_atomic_rmw(operation, ptrs, value, mask, ir.MEM_SEMANTIC.RELAXED, ir.MEM_SYNC_SCOPE.GPU)

    def create_atomic_cas(
        self, ptr: TensorHandle, compare: TensorHandle, val: TensorHandle, sem: Any, scope: Any
    ) -> TensorHandle:
        each = np.zeros((len(self.programs),) + (1,) * (ptr.data.ndim - 1), dtype=np.uint64)
        addresses, compared, value = whole(ptr.data + each, compare.data, val.data)
        active = np.ones(addresses.shape, dtype=bool)
        self.memory.check_atomic(addresses, active, value.itemsize)
        self._check_scope(addresses, active, scope)
        old = native.atomic_cas(addresses, compared, value, self.ir_sem_to_interpreter_sem[sem])
        return TensorHandle(old, compare.dtype.scalar)


def _turned(data: Array) -> Array:
    """Rotate the elements of each block by one, where the compiler may reorder them."""
    return np.roll(data.reshape(len(data), -1), 1, axis=1).reshape(data.shape)


def _same_programs(left: Array, right: Array) -> tuple[Array, Array]:
    programs = max(len(left), len(right))
    return np.broadcast_to(left, (programs, *left.shape[1:])), np.broadcast_to(right, (programs, *right.shape[1:]))
