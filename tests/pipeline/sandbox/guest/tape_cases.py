"""Kernels that are called more than once, so that later calls play tapes; a script as `interpreter_cases` is.

Each case runs with tapes and without, and expects the same bits of both.
"""

# ruff: noqa: I001  the first import says that Triton interprets
from interpreter_cases import CASES, case, expect, main, randn

import os
import tempfile
from functools import partial

import torch
import triton
import triton.language as tl

from kernelquarry.pipeline.sandbox.guest.interpreter import tape
from kernelquarry.pipeline.sandbox.guest.lib.load_source import load_source

CASES.clear()
RESULTS = []  # of the kernels in one run of a case


def check(got, wanted):
    expect(got, wanted)
    RESULTS.append(got)


@triton.jit
def first_and_sum(x_ptr, first_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first = -1.0
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        if start == 0:
            first = tl.sum(tl.where(at == 0, x, 0.0), axis=0)
        total += tl.sum(x, axis=0)
    tl.store(first_ptr + row, first)
    tl.store(sum_ptr + row, total)


@case
def a_variable_that_some_iterations_assign():
    for columns in (8, 40, 41, 40, 3):
        x, first, total = randn(5, columns), torch.empty(5), torch.empty(5)
        first_and_sum[(5,)](x, first, total, columns, BLOCK=16)
        check(first, x[:, 0])
        check(total, x.sum(1))


@triton.jit
def sum_up_to(x_ptr, out_ptr, most, BLOCK: tl.constexpr):
    last = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for number in range(tl.program_id(0), most):
        last = tl.load(x_ptr + number * BLOCK + tl.arange(0, BLOCK))
        total += last
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total - last)


@case
def a_loop_without_an_iteration():
    x = randn(6, 8)
    for most in (0, 3, 0, 6, 1):
        out = torch.empty(4, 8)
        sum_up_to[(4,)](x, out, most, BLOCK=8)
        check(out, torch.stack([x[row : max(row, most - 1)].sum(0) for row in range(4)]))


@triton.jit
def nested(x_ptr, out_ptr, rows, columns, scale):
    total = 0.0
    longest = 0
    for row in range(rows):
        part = 0.0
        for column in tl.range(0, columns, 1, num_stages=2):
            part = part * 0.5 + tl.load(x_ptr + row * columns + column) * scale
            longest += row
        total += part
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, longest.to(tl.float32))


@case
def loops_in_loops_with_values_of_the_function_around():
    for rows, columns in ((3, 4), (2, 5), (3, 4)):
        x, out = randn(rows, columns), torch.empty(2)
        nested[(1,)](x, out, rows, columns, 3.0)
        powers = 0.5 ** torch.arange(columns - 1, -1, -1)
        check(out, torch.stack([(x * powers).sum() * 3, torch.tensor(float(columns * sum(range(rows))))]))


@triton.jit
def by_parity(x_ptr, out_ptr, n):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row)
    if row % 2 == 0:
        x = x * 2.0
    if x > 1.0:
        tl.store(out_ptr + n + row, x)
    tl.store(out_ptr + row, x)


@case
def decisions_of_single_programs():
    for n in (7, 7, 9):
        x, out = randn(n), torch.zeros(2, n)
        by_parity[(n,)](x, out, n)
        wanted = torch.where(torch.arange(n) % 2 == 0, x * 2, x)
        check(out, torch.stack([wanted, torch.where(wanted > 1, wanted, 0.0)]))


@triton.jit
def doubled_after_a_store(x_ptr, out_ptr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row)
    tl.store(x_ptr + row, x + 1.0)
    if x > 0.0:
        tl.store(out_ptr + row, x)


@case
def decisions_after_a_store():
    for x in (torch.ones(3), torch.tensor([1.0, -1.0, 1.0]), -torch.ones(3), torch.ones(3)):
        changed, out = x.clone(), torch.zeros(3)
        doubled_after_a_store[(3,)](changed, out)
        check(changed, x + 1)
        check(out, x.clamp(min=0))


@triton.jit
def later(left, left_at, right, right_at):
    return tl.maximum(left, right), tl.where(right > left, right_at, left_at)


