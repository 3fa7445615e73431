"""TritonBench's layout with files of our own, and scores of answers by the real guests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.evaluate.answers import Answer, Score
from kernelquarry.recipes.evaluate.metrics import Estimate
from kernelquarry.recipes.evaluate.problems import read_suite
from kernelquarry.recipes.evaluate.results import Results, leaderboard
from kernelquarry.recipes.evaluate.score_tritonbench import score_tritonbench
from kernelquarry.recipes.evaluate.tritonbench import TritonbenchProblem, read_tritonbench

LINE = "#" * 146
T_REFERENCE = "import torch\n\ndef scaled(x, factor=2.0):\n    return x * factor\n"
T_TEST = """import torch

def scaled(x, factor=2.0):
    return x * factor

def test_scaled():
    results = {}
    x = torch.randn(3, 70, device='cuda')
    results["first"] = scaled(x)
    results["second"] = scaled(torch.randn(5).cuda(), factor=-1.0)
    return results

test_results = test_scaled()
print(test_results)
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * factor, mask=offsets < n)


def scaled(x, factor=2.0):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, factor, x.numel(), BLOCK=64)
    return out
"""
DROPS = "import torch\n\ndef dropped(x):\n    return torch.nn.functional.dropout(x, 0.5)\n"
DROPS_TEST = "def test_dropped():\n    x = torch.ones(64, device='cuda')\n    return {'a': dropped(x), 'b': x + 1}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    for part in "GT":
        (data / f"TritonBench_{part}_v1").mkdir(parents=True)
    (data / "TritonBench_T_v1/scaled.py").write_text(f"{T_REFERENCE}\n{LINE}\n{T_TEST}")
    entry = {"name": "scaled", "description": "Scales a tensor,\nby a factor.", "file": "scaled.py"}
    (data / "TritonBench_T_v1.jsonl").write_text(json.dumps([entry]))
    instruction = (
        "Be an expert.\nFunctional Description: Scales a tensor, by a factor.\nWrapper Entry Information: scaled(x)"
    )
    entries = [
        {"instruction": instruction, "input": "", "output": ""},
        {"instruction": "other", "input": "", "output": ""},
    ]
    (data / "TritonBench_T_comp_alpac_v1.json").write_text(json.dumps(entries))
    (data / "TritonBench_G_v1/scale.py").write_text(f"{KERNEL}\n{LINE}\n\n{T_TEST}")
    entry = {"file": "scale.py", "comp_instru": "\n  Scale it.\n", "simp_instru": "Scale."}
    (data / "TritonBench_G_v1.json").write_text(json.dumps([entry]))
    return tmp_path


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def test_both_parts_are_read_and_calls_of_the_test_are_stripped(checkout: Path, sandbox: Sandbox) -> None:
    (problem,) = read_suite("tritonbench-t", str(checkout), (), 0, sandbox)
    assert isinstance(problem, TritonbenchProblem) and problem.id == "scaled"
    assert "Scales a tensor, by a factor." in problem.chat[0]["content"]
    assert problem.reference == T_REFERENCE
    assert "def test_scaled" in problem.test and "print" not in problem.test
    assert "def scaled" not in problem.test and "test_results" not in problem.test
    (other,) = read_suite("tritonbench-g", str(checkout), (), 0, sandbox)
    assert isinstance(other, TritonbenchProblem) and other.instruction == "Scale it."


@pytest.mark.parametrize(
    ("source", "message"), [("", "name it with --source"), (".", "give a checkout of TritonBench")]
)
def test_a_folder_that_is_no_checkout_is_rejected(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read_tritonbench(source and str(tmp_path), "G")


def test_data_of_another_format_is_rejected(checkout: Path) -> None:
    (checkout / "data/TritonBench_G_v1.json").write_text('{"a": 1}')
    with pytest.raises(UserError, match="not TritonBench's data"):
        read_tritonbench(str(checkout), "G")
    (checkout / "data/TritonBench_T_v1/scaled.py").write_text("def f(): pass\n")
    with pytest.raises(UserError, match="all 1 problems are malformed"):
        read_tritonbench(str(checkout), "T")


def test_a_malformed_problem_is_left_out_and_counted(checkout: Path, caplog: pytest.LogCaptureFixture) -> None:
    entry = {"comp_instru": "Scale it."}
    names = ("bare.py", "broken.py", "scale.py")
    entries = json.dumps([{"file": name, **entry} for name in names])
    (checkout / "data/TritonBench_G_v1.json").write_text(entries)
    (checkout / "data/TritonBench_G_v1/bare.py").write_text(KERNEL)
    (checkout / "data/TritonBench_G_v1/broken.py").write_text(f"def (:\n{LINE}\n{T_TEST}")
    assert [problem.id for problem in read_tritonbench(str(checkout), "G")] == ["scale"]
    assert "2 of 3 problems are malformed and left out: ['bare.py (no line of #" in caplog.text


def score_code(problem: TritonbenchProblem, code: str, sandbox: Sandbox) -> Score:
    return score_tritonbench(problem, Answer("p", 0, f"```python\n{code}```", 1, False), sandbox, False)


@pytest.mark.parametrize(
    ("code", "called", "why"),
    [
        (KERNEL, True, ""),
        (KERNEL.replace("x * factor, mask", "x * 1.01 * factor, mask"), True, "wrong_values"),
        (KERNEL.replace("return out", "return out, out"), True, "wrong_contract"),
        (KERNEL.replace("factor=2.0)", "scale=2.0)").replace(" factor, x", " scale, x"), False, "does_not_run"),
        (T_REFERENCE, True, "kernel_unused"),
        ("import os\n" + KERNEL, True, ""),
        ("I cannot.", False, "no_code"),
    ],
)
def test_an_answer_is_called_and_its_results_are_compared(
    checkout: Path, sandbox: Sandbox, code: str, called: bool, why: str
) -> None:
    (problem,) = read_tritonbench(str(checkout), "T")
    score = score_code(problem, code, sandbox)
    assert (score.compiled, score.others, score.why) == (called, called, why), score.evidence
    assert score.naive is (called and "@triton.jit" in code)


def test_random_results_are_compared_by_shape_and_dtype(checkout: Path, sandbox: Sandbox) -> None:
    path = checkout / "data/TritonBench_T_v1/scaled.py"
    path.write_text(f"{DROPS}\n{LINE}\nimport torch\n{DROPS_TEST}")
    (problem,) = read_tritonbench(str(checkout), "T")
    code = KERNEL.replace("def scaled(x, factor=2.0):", "def dropped(x, factor=2.0):")
    assert score_code(problem, code, sandbox).why == ""
    changed = code.replace("return out", "x.mul_(3)\n    return out")  # changes a result that is not random
    assert score_code(problem, changed, sandbox).why == "wrong_values"


IN_PLACE = (
    KERNEL.replace("import torch\n", "", 1)
    .replace("def scaled(x, factor=2.0):\n    out = torch.empty_like(x)", "def scaled(x, out, factor=2.0):")
    .replace("    return out\n", "    torch.cuda.synchronize()\n")
)
IN_PLACE_TEST = """import numpy
import torch

