"""Small modules through lower, tidy and verify: each becomes a readable file that computes the same."""

from __future__ import annotations

import ast

import pytest
import torch
from readable import complaints, functions
from table import CASES, Case

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Candidate, Lowered, Purity, Verified
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

INTERPRETED = VerifySettings(target="")


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_a_module_becomes_a_verified_candidate(case: Case, sandbox: Sandbox) -> None:
    if torch.__version__ < case.since:
        pytest.skip(f"torch {torch.__version__} has no kernel for it")
    probed = case.probed()
    lowered = lower(probed, sandbox)
    assert isinstance(lowered, Kept), lowered
    tidied = tidy(lowered.record)
    assert isinstance(tidied, Kept), tidied
    candidate = tidied.record
    if torch.__version__ >= "2.13":  # releases before it make other choices of what to keep general
        assert candidate.shape_general == case.shape_general
    assert (candidate.purity, candidate.extern_ops) == (Purity.PURE, ())
    assert case.kernels in (None, len(candidate.kernels))
    check_text(candidate, lowered.record)
    verified = verify(candidate, sandbox, INTERPRETED)
    assert isinstance(verified, Kept), f"{verified}\n{candidate.triton_code}"
    check_verdict(verified.record)


def test_a_tensor_in_a_plain_attribute_becomes_a_buffer(sandbox: Sandbox) -> None:
    """The buffer moves to a GPU with the module. It is not persistent, so the state does not have it."""
    (case,) = (case for case in CASES if case.name == "constants")
    lowered = lower(case.probed(), sandbox)
    assert isinstance(lowered, Kept)
    tidied = tidy(lowered.record)
    assert isinstance(tidied, Kept)
    lines = [line.strip() for line in tidied.record.triton_code.splitlines()]
    assert len([line for line in lines if line.startswith('self.register_buffer("scale", torch.')]) == 1


def check_text(candidate: Candidate, lowered: Lowered) -> None:
    assert complaints(candidate.triton_code) == [], candidate.triton_code
    assert tidy(lowered) == Kept(candidate), "the same text twice"
    reference, model = (
        next(node for node in ast.parse(code).body if isinstance(node, ast.ClassDef) and node.name == name)
        for code, name in ((candidate.probed.python_code, "Model"), (candidate.triton_code, "ModelNew"))
    )
    for method in ("__init__", "forward"):
        given, kept = (
            next(ast.unparse(function.args) for function in functions(node) if function.name == method)
            for node in (reference, model)
        )
        assert given == kept or "*" in given  # arguments of `*args` and `**kwargs` get names


def check_verdict(verified: Verified) -> None:
    candidate, verdict = verified.candidate, verified.verdict
    assert set(verdict.launched_kernels) == set(candidate.kernels)
    claimed = range(len(candidate.probed.workloads)) if candidate.shape_general else range(1)
    assert set(claimed) <= {trial.workload for trial in verdict.trials}
    assert verdict.deterministic
