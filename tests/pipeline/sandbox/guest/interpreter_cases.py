"""Kernels with their expected results; a script that prints a JSON object of case -> error ("" if right).

A script of its own, because Triton reads `TRITON_INTERPRET` when it is imported.
"""

import json
import math
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from kernelquarry.pipeline.sandbox.guest.interpreter import install
from kernelquarry.pipeline.sandbox.guest.lib.faults import OutOfBounds

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def expect(got, wanted, relative=1e-6):
    torch.testing.assert_close(got, wanted, rtol=relative, atol=relative, equal_nan=True)


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)))


@triton.jit
def softmax_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    row = tl.load(x_ptr + tl.program_id(0) * columns + offsets, mask=inside, other=float("-inf"))
    exponent = tl.exp(row - tl.max(row, axis=0))
    tl.store(out_ptr + tl.program_id(0) * columns + offsets, exponent / tl.sum(exponent, axis=0), mask=inside)


@case
def a_grid_of_rows():
    x = randn(70, 50)
    out = torch.empty_like(x)
    softmax_rows[(70,)](x, out, 50, BLOCK=64)
    expect(out, x.softmax(-1))


@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TF32: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        a_inside = (rows[:, None] < M) & (inner[None, :] < K)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_inside, other=0.0)
        b_inside = (inner[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=b_inside, other=0.0)
        total += tl.dot(a, b, input_precision="tf32" if TF32 else "ieee")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total, mask=inside)


def run_matmul(tf32):
    a, b = randn(45, 70), randn(70, 33)
    out = torch.empty(45, 33)
    matmul[(3, 3)](a, b, out, 45, 33, 70, BM=16, BN=16, BK=32, TF32=tf32)
    exact = a.double() @ b.double()
    return ((out - exact).abs().max() / exact.abs().max()).item()


@case
def dot_in_ieee_is_exact_to_rounding():
    assert run_matmul(tf32=False) < 1e-6


@case
def dot_in_tf32_loses_bits():
    assert 1e-5 < run_matmul(tf32=True) < 2e-3


@triton.jit
def welford(mean_1, square_1, count_1, mean_2, square_2, count_2):
    count = count_1 + count_2
    delta = mean_2 - mean_1
    share = tl.where(count == 0.0, 0.0, count_2 / count)
    return mean_1 + delta * share, square_1 + square_2 + delta * delta * count_1 * share, count


@triton.jit
def variance(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)[None, :]
    inside = offsets < columns
    x = tl.load(x_ptr + tl.program_id(0) * columns + offsets, mask=inside, other=0.0)
    zero = tl.zeros_like(x)
    _mean, square, count = tl.reduce((x, zero, inside.to(tl.float32)), 1, welford)
    tl.store(out_ptr + tl.program_id(0) + tl.arange(0, 1), square / count)


@case
def reduce_with_a_combination_of_three():
    x = randn(9, 37)
    out = torch.empty(9)
    variance[(9,)](x, out, 37, BLOCK=64)
    expect(out, x.var(-1, correction=0), 1e-5)


@triton.jit
def argmax_rows(x_ptr, value_ptr, index_ptr, N: tl.constexpr):
    row = tl.program_id(0) * N + tl.arange(0, N)
    value, index = tl.max(tl.load(x_ptr + row), axis=0, return_indices=True)
    one = tl.program_id(0) + tl.arange(0, 1)
    tl.store(value_ptr + one, value)
    tl.store(index_ptr + one, index)


@case
def argmax_takes_the_first_of_equals():
    x = (randn(20, 32) * 2).round()
    value, index = torch.empty(20), torch.empty(20, dtype=torch.int32)
    argmax_rows[(20,)](x, value, index, N=32)
    expect(value, x.max(-1).values)
    assert (x == x.max(-1, keepdim=True).values).int().argmax(-1).int().equal(index)


@triton.jit
def extremes(x_ptr, out_ptr, N: tl.constexpr, KEEP_NAN: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) if KEEP_NAN else tl.maximum(x, 0.0)
    tl.store(out_ptr + tl.arange(0, N), y)


@case
def maximum_drops_nan_unless_it_is_propagated():
    x, out = torch.tensor([1.0, float("nan"), -1.0, 2.0]), torch.empty(4)
    extremes[(1,)](x, out, N=4, KEEP_NAN=False)
    expect(out, torch.tensor([1.0, 0.0, 0.0, 2.0]))
    extremes[(1,)](x, out, N=4, KEEP_NAN=True)
    expect(out, torch.tensor([1.0, float("nan"), 0.0, 2.0]))