def test_scaled():
    drawn = torch.as_tensor(numpy.random.rand(70)).float().cuda()
    out = torch.empty_like(drawn)
    scaled(drawn, out)
    return drawn.cpu().numpy()
"""


@pytest.mark.parametrize(("factor", "why"), [("factor", ""), ("1.01 * factor", "wrong_values")])
def test_a_function_without_a_result_is_compared_by_its_arguments(
    checkout: Path, sandbox: Sandbox, factor: str, why: str
) -> None:
    (checkout / "data/TritonBench_T_v1/scaled.py").write_text(f"{IN_PLACE}\n{LINE}\n{IN_PLACE_TEST}")
    (problem,) = read_tritonbench(str(checkout), "T")
    score = score_code(problem, IN_PLACE.replace("x * factor, mask", f"x * {factor}, mask"), sandbox)
    assert score.why == why, score.evidence


def test_the_leaderboard_has_autotritons_table() -> None:
    half = Estimate(0.5, 0.4, 0.6)

    def results(suite: str, level: str, fast: dict[str, Estimate]) -> Results:
        passes = {"pass@1": half}
        counts = ({}, {}, 1, 0, "CPU", 1.0, 1.0)
        return Results("m", suite, level, 2, 1, "greedy", passes, passes, half, fast, half, half, *counts)

    found = [
        results("tritonbench-t", "", {}),
        results("kernelbench", "level 2", {"fast_1": half, "fast_2": half}),
    ]
    assert "| m | - | 50.0 / 50.0 | - | 50.0 / 50.0 · 50.0 / 50.0 | - |" in leaderboard(found)
    assert "five channels" not in leaderboard(found[1:])