@triton.jit
def best(x_ptr, out_ptr, at_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + at)
    value, place = tl.reduce((x, at), 0, later)
    tl.store(out_ptr + tl.program_id(0), value)
    tl.store(at_ptr + tl.program_id(0), place)
    tl.store(x_ptr + tl.program_id(0) * BLOCK + at, tl.associative_scan(x, 0, plus))


@triton.jit
def plus(left, right):
    return left + right


@case
def combine_functions():
    for rows in (3, 1, 5):
        x, out, at = randn(rows, 16), torch.empty(rows), torch.empty(rows, dtype=torch.int32)
        wanted = x.clone()
        best[(rows,)](x, out, at, BLOCK=16)
        check(out, wanted.amax(1))
        check(at.long(), wanted.argmax(1))
        check(x, wanted.cumsum(1))


@triton.jit
def scaled(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * step, mask=at < n, other=0)
    tl.store(out_ptr + at, x * 2 if TWICE else x, mask=at < n)


@case
def other_types_and_constants():
    for dtype in (torch.float32, torch.float16, torch.int32, torch.float32):
        for step in (1, 2):
            for twice in (False, True):
                x, out = (randn(24) * 100).to(dtype), torch.empty(12, dtype=dtype)
                scaled[(2,)](x, out, 12, step, BLOCK=8, TWICE=twice)
                check(out, x[: 12 * step : step] * (2 if twice else 1))


@triton.jit
def column_sums(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    block = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, first), (4, BLOCK), (1, 0))
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, rows, 4):
        total += tl.sum(tl.load(block, boundary_check=(0, 1), padding_option="zero"), axis=0)
        block = tl.advance(block, (4, 0))
    at = first + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, total, mask=at < columns)


@case
def a_block_pointer_that_moves():
    for rows, columns in ((9, 12), (4, 20)):
        x, out = randn(rows, columns), torch.empty(columns)
        column_sums[(3,)](x, out, rows, columns, BLOCK=8)
        check(out, x.sum(0))


