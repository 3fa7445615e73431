"""The outcome of the stage `tidy` for a lowered module."""

from __future__ import annotations

from dataclasses import replace

import pytest
from modules import Call, probed, source

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Lowered, Purity
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

INTERPRETED = VerifySettings(target="")


def lowered(code: str, sandbox: Sandbox, constructor_sizes: bool = False) -> Lowered:
    calls = Call({"x": (6, 8)}), Call({"x": (9, 8)})
    outcome = lower(probed(code, *calls), sandbox, constructor_sizes=constructor_sizes)
    assert isinstance(outcome, Kept), outcome
    return outcome.record


@pytest.fixture(scope="module")
def relu(sandbox: Sandbox) -> Lowered:
    return lowered(source("x.relu() * self.scale", "self.scale = nn.Parameter(torch.ones(8))"), sandbox)


def test_the_candidate_keeps_its_provenance(relu: Lowered) -> None:
    outcome = tidy(relu)
    assert isinstance(outcome, Kept)
    candidate = outcome.record
    assert candidate.inductor_code == relu.inductor_code and candidate.generator == relu.generator
    assert candidate.kernels == ("relu_mul_kernel",)
    assert candidate.purity is Purity.PURE and candidate.extern_ops == ()


def test_forward_reads_sizes_that_follow_from_the_constructor_from_weights(sandbox: Sandbox) -> None:
    layers = "self.fc = nn.Linear(dim, hidden)\nself.scale = nn.Parameter(torch.rand(hidden // 4))"
    code = source(
        "self.fc(x)[:, : self.scale.shape[0]] * self.scale", layers, parameters="dim, hidden", init_args="[8, 12]"
    )
    outcome = tidy(lowered(code, sandbox, constructor_sizes=True))
    assert isinstance(outcome, Kept), outcome
    text = outcome.record.triton_code
    assert "        features = self.scale.shape[0]\n        hidden, dim = self.fc.weight.shape\n" in text
    assert "        if x.shape != (batch, dim):\n" in text
    assert outcome.record.guards == ()  # no workload varies these sizes
    assert "col_mask = col < features\n" in text


@pytest.mark.parametrize(
    ("layers", "forward", "is_general"),
    [
        ("self.norm = nn.LayerNorm(dim)", "self.norm(x)", True),
        ("self.fc = nn.Linear(dim, hidden)", "F.gelu(self.fc(x))", True),
        ("self.a = nn.Linear(dim, hidden)\nself.b = nn.Linear(hidden, dim)", "x + self.b(self.a(x).relu())", True),
        ("self.fc = nn.Linear(dim, hidden)\nself.scale = hidden**-0.5", "self.fc(x) * self.scale", True),
        # A constant of the kernel follows from an argument, which no attribute shows.
        ("self.w = nn.Parameter(torch.ones(dim))\nself.mean = lambda x: x / dim", "self.mean(x * self.w)", False),
        ("self.w = nn.Parameter(torch.ones(8))", "x * self.w", False),
    ],
)
def test_constructor_general_pairs_are_right_for_other_arguments(
    layers: str, forward: str, is_general: bool, sandbox: Sandbox
) -> None:
    code = source(forward, layers, parameters="dim, hidden", init_args="[8, 12]")
    outcome = tidy(lowered(code, sandbox, constructor_sizes=True))
    assert isinstance(outcome, Kept), outcome
    verified = verify(outcome.record, sandbox, INTERPRETED)
    assert isinstance(verified, Kept), verified
    assert verified.record.constructor_general == is_general
    assert flatten_verified(verified.record).constructor_general == is_general


def test_library_operators_make_a_candidate_mixed(sandbox: Sandbox) -> None:
    record = lowered(source("torch.linalg.qr(x[:6, :6].sin())[1].abs() + 1"), sandbox)
    outcome = tidy(record)
    assert isinstance(outcome, Kept), outcome
    assert outcome.record.purity is Purity.MIXED
    assert outcome.record.extern_ops == ("linalg_qr",)
    verified = verify(outcome.record, sandbox, INTERPRETED)
    assert isinstance(verified, Kept), f"{verified}\n{outcome.record.triton_code}"


COMPLEX = [
    ("torch.fft.irfft(torch.fft.rfft(x, dim=0)[:, :4] * self.weight, dim=0).sin()",
     "self.weight = nn.Parameter(torch.randn(4, dtype=torch.cfloat))"),
    ("torch.fft.irfft(torch.zeros(x.shape, dtype=torch.cfloat, device=x.device) + x.sin(), dim=0).cos()", ""),  # filled
    ("torch.view_as_real(torch.fft.fft(x) @ torch.fft.fft(self.weight, dim=0)).sin()",  # by a vector
     "self.weight = nn.Parameter(torch.randn(8, 1))"),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "layers"), COMPLEX)
def test_complex_numbers_are_left_to_torch(forward: str, layers: str, sandbox: Sandbox) -> None:
    outcome = tidy(lowered(source(forward, layers), sandbox))
    assert isinstance(outcome, Kept), outcome
    assert outcome.record.purity is Purity.MIXED
    verified = verify(outcome.record, sandbox, INTERPRETED)
    assert isinstance(verified, Kept), f"{verified}\n{outcome.record.triton_code}"


