"""Kernels in half precision and autotuned kernels: right ones are kept, others are rejected."""

from __future__ import annotations

from dataclasses import replace

import pytest
from modules import Call, probed, source
from with_variants import MODULES, X, candidate_of, complete, lowered_of

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Purity, Variant
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.variants import autotuned, bfloat16, float16, operators
from kernelquarry.transforms.variants.make_variant import cast
from kernelquarry.transforms.verify import VerifySettings, replay_pair, verify

QUICK = VerifySettings(target="", find_counterexamples=False)


# Half precision


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", MODULES)
def test_modules_in_half_precision_are_kept(name: str, dtype: str, sandbox: Sandbox) -> None:
    code, calls = MODULES[name]
    candidate = candidate_of(probed(code, *calls), dtype, sandbox)
    assert candidate.dtype == dtype and candidate.purity is Purity.PURE
    assert f"dtype=torch.{dtype}" in candidate.triton_code
    verified = verify(candidate, sandbox, QUICK)
    assert isinstance(verified, Kept), f"{verified}\n{candidate.triton_code}"
    assert verified.record.verdict.worst_ratio < 0.5


def test_a_row_in_half_precision_can_be_replayed(sandbox: Sandbox) -> None:
    code, calls = MODULES["softmax"]
    for make, dtype in ((float16, "float16"), (bfloat16, "bfloat16")):
        made = make(complete(probed(code, *calls)), sandbox, QUICK)
        assert isinstance(made, Kept), made
        row = made.record
        assert type(row) is Variant and (row.dtype, row.autotuned) == (dtype, False) and row.split
        assert f"torch.randn(6, 40, dtype=torch.{dtype})" in row.python_code
        assert {spec.dtype for spec in (*row.state, *row.workloads[0].tensors)} == {dtype}
        replayed = replay_pair(row, sandbox)
        assert replayed.agrees and replayed.identical, replayed.render()


def test_a_row_with_a_kernel_for_each_operator_can_be_replayed(sandbox: Sandbox) -> None:
    code, calls = MODULES["linear and gelu"]
    made = operators(complete(probed(code, *calls)), sandbox, QUICK)
    assert isinstance(made, Kept), made
    row = made.record
    assert type(row) is Variant and (row.dtype, row.autotuned, row.generator.kind) == ("float32", False, "library")
    assert row.kernels == ("gelu_kernel", "linear_kernel") and row.split
    replayed = replay_pair(row, sandbox)
    assert replayed.agrees and replayed.identical, replayed.render()


def test_integers_keep_their_dtype() -> None:
    code, calls = MODULES["indices"]
    assert [spec.dtype for spec in cast(probed(code, *calls), "float16").workloads[0].tensors] == ["int64"]


@pytest.fixture(scope="module")
def long_sum(sandbox: Sandbox) -> Candidate:
    code, calls = MODULES["a long sum"]
    return candidate_of(probed(code, *calls), "float16", sandbox)


@pytest.fixture(scope="module")
def linear(sandbox: Sandbox) -> Candidate:
    known = probed(source("self.fc(x)", "self.fc = nn.Linear(256, 32)"), Call({"x": (24, 256)}))
    return candidate_of(known, "float16", sandbox)


LESS_PRECISE = {
    "a sum in float16": (
        "long_sum", "tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)", "tl.zeros((BLOCK_ROWS, 1), tl.float16)",
        "acc += tl.where(col_mask, tl.abs(x), 0.0)", "acc += tl.sum(tl.abs(x), 1)[:, None].to(tl.float16)",
        "BLOCK_COLS=1024", "BLOCK_COLS=4",
    ),
    "bfloat16 in place of float16": ("long_sum", "total / 3000.0", "(total / 3000.0).to(tl.bfloat16)"),
    "products in bfloat16": ("linear", "tl.dot(x, weight", "tl.dot(x.to(tl.bfloat16), weight.to(tl.bfloat16)"),
    "products added up in float16": (
        "linear", 'acc += tl.dot(x, weight, input_precision="ieee")',
        "acc = (acc + tl.dot(x, weight, out_dtype=tl.float16)).to(tl.float16).to(tl.float32)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", LESS_PRECISE)
def test_lower_precision_is_rejected(mistake: str, sandbox: Sandbox, request: pytest.FixtureRequest) -> None:
    fixture, *edits = LESS_PRECISE[mistake]
    right = request.getfixturevalue(fixture)
    code = right.triton_code
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in code, code
        code = code.replace(old, new)
    outcome = verify(replace(right, triton_code=code), sandbox, QUICK)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.WRONG_VALUES, outcome


def test_another_dtype_is_rejected(long_sum: Candidate, sandbox: Sandbox) -> None:
    wider = long_sum.triton_code.replace("dtype=torch.float16", "dtype=torch.float32")
    outcome = verify(replace(long_sum, triton_code=wider), sandbox, QUICK)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.WRONG_CONTRACT, outcome


# Autotuning


@pytest.mark.parametrize("name", ["linear and gelu", "convolution", "a long sum"])
def test_each_configuration_is_verified(name: str, sandbox: Sandbox) -> None:
    outcome = tidy(lowered_of(name, sandbox), autotuned=True)
    assert isinstance(outcome, Kept), outcome
    assert outcome.record.triton_code.count("triton.Config(") >= 3
    verified = verify(outcome.record, sandbox, QUICK)
    assert isinstance(verified, Kept), f"{verified}\n{outcome.record.triton_code}"


def test_an_autotuned_row_can_be_replayed(sandbox: Sandbox) -> None:
    made = autotuned(lowered_of("softmax", sandbox), sandbox, QUICK)
    assert isinstance(made, Kept), made
    row = made.record
    assert type(row) is Variant and (row.dtype, row.autotuned) == ("float32", True)
    replayed = replay_pair(row, sandbox)
    assert replayed.agrees and replayed.identical, replayed.render()


def test_one_wrong_configuration_is_rejected(sandbox: Sandbox) -> None:
    outcome = tidy(lowered_of("a long sum", sandbox), autotuned=True)
    assert isinstance(outcome, Kept), outcome
    code = outcome.record.triton_code
    wrong = code.replace("range(0, 3000, BLOCK_COLS)", "range(0, 3000, max(BLOCK_COLS, 1024))")  # wrong for 512
    assert wrong != code and '"BLOCK_COLS": 512' in code
    rejected = verify(replace(outcome.record, triton_code=wrong), sandbox, QUICK)
    assert isinstance(rejected, Dropped) and rejected.reason is Reason.WRONG_VALUES, rejected
    assert "with configuration " in rejected.evidence


def test_a_kernel_that_reads_its_own_results_is_not_tuned(sandbox: Sandbox) -> None:
    in_place = probed(source("x.mul_(2.0)\nreturn x.exp()"), *X)
    lowered = lower(in_place, sandbox)
    assert isinstance(lowered, Kept), lowered
    made = autotuned(lowered.record, sandbox, QUICK)
    assert isinstance(made, Dropped) and made.reason is Reason.NOTHING_TO_TUNE