@triton.jit
def halved_until(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    steps = 0
    while x > 1.0:
        x = x * 0.5
        steps += 1
    tl.store(out_ptr + tl.program_id(0), steps)


@case
def while_loops():
    for numbers in ((5.0, 0.5, 9.0), (64.0, 2.0, 0.1)):
        x, out = torch.tensor(numbers), torch.zeros(3, dtype=torch.int32)
        halved_until[(3,)](x, out)
        check(out.float(), x.log2().ceil().clamp(min=0))


@triton.jit
def own_number(out_ptr):
    total = 0
    for number in range(3):
        total += tl.program_id(0) + number
    tl.store(out_ptr + tl.program_id(0), total)


@triton.jit
def plus_number(left, right):
    return left + right + tl.program_id(0)


@triton.jit
def numbers_of_sums(out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.reduce(tl.arange(0, 2), 0, plus_number))


@case
def loops_and_sums_of_constants_that_ask_for_the_program():
    for programs in (4, 1, 6, 3):
        out, sums = torch.empty(2, programs, dtype=torch.int32)
        own_number[(programs,)](out)
        check(out, (3 * torch.arange(programs) + 3).int())
        numbers_of_sums[(programs,)](sums)
        check(sums, (1 + torch.arange(programs)).int())


@triton.jit
def loops_around_a_decision(x_ptr, out_ptr, n, a, b):
    for i in range(n):
        x = tl.load(x_ptr + i)
        tl.store(out_ptr + 1, x)
    u = a + 1.0
    w = b + 1.0
    if a > 0.0:
        tl.store(out_ptr, u)
    else:
        tl.store(out_ptr, w)
    for j in range(2):
        x = tl.load(x_ptr + j)
        tl.store(out_ptr + 2, x)


@case
def ways_whose_loops_have_other_types():
    x = randn(4)
    for n, a, b in ((0, -1.0, 7.0), (2, 1.0, 7.0), (0, 1.0, 7.0), (2, -1.0, 5.0), (0, -1.0, 7.0)):
        out = torch.zeros(3)
        loops_around_a_decision[(1,)](x, out, n, a, b)
        check(out, torch.stack([torch.tensor((a if a > 0 else b) + 1), x[n - 1] if n else x[0] * 0, x[1]]))


@triton.jit
def sums_of_rows(x_ptr, n_ptr, s_ptr, out_ptr, rows):
    for r in range(rows):
        s = tl.load(s_ptr + r)
        total = s * 0.0
        for c in range(tl.load(n_ptr + r)):
            total += tl.load(x_ptr + c)
        more = total + s
        less = total - s
        if s > 0.0:
            tl.store(out_ptr + r, more)
        else:
            tl.store(out_ptr + r, less)


@case
def inner_loops_without_an_iteration():
    x = torch.ones(4)
    for n, s in (([0, 2], [-1.0, 1.0]), ([0, 0], [-1.0, 1.0]), ([3, 1], [1.0, -1.0])):
        out, signs = torch.zeros(2), torch.tensor(s)
        sums_of_rows[(1,)](x, torch.tensor(n), signs, out, 2)
        check(out, torch.tensor(n) + signs.abs())


@triton.jit
def add_before_decisions(x_ptr, out_ptr, n, a, b):
    for i in range(n):
        tl.store(x_ptr + i, tl.load(x_ptr + i) + 1.0)
    if a > 0.0:
        half = b * 0.5
        if b > 0.0:
            tl.store(out_ptr, half + half)


@case
def loops_that_store_in_some_calls():
    for n, a, b in ((2, -1.0, 1.0), (0, 1.0, 1.0), (2, 1.0, -1.0), (2, 1.0, 1.0)):
        x, out = torch.zeros(2), torch.zeros(1)
        add_before_decisions[(1,)](x, out, n, a, b)
        check(x, torch.full((2,), float(n > 0)))
        check(out, torch.tensor([b if a > 0 and b > 0 else 0.0]))


@triton.jit
def count_down(out_ptr, n):
    total = 0.0
    for i in range(n):
        k = i
        while k > 0:
            total += 1.0
            k -= 1
    tl.store(out_ptr, total)


@case
def bodies_with_many_ways():
    for n in (3, 40, 3):
        out = torch.zeros(1)
        count_down[(1,)](out, n)
        check(out, torch.tensor([n * (n - 1) / 2]))


def made(function):
    @triton.jit
    def pointwise(x_ptr, out_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, function(tl.load(x_ptr + at)))

    return pointwise


@triton.jit
def negative(x):
    return -x


@triton.jit
def square(x):
    return x * x


@case
def equal_functions_that_close_over_others():
    x = randn(8)
    for function, wanted in ((negative, -x), (square, x * x), (negative, -x)):
        kernel = made(function)
        for _ in range(2):
            out = torch.empty(8)
            kernel[(1,)](x, out, BLOCK=8)
            check(out, wanted)


@triton.jit
def with_own_names(x_ptr, out_ptr, n, _number):
    _range = 0.0
    for _loop in range(n):
        for _body in range(2):
            _range += tl.load(x_ptr + _loop) * _number + _body
    tl.store(out_ptr, _range)


@case
def names_like_those_of_the_rewriting():
    for n in (4, 3):
        out = torch.zeros(1)
        with_own_names[(1,)](torch.ones(4), out, n, 2.0)
        check(out, torch.tensor([5.0 * n]))


SOURCE = """import triton
import triton.language as tl

FACTOR = tl.constexpr({factor})


@triton.jit
def times(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * FACTOR)
"""


@case
def a_file_of_the_same_name_with_another_constant():
    x = randn(8)
    for factor in (2.0, 3.0, 2.0):
        out = torch.empty(8)
        load_source(SOURCE.format(factor=factor), "tape_source").times[(1,)](x, out, BLOCK=8)
        check(out, x * factor)


def run(function):
    """The results of a case, after all tapes are forgotten."""
    tape.recorder._ways.clear()
    tape.recorder._retakes.clear()
    RESULTS.clear()
    function()
    return [result.clone() for result in RESULTS]


def compare(function):
    with_tapes = run(function)
    assert any(ways._function for ways in tape.recorder._ways.values()), "no tape was played"
    kept, tape._MOST_RETAKES = tape._MOST_RETAKES, -1
    without = run(function)
    tape._MOST_RETAKES = kept
    assert all(map(torch.equal, with_tapes, without)), "tapes give other bits"


CASES.update({name: partial(compare, function) for name, function in CASES.items()})

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
