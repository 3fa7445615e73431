"""KernelBench's function with this project's verdicts."""

from __future__ import annotations

import ast
import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import make_timing

from kernelquarry.pipeline.adapters import kernelbench_scorer
from kernelquarry.pipeline.adapters.kernelbench_scorer import KernelExecResult, eval_kernel_against_ref
from kernelquarry.pipeline.check import Checker, CheckVerdict, Status
from tests.pipeline.adapters.conftest import snippets
from tests.pipeline.check.pairs import KERNEL, SCALE, WRONG

CHECKOUT = os.environ.get("KERNELBENCH", "")  # of KernelBench, which is not part of this repository
PARAMETERS = (
    "original_model_src custom_model_src seed_num num_correct_trials num_perf_trials measure_performance timing_method "
    "verbose build_dir device backend precision check_for_excessive_speedup excessive_speedup_threshold"
).split()
FIELDS = "compiled correctness metadata runtime runtime_stats ref_runtime ref_runtime_stats".split()


@pytest.fixture(autouse=True)
def shared(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelbench_scorer, "shared_checker", lambda **settings: checker)


def with_verdict(verdict: CheckVerdict, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> KernelExecResult:
    class Fixed:
        def check(self, module: str, kernel: str) -> CheckVerdict:
            return verdict

    monkeypatch.setattr(kernelbench_scorer, "shared_checker", lambda **settings: Fixed())
    return eval_kernel_against_ref("", "", **arguments)


def test_parameters_and_fields() -> None:
    assert list(inspect.signature(eval_kernel_against_ref).parameters) == PARAMETERS
    assert list(KernelExecResult.model_fields) == FIELDS
    assert KernelExecResult().model_dump() == {
        **{"compiled": False, "correctness": False, "metadata": {}, "runtime": -1.0, "runtime_stats": {}},
        **{"ref_runtime": -1.0, "ref_runtime_stats": {}},
    }


@pytest.mark.skipif(not CHECKOUT, reason="KERNELBENCH names no checkout")
def test_parameters_and_fields_are_those_of_kernelbench() -> None:
    tree = ast.parse((Path(CHECKOUT) / "src" / "kernelbench" / "eval.py").read_text())
    named = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    function, result = named["eval_kernel_against_ref"], named["KernelExecResult"]
    assert isinstance(function, ast.FunctionDef) and [one.arg for one in function.args.args] == PARAMETERS
    assert [ast.unparse(node.target) for node in result.body if isinstance(node, ast.AnnAssign)] == FIELDS


def test_the_page_scores_a_right_kernel() -> None:
    (code,) = snippets("kernelbench.md", "python")
    values: dict[str, Any] = {"problem": SCALE, "kernel": KERNEL}
    exec(code, values)
    result = values["result"]
    assert result.compiled and result.correctness
    assert result.metadata["verdict"] == "VERIFIED pure" and result.metadata["correctness_trials"] == "(10 / 10)"


def test_a_wrong_kernel_has_its_counter_example() -> None:
    result = eval_kernel_against_ref(SCALE, WRONG, measure_performance=True)
    assert result.compiled and not result.correctness and result.runtime == -1.0
    assert result.metadata["correctness_issue_name"] == "wrong_values"
    assert result.metadata["counter_example"]["expected"] == 0.0
    json.dumps(result.metadata)  # as the scripts do


@pytest.mark.parametrize(
    ("verdict", "compiled", "error"),
    [
        (CheckVerdict(Status.REJECTED, "no_code", "no class"), False, "compilation_error"),
        (CheckVerdict(Status.REJECTED, "does_not_compile", "line 3"), False, "compilation_error"),
        (CheckVerdict(Status.REJECTED, "does_not_run", "raises"), True, "runtime_error"),
        (CheckVerdict(Status.REJECTED, "output_not_from_kernel", "no launch"), True, "runtime_error"),
        (CheckVerdict(Status.REJECTED, "wrong_contract", "shape"), True, "correctness_issue"),
        (CheckVerdict(Status.UNJUDGED, evidence="too large"), False, "other_error"),
    ],
)
def test_each_failure_has_its_field(
    verdict: CheckVerdict, compiled: bool, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = with_verdict(verdict, monkeypatch)
    assert (result.compiled, result.correctness) == (compiled, False)
    assert result.metadata[error] == verdict.evidence
    assert result.metadata[f"{error}_name"] == (verdict.reason or "unjudged")


def test_times_are_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = make_timing(eager=9000.0, candidate=500.0)
    verdict = CheckVerdict(Status.VERIFIED, purity="pure", timing=timing)
    result = with_verdict(verdict, monkeypatch, measure_performance=True)
    assert (result.runtime, result.ref_runtime) == (0.5, 9.0)
    assert result.runtime_stats["mean"] == 0.5 and result.metadata["excessive_speedup"] is True
    untimed = with_verdict(verdict, monkeypatch)
    assert untimed.runtime == -1.0 and "excessive_speedup" not in untimed.metadata
    kept = with_verdict(verdict, monkeypatch, measure_performance=True, check_for_excessive_speedup=False)
    assert "excessive_speedup" not in kept.metadata


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(ValueError, match="only Triton kernels"):
        eval_kernel_against_ref(SCALE, KERNEL, backend="cuda")
    with pytest.raises(ValueError, match="float32"):
        eval_kernel_against_ref(SCALE, KERNEL, precision=torch.float16)
