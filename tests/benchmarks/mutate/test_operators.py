"""Each operator makes its mistake in one place of a source."""

from __future__ import annotations

import ast

import pytest
from mutate import Fault, Mutant, Operator, diff, find_mutants
from mutate.mutants import OPERATORS
from mutate.source_edits import Source
from subjects import copy, rich

EXPECTED = {
    "inverse_operator": "acc += tl.where(col_mask, x / x, 0.0)",
    "other_operator": "acc += tl.where(col_mask, (x + x), 0.0)",
    "operands_swapped": "value = tl.maximum(((mean * var) - scale), 0.5, propagate_nan=tl.PropagateNan.ALL)",
    "term_dropped": "scale = tl.rsqrt((total / width.to(tl.float32)))",
    "negated": "tl.store(out_ptr + row, -value, mask=row_mask)",
    "constant_changed": "scale = tl.rsqrt(total / width.to(tl.float32) + 0.0)",
    "function_confused": "scale = tl.sqrt(total / width.to(tl.float32) + 1e-05)",
    "function_dropped": "scale = (total / width.to(tl.float32) + 1e-05)",
    "branches_swapped": "acc += tl.where(col_mask, 0.0, x * x)",
    "nan_lost": "value = tl.maximum(scale - mean * var, 0.5)",
    "off_by_one": "tl.store((out_ptr + row + 1), value, mask=row_mask)",
    "strides_swapped": "x = tl.load(x_ptr + ((row + col * width)), mask=row_mask & col_mask, other=0.0)",
    "program_axis": "row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]",
    "divisor": "tl.atomic_add(out_ptr + (row // 4 + 4), value, mask=row_mask)",
    "modulo_for_division": "tl.atomic_add(out_ptr + (row % 3 + 4), value, mask=row_mask)",
    "stride": "a = tl.load(a_ptr + (m[:, None] * 15 + tl.arange(0, 16)[None, :]))",
    "offset": "tl.atomic_add(out_ptr + (row // 3 + 5), value, mask=row_mask)",
    "index_term_dropped": "col = start",
    "other_index": "tl.store(out_ptr + col, value, mask=row_mask)",
    "mask_dropped": "x = tl.load(x_ptr + (row * width + col))",
    "mask_weakened": "x = tl.load(x_ptr + (row * width + col), mask=col_mask, other=0.0)",
    "bound_closed": "row_mask = row <= n_rows",
    "bound_short": "col_mask = col < (width - 1)",
    "other_mask": "tl.store(out_ptr + row, value, mask=col_mask)",
    "filler": "x = tl.load(x_ptr + (row * width + col), mask=row_mask & col_mask, other=1.0)",
    "guard_dropped": "acc += (x * x)",
    "other_reduction": "total = tl.max(acc, 1)[:, None] / 32.0",
    "other_axis": "total = tl.sum(acc, 0)[:, None] / 32.0",
    "last_block_missing": "for start in range(0, width - COLS, COLS):",
    "first_block_missing": "for start in range(COLS, width, COLS):",
    "only_last_block": "acc = tl.where(col_mask, x * x, 0.0)",
    "count_one_off": "total = tl.sum(acc, 1)[:, None] / (32.0 - 1)",
    "division_missing": "total = tl.sum(acc, 1)[:, None]",
    "initial_value": "acc = tl.full((ROWS, COLS), 1.0, tl.float32)",
    "loads": "mean = (tl.load(mean_ptr + row % 3, mask=row_mask)).to(tl.bfloat16).to(tl.float32)",
    "intermediates": "total = (tl.sum(acc, 1)[:, None] / 32.0).to(tl.float16).to(tl.float32)",
    "stores": "tl.store(out_ptr + row, (value).to(tl.float16).to(tl.float32), mask=row_mask)",
    "accumulators": "acc = (acc + tl.where(col_mask, x * x, 0.0)).to(tl.bfloat16).to(tl.float32)",
    "operands": "product = tl.dot(a, b, input_precision='tf32')",
    "buffers": "scale = torch.empty((batch, 1), device=x.device, dtype=torch.bfloat16)",
    "truncated": "tl.store(out_ptr + row, (value).to(tl.int32).to(tl.float32), mask=row_mask)",
    "cast_dropped": "scale = tl.rsqrt(total / width + 1e-05)",
    "cast_narrowed": "m = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int8)",
    "store_for_atomic": "tl.store(out_ptr + (row // 3 + 4), value, mask=row_mask)",
    "barrier_removed": "pass",
    "memory_reused": "out = scale",
    "launch_late": "norm_kernel[(triton.cdiv(batch, 32), 1)](x, mean, var, scale, width, batch, ROWS=32, COLS=16)",
    "size_fixed": "batch, width = x.shape[0], 40",
    "grid_fixed": "norm_kernel[(3, 1)](x, mean, var, scale, width, batch, ROWS=32, COLS=16)",
    "argument_fixed": "norm_kernel[(triton.cdiv(batch, 32), 1)](x, mean, var, scale, 40, batch, ROWS=32, COLS=16)",
    "memory_fixed": "out = torch.empty((70, 1), device=x.device, dtype=torch.float32)",
    "grid_short": "norm_kernel[(max(1, triton.cdiv(batch, 32) - 1), 1)]"
    "(x, mean, var, scale, width, batch, ROWS=32, COLS=16)",
    "grid_axes": "norm_kernel[(1, triton.cdiv(batch, 32))](x, mean, var, scale, width, batch, ROWS=32, COLS=16)",
    "argument_order": "norm_kernel[(triton.cdiv(batch, 32), 1)](x, mean, var, scale, batch, width, ROWS=32, COLS=16)",
    "launch_missing": "pass",
    "block_halved": "norm_kernel[(triton.cdiv(batch, 32), 1)](x, mean, var, scale, width, batch, ROWS=16, COLS=16)",
    "results_swapped": "return (out, scale)",
    "parameter_ignored": "mean, var = torch.zeros_like(self.norm.running_mean), self.norm.running_var",
    "parameter_initial": "mean, var = self.norm.running_mean, torch.full_like(self.norm.running_var, 1.0)",
    "parameter_kept": "mean, var = self.norm.running_mean, "
    "((None if hasattr(self, 'kept_norm_running_var') else "
    "self.register_buffer('kept_norm_running_var', self.norm.running_var.clone(), False)) "
    "or self.kept_norm_running_var)",
    "parameter_of_another": "mean, var = self.norm.running_var, self.norm.running_var",
    "parameter_transposed": "dot_kernel[(triton.cdiv(batch * width, 64),)]"
    "(scale, self.proj.weight.transpose(0, 1).contiguous(), out, batch * width, BLOCK=64)",
}


