"""Verify outputs and gradients on a GPU. Guests run the kernels: the executor cannot replay a backward pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from with_gradients import MODULES, candidate_of

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine
from kernelquarry.transforms.verify import VerifySettings, verify

SETTINGS = VerifySettings(target="", find_counterexamples=False)


@pytest.mark.parametrize("name", MODULES)
def test_outputs_and_gradients_are_those_of_the_module(name: str, sandbox: Sandbox) -> None:
    verified = verify(candidate_of(*MODULES[name], sandbox), sandbox, SETTINGS)
    assert isinstance(verified, Kept), verified
    assert verified.record.verdict.engine is Engine.GUEST


def test_a_wrong_gradient_is_rejected(sandbox: Sandbox) -> None:
    candidate = candidate_of(*MODULES["softmax"], sandbox)
    wrong = replace(candidate, triton_code=candidate.triton_code.replace("tl.sum(acc, 1)", "-tl.sum(acc, 1)"))
    assert wrong.triton_code != candidate.triton_code
    found = verify(wrong, sandbox, SETTINGS)
    assert isinstance(found, Dropped) and found.reason is Reason.WRONG_VALUES, found