@triton.jit
def scans(x_ptr, sum_ptr, prod_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(sum_ptr + at, tl.cumsum(x, 1, reverse=REVERSE))
    tl.store(prod_ptr + at, tl.associative_scan(x, 1, weigh))


@triton.jit
def weigh(a, b):
    return a * b


@case
def scans_of_both_directions():
    x = randn(5, 32)
    total, product = torch.empty(5, 32), torch.empty(5, 32)
    scans[(5,)](x, total, product, N=32, REVERSE=False)
    expect(total, x.cumsum(-1), 1e-5)
    expect(product, x.cumprod(-1), 1e-5)
    scans[(5,)](x, total, product, N=32, REVERSE=True)
    expect(total, x.flip(-1).cumsum(-1).flip(-1), 1e-5)


@triton.jit
def sort_rows(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@case
def sort():
    x = randn(6, 16)
    out = torch.empty_like(x)
    sort_rows[(6,)](x, out, N=16)
    expect(out, x.sort(-1).values)


@triton.jit
def histogram_by_atomics(index_ptr, out_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(out_ptr + tl.load(index_ptr + at, mask=inside, other=0), 1.0, mask=inside)
    tl.atomic_add(total_ptr, 1.0)


@case
def atomics_count_every_program():
    index = torch.arange(1000) * 7 % 13
    out, total = torch.zeros(13), torch.zeros(1)
    histogram_by_atomics[(8,)](index, out, total, 1000, BLOCK=128)
    expect(out, torch.bincount(index).float())
    assert total.item() == 8


@triton.jit
def diverging(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.load(out_ptr + at) + 1.0)
    if tl.program_id(0) % 2 == 0:
        steps = tl.program_id(0)
        while steps > 0:
            x = x * 2.0
            steps -= 2
        tl.store(out_ptr + at, x)


@case
def programs_that_diverge_run_one_by_one():
    x, out = randn(8, 16), torch.zeros(8, 16)
    diverging[(8,)](x, out, 128, BLOCK=16)
    expect(out[1::2], torch.ones(4, 16))  # the first attempt left no trace
    expect(out[::2], x[::2] * torch.tensor([1.0, 2.0, 4.0, 8.0])[:, None])


@triton.jit
def both(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    keep = x > 0.0 and not x > 1.0
    other = x < -1.0 or keep
    tl.store(out_ptr + tl.arange(0, N), tl.where(other, 1.0, 0.0))


@case
def boolean_operators_work_on_blocks():
    x, out = randn(64), torch.empty(64)
    both[(1,)](x, out, N=64)
    expect(out, ((x < -1) | ((x > 0) & ~(x > 1))).float())


SLOPE: tl.constexpr = tl.constexpr(1.5)
HALF = tl.constexpr(0.5)


@triton.jit
def piecewise(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.where(x > HALF, SLOPE * x, HALF - x) / (SLOPE - HALF))


@case
def a_constant_may_be_the_left_operand():
    x, out = randn(64), torch.empty(64)
    piecewise[(1,)](x, out, N=64)
    expect(out, torch.where(x > 0.5, 1.5 * x, 0.5 - x))


@triton.jit
def column_extremes(x_ptr, most_ptr, least_ptr, N: tl.constexpr):
    column = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + column)
    tl.atomic_max(most_ptr + column, x)
    tl.atomic_min(least_ptr + column, x)


@case
def atomic_extremes_of_floats():
    x = randn(10, 16)
    most, least = torch.full((16,), -float("inf")), torch.full((16,), float("inf"))
    column_extremes[(10,)](x, most, least, N=16)
    assert most.equal(x.amax(0)) and least.equal(x.amin(0))


@triton.jit
def transpose(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    source = tl.advance(source, (tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK))
    start = (tl.program_id(1) * BLOCK, tl.program_id(0) * BLOCK)
    target = tl.make_block_ptr(out_ptr, (N, M), (M, 1), start, (BLOCK, BLOCK), (1, 0))
    block = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, tl.trans(block), boundary_check=(0, 1))


@case
def block_pointers():
    x, out = randn(20, 37), torch.empty(37, 20)
    transpose[(2, 3)](x, out, 20, 37, BLOCK=16)
    expect(out, x.T.contiguous())


@triton.jit
def copy_blocks(source, target, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, column], source.load([row, column]) * 2)


@case
def descriptors_made_by_the_host():
    x, out = randn(20, 36), torch.empty(20, 36)
    copy_blocks[(2, 3)](*(TensorDescriptor.from_tensor(tensor, [16, 16]) for tensor in (x, out)), BLOCK=16)
    expect(out, x * 2)


@case
def the_memory_of_a_descriptor_ends_where_its_tensor_does():
    x, out = randn(20, 36), torch.empty(20, 36)
    larger = TensorDescriptor(x, [80, 36], [36, 1], [16, 16])
    try:
        copy_blocks[(4, 3)](larger, TensorDescriptor.from_tensor(out, [16, 16]), BLOCK=16)
    except OutOfBounds:
        pass
    else:
        raise AssertionError("no error")


@triton.jit
def shift_left(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at + 1))


@case
def reading_past_the_end_is_an_error():
    x, out = randn(16), torch.empty(16)
    try:
        shift_left[(1,)](x, out, BLOCK=16)
    except OutOfBounds:
        assert "outside" in install.session.failed[-1]
    else:
        raise AssertionError("no error")


@triton.jit
def load_half(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < BLOCK // 2))


@case
def a_masked_load_without_other_gives_poison():
    for dtype in (torch.float32, torch.bfloat16):
        x, out = torch.ones(8, dtype=dtype), torch.zeros(8, dtype=dtype)
        load_half[(1,)](x, out, BLOCK=8)
        assert out.isnan().tolist() == [False] * 4 + [True] * 4
    for dtype in (torch.int32, torch.uint8):
        x, out = torch.ones(8, dtype=dtype), torch.zeros(8, dtype=dtype)
        load_half[(1,)](x, out, BLOCK=8)
        assert out[:4].tolist() == [1] * 4 and (out[4:] > 80).all()


@triton.jit
def through_bfloat16(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    half = tl.load(x_ptr + at).to(tl.bfloat16)
    tl.store(out_ptr + at, (half * half + half).to(tl.float32))


@case
def bfloat16_rounds_to_nearest_even():
    x, out = randn(256) * 3, torch.empty(256)
    through_bfloat16[(1,)](x, out, N=256)
    half = x.bfloat16()
    expect(out, (half * half + half).float())


@triton.jit
def apply_libdevice(x_ptr, out_ptr, n, NAME: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if NAME == "tanh":
        y = libdevice.tanh(x)
    elif NAME == "log1p":
        y = libdevice.log1p(x)
    elif NAME == "erf":
        y = tl.erf(x)
    elif NAME == "pow":
        y = libdevice.pow(x, 3.0)
    elif NAME == "isnan":
        y = libdevice.isnan(x).to(tl.float32)
    elif NAME == "nearbyint":
        y = libdevice.nearbyint(x)
    elif NAME == "erfc":
        y = libdevice.erfc(x)
    elif NAME == "lgamma":
        y = libdevice.lgamma(x)
    elif NAME == "fmod":
        y = libdevice.fmod(x, 0.7)
    elif NAME == "rsqrt":
        y = libdevice.rsqrt(x)
    else:
        y = libdevice.acos(x)
    tl.store(out_ptr + at, y, mask=at < n)


def check_libdevice(name, wanted):
    def check():
        x, out = randn(100), torch.empty(100)
        apply_libdevice[(2,)](x, out, 100, NAME=name, BLOCK=64)
        expect(out, wanted(x.double()).float(), 3e-7)

    CASES[f"libdevice_{name}"] = check


check_libdevice("tanh", torch.tanh)
check_libdevice("log1p", torch.log1p)
check_libdevice("erf", torch.erf)
check_libdevice("pow", lambda x: x**3)
check_libdevice("isnan", torch.isnan)
check_libdevice("nearbyint", torch.round)
check_libdevice("erfc", torch.erfc)
check_libdevice("lgamma", torch.lgamma)
check_libdevice("fmod", lambda x: torch.fmod(x, torch.tensor(0.7).double()))
check_libdevice("rsqrt", torch.rsqrt)
check_libdevice("acos", torch.acos)


@triton.jit
def integers(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, (x // 3) * 100 + x % 3 + (x >> 1) * 10000, mask=at < n)


@case
def integer_division_truncates():
    x, out = torch.arange(-8, 8, dtype=torch.int32), torch.empty(16, dtype=torch.int32)
    integers[(1,)](x, out, 16, BLOCK=16)
    wanted = [math.trunc(v / 3) * 100 + int(math.fmod(v, 3)) + (v >> 1) * 10000 for v in range(-8, 8)]
    assert out.tolist() == wanted, (out.tolist(), wanted)


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def autotuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@case
def autotuning_takes_the_first_configuration():
    x, out = randn(100), torch.empty(100)
    autotuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    expect(out, x * 2)
    assert install.session.launches[-1] == ("autotuned", (4,))


@case
def programs_run_in_either_order():
    x, out = randn(70, 50), torch.empty(70, 50)
    install.session.order = install.Order.REVERSE
    softmax_rows[(70,)](x, out, 50, BLOCK=64)
    install.session.order = install.Order.FORWARD
    expect(out, x.softmax(-1))


@triton.jit
def to_integers(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n).to(out_ptr.dtype.element_ty), mask=at < n)


@case
def a_number_too_large_for_an_integer_becomes_the_largest():
    x = torch.tensor([1e12, -1e12, math.inf, -math.inf, math.nan, 2.9, -2.9, 2.0**31, -(2.0**31)])
    out, wide = torch.empty(9, dtype=torch.int32), torch.empty(9, dtype=torch.int64)
    to_integers[(1,)](x, out, 9, BLOCK=16)
    to_integers[(1,)](x, wide, 9, BLOCK=16)
    most, least = 2**31 - 1, -(2**31)
    assert out.tolist() == [most, least, most, least, 0, 2, -2, most, least]
    assert wide.tolist() == [int(x[0]), int(x[1]), 2**63 - 1, -(2**63), 0, 2, -2, 2**31, -(2**31)]


@triton.jit
def quotients(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n, other=0), tl.load(y_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, x // y, mask=at < n)


@case
def an_integer_divided_by_zero_has_all_bits():
    x, y, out = torch.tensor([7, -7, 5]), torch.tensor([2, 2, 0]), torch.empty(3, dtype=torch.int64)
    quotients[(1,)](x, y, out, 3, BLOCK=4)
    assert out.tolist() == [3, -3, -1]


@triton.jit
def addresses(x_ptr, out_ptr):
    tl.store(out_ptr, x_ptr.to(tl.int64))


@case
def a_kernel_may_not_read_an_address():
    out = torch.zeros(1, dtype=torch.int64)
    try:
        addresses[(1,)](torch.zeros(1), out)
    except OutOfBounds:
        return
    raise AssertionError("a kernel looked at an address")


@case
def a_launch_is_logged_with_its_arguments():
    x, out = randn(4, 50), torch.empty(4, 50)
    install.session.begin(torch.nn.Linear(2, 2), [x])
    softmax_rows[lambda meta: (3,)](x[1:], out, columns=50, BLOCK=64, num_warps=2)
    (logged,) = install.session.log
    assert logged == (
        "softmax_rows[3, 1, 1](x_ptr=float32(input 0, [3, 50], [50, 1], 50), "
        "out_ptr=float32(3, [4, 50], [50, 1], 0), columns=50, BLOCK=64, num_warps=2)"
    ), logged


@triton.jit
def sums_of_masks(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, (x > 0) + (x > 1))
    tl.store(out_ptr + BLOCK + at, (x > 0) - (x > 1))
    tl.store(out_ptr + 2 * BLOCK + at, (x > 0) * (x > 1))


@case
def masks_are_added_as_numbers_of_one_bit():
    x, out = randn(64), torch.empty(3, 64, dtype=torch.bool)
    sums_of_masks[(1,)](x, out, BLOCK=64)
    assert torch.equal(out, torch.stack([(x > 0) ^ (x > 1), (x > 0) ^ (x > 1), (x > 0) & (x > 1)]))


@case
def a_skipped_launch_writes_nothing():
    x, out = randn(70, 50), torch.full((70, 50), 7.0)
    install.session.skip = True
    softmax_rows[(70,)](x, out, 50, BLOCK=64)
    install.session.skip = False
    assert (out == 7).all()


def main():
    torch.set_num_threads(1)
    install.install()
    results = {}
    for name, run in CASES.items():
        try:
            run()
            results[name] = ""
        except Exception as error:  # noqa: BLE001  any failure is the case's result
            results[name] = f"{type(error).__name__}: {error}"
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
