"""Modules with gradients, from the source to the verdict, and wrong backward passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from modules import probed, source
from with_gradients import MODULES, X, candidate_of

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Purity, TrainingPair
from kernelquarry.transforms.variants import backward
from kernelquarry.transforms.verify import VerifySettings, replay_pair, verify

QUICK = VerifySettings(target="", find_counterexamples=False)


@pytest.mark.parametrize("name", MODULES)
def test_outputs_and_gradients_are_right(name: str, sandbox: Sandbox) -> None:
    candidate = candidate_of(*MODULES[name], sandbox)
    assert candidate.training and candidate.purity is Purity.PURE and candidate.shape_general
    verified = verify(candidate, sandbox, QUICK)
    assert isinstance(verified, Kept), f"{verified}\n{candidate.triton_code}"


def test_a_row_is_made_by_the_stage_and_can_be_replayed(sandbox: Sandbox) -> None:
    code, calls = MODULES["softmax"]
    known = replace(probed(code, *calls), operators=("aten._softmax", "aten.mul"), cluster=cluster_id(["0"]))
    made = backward(known, sandbox, QUICK)
    assert isinstance(made, Kept), made
    row = made.record
    assert type(row) is TrainingPair and row.split
    assert "torch.autograd.Function" in row.triton_code
    assert row.inductor_code.count("def call(args):") == 2
    replayed = replay_pair(row, sandbox)
    assert replayed.agrees and replayed.identical, replayed.render()


def test_a_module_without_gradients_is_dropped(sandbox: Sandbox) -> None:
    made = backward(probed(source("(x > 0).float() * 2"), *X), sandbox, QUICK)
    assert isinstance(made, Dropped) and made.reason is Reason.NO_GRADIENT


# Wrong ones


TWO_SCALES = source(
    "torch.sin(x * self.a) * self.b",
    "self.a = nn.Parameter(torch.rand(8))\nself.b = nn.Parameter(torch.rand(8))",
)
RETURN = "return x_grad, a_grad.view(8), b_grad.view(8)"
A, B = "a_grad.view(8)", "b_grad.view(8)"
SAVED = "= ctx.saved_tensors"
KEPT_FROM_THE_FIRST = """= ctx.saved_tensors
        b = ModelNewFunction.kept = ModelNewFunction.__dict__.get('kept', b).clone()"""

WRONG = {
    "the sign of one": (RETURN, f"return x_grad, -{A}, {B}", Reason.WRONG_VALUES),
    "a sign in a kernel": ("tl.cos(", "-tl.cos(", Reason.WRONG_VALUES),
    "one twice as large": (RETURN, f"return x_grad, {A}, 2 * {B}", Reason.WRONG_VALUES),
    "one missing": (RETURN, f"return x_grad, None, {B}", Reason.WRONG_CONTRACT),
    "none for the input": (".apply(x, ", ".apply(x.detach(), ", Reason.WRONG_CONTRACT),
    "no backward at all": ("        return Model", "        with torch.no_grad(): return Model", Reason.WRONG_CONTRACT),
    "two swapped": (RETURN, f"return x_grad, {B}, {A}", Reason.WRONG_VALUES),
    "what an earlier call saved": (SAVED, KEPT_FROM_THE_FIRST, Reason.WRONG_VALUES),
    "one that torch computes": (
        RETURN,
        f"return x_grad, {A}, (out_grad * torch.sin(x * a)).sum(0)",
        Reason.OUTPUT_NOT_FROM_KERNEL,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def scales(sandbox: Sandbox) -> Candidate:
    return candidate_of(TWO_SCALES, X, sandbox)


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_backward_is_rejected(mistake: str, scales: Candidate, sandbox: Sandbox) -> None:
    right, wrong, reason = WRONG[mistake]
    assert right in scales.triton_code, scales.triton_code
    changed = replace(scales, triton_code=scales.triton_code.replace(right, wrong))
    outcome = verify(changed, sandbox, QUICK)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.reason is reason, outcome