def by_name(operator: Operator) -> str:
    return operator.name


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    return find_mutants(rich())


@pytest.mark.parametrize("operator", OPERATORS, ids=by_name)
def test_each_operator_makes_its_mistake(operator: Operator) -> None:
    pair = rich()
    source = Source(pair.triton_code, pair.workloads[0], pair.state)
    before = pair.triton_code.splitlines()
    after = [source.apply(edit).splitlines() for edit in operator.find(source)]
    new = [line.strip() for lines in after for line in lines if line not in before]
    moved = [line.strip() for lines in after if sorted(lines) == sorted(before) for line in lines]
    assert EXPECTED[operator.name] in new + moved


def test_every_operator_has_an_expected_edit() -> None:
    assert {operator.name for operator in OPERATORS} == set(EXPECTED)
    assert {operator.fault for operator in OPERATORS} == set(Fault)


def test_mutants_are_valid_distinct_and_deterministic(mutants: list[Mutant]) -> None:
    codes = [mutant.code for mutant in mutants]
    assert all(ast.dump(ast.parse(code)) != ast.dump(ast.parse(rich().triton_code)) for code in codes)
    assert len(set(codes)) == len(codes) > 200
    assert find_mutants(rich()) == mutants


def test_a_mutant_changes_the_line_that_it_names(mutants: list[Mutant]) -> None:
    for mutant in mutants:
        if mutant.operator == "launch_late":
            continue
        header, *lines = diff(rich(), mutant).splitlines()
        assert [line[0] for line in lines] == ["-", "+"], mutant.what
        assert header.startswith(f"@@ -{mutant.line} +{mutant.line} @@")


def test_a_copy_kernel_has_few_mutants() -> None:
    found = {mutant.operator for mutant in find_mutants(copy())}
    assert found == {"negated", "off_by_one", "stores", "truncated", "launch_missing"}


def test_spans_count_bytes() -> None:
    source = Source("é = 'ü'; x = 1 + 2\n")
    (operation,) = (node for node in ast.walk(source.tree) if isinstance(node, ast.BinOp))
    assert source.apply(source.operator(operation, "+", "-")) == "é = 'ü'; x = 1 - 2\n"