def test_a_copy_into_complex_numbers_counts_as_a_cast(sandbox: Sandbox) -> None:
    outcome = tidy(lowered(source("torch.fft.ifft(x.to(torch.cfloat), dim=0).real.sin()"), sandbox))
    assert isinstance(outcome, Kept), outcome
    assert {"_fft_c2c", "_to_copy"} <= set(outcome.record.extern_ops)


def test_literals_of_forward_if_a_base_has_the_constructor(sandbox: Sandbox) -> None:
    code = source("x[:, [0, 3, 1, 7, 5, 5, 2, 1, 4]] * 2").replace("class Model(nn.Module)", "class Base(nn.Module)")
    record = lowered(code.replace("def get_inputs", "class Model(Base):\n    pass\n\n\ndef get_inputs"), sandbox)
    outcome = tidy(record)
    assert isinstance(outcome, Kept), outcome
    assert "def __init__(self, *args, **kwargs)" in outcome.record.triton_code
    assert "torch.tensor([0, 3, 1, 7, 5, 5, 2, 1, 4], dtype=torch.int64" in outcome.record.triton_code
    verified = verify(outcome.record, sandbox, INTERPRETED)
    assert isinstance(verified, Kept), f"{verified}\n{outcome.record.triton_code}"


@pytest.mark.parametrize(
    ("old", "new", "evidence"),
    [
        ("triton_heuristics.pointwise(", "triton_heuristics.template(", "kernel of kind template"),
        ("triton_helpers.maximum(", "triton_helpers.no_such(", "helper triton_helpers.no_such"),
        ("'grid_type': 'Grid", "'grid_type': 'Other", "launch grid Other"),
        ("def call(", "def called(", "no function that launches the kernels"),
    ],
)
def test_an_unknown_form(old: str, new: str, evidence: str, relu: Lowered) -> None:
    assert old in relu.inductor_code
    outcome = tidy(replace(relu, inductor_code=relu.inductor_code.replace(old, new)))
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.NOT_TIDIED
    assert evidence in outcome.evidence


def test_a_constructor_that_needs_another_package(relu: Lowered) -> None:
    code = relu.probed.python_code.replace("torch.ones(8)", "torch.ones(random.Random(8).choice([8]))")
    code = code.replace("import math", "import random", 1)
    outcome = tidy(replace(relu, probed=replace(relu.probed, python_code=code)))
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.CONSTRUCTOR_NEEDS_IMPORT
    assert outcome.evidence == "random"


def test_a_constructor_that_computes_with_the_standard_library(relu: Lowered) -> None:
    code = relu.probed.python_code.replace("torch.ones(8)", "torch.ones(math.gcd(*[8, 16]))")
    outcome = tidy(replace(relu, probed=replace(relu.probed, python_code=code)))
    assert isinstance(outcome, Kept), outcome
    assert "\nimport math\n" in f"\n{outcome.record.triton_code}"


def test_every_reason_of_the_stage_is_tested() -> None:
    assert {reason for reason in Reason if reason.stage == "tidy"} == {
        Reason.NOT_TIDIED,
        Reason.CONSTRUCTOR_NEEDS_IMPORT,
        Reason.NOTHING_TO_TUNE,  # with the variants
    }


def test_axes_of_programs_take_the_place_of_quotients(sandbox: Sandbox) -> None:
    code = source("x * self.scale[None, :, None] + 1.0", "self.scale = nn.Parameter(torch.rand(8))")
    calls = Call({"x": (3, 8, 50)}), Call({"x": (5, 8, 33)})
    outcome = lower(probed(code, *calls), sandbox)
    assert isinstance(outcome, Kept), outcome
    candidate = tidy(outcome.record)
    assert isinstance(candidate, Kept), candidate
    text = candidate.record.triton_code
    assert "//" not in text and "n_elements" not in text
    assert "plane = tl.program_id(0)\n" in text and "[(batch, triton.cdiv(" in text
    assert "tl.load(scale_ptr + row, mask=row_mask)" in text
    assert isinstance(verify(candidate.record, sandbox, INTERPRETED), Kept)


@pytest.mark.parametrize(
    "forward",
    [
        "x.sum(dim=1)",
        "x.var(dim=1, keepdim=True)",
        "torch.softmax(x, 1)",
        "x.argmax(1)",
        "torch.cumsum(x, 1)",
        "(x > 1.5).any(1) * 1.0",
    ],
)
def test_a_reduction_has_axes_of_programs_around_it(forward: str, sandbox: Sandbox) -> None:
    calls = Call({"x": (3, 8, 50)}), Call({"x": (5, 11, 33)})
    outcome = lower(probed(source(forward), *calls), sandbox)
    assert isinstance(outcome, Kept), outcome
    candidate = tidy(outcome.record)
    assert isinstance(candidate, Kept), candidate
    text = candidate.record.triton_code
    assert "plane = tl.program_id(0)\n" in text and "//" not in text and "[:, :, None]" not in text
    assert isinstance(verify(candidate.record, sandbox, INTERPRETED), Kept)


def test_a_short_axis_leaves_its_place_in_a_block_to_the_other(sandbox: Sandbox) -> None:
    outcome = lower(probed(source("torch.cat((x, x), 1)"), Call({"x": (2, 24, 60)}), Call({"x": (3, 7, 99)})), sandbox)
    assert isinstance(outcome, Kept), outcome
    candidate = tidy(outcome.record)
    assert isinstance(candidate, Kept), candidate
    assert "BLOCK_ROWS=2, BLOCK_COLS=512" in " ".join(candidate.record.triton_code.split())
