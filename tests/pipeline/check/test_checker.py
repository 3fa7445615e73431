"""The library behind `kernelquarry check`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

import kernelquarry
from kernelquarry.pipeline.check import Checker, Status, versions
from kernelquarry.pipeline.check import checker as checking
from kernelquarry.pipeline.check.problem import UnfitProblem, read_problem
from kernelquarry.pipeline.check.stages import STAGES, later_stage
from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.describe_problem import SizeLimits
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.verify import VerifySettings
from tests.pipeline.check.pairs import KERNEL, SCALE, WRONG, kernel, module

LIMITS = SizeLimits(10_000, 10_000, 10**6)
GUEST = Limits(wall_s=60, cpu_s=20)


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with Checker(gpus="none", workers=1) as checker:
        yield checker


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


# verdicts


def test_a_right_kernel_is_verified_with_its_evidence(checker: Checker) -> None:
    stages: list[str] = []
    verdict = checker.check(SCALE, KERNEL, stages.append)
    assert verdict and verdict.headline == "VERIFIED pure" and verdict.exit_status == 0
    assert stages == list(STAGES[:-1])
    assert verdict.given == ((6, 40),) == verdict.sizes[0]  # own sizes first, as they can be afforded
    assert len({shapes[0][0] for shapes in verdict.sizes}) > 2
    assert {shapes[0][1] for shapes in verdict.sizes} == {40}  # the constructor's arguments fix it
    assert verdict.kernels == ("scale_relu",) and verdict.launches == 1 and verdict.deterministic
    assert verdict.engine == "interpreter" and verdict.targets == ("sm_90",)
    assert all(trial.error <= trial.tolerance for trial in verdict.trials)
    assert {trial.shapes for trial in verdict.trials} <= set(verdict.sizes)


def test_a_wrong_kernel_is_rejected_with_the_smallest_call(checker: Checker) -> None:
    verdict = checker.check(SCALE, WRONG)
    assert not verdict and verdict.status is Status.REJECTED and verdict.reason == "wrong_values"
    example = verdict.counter_example
    assert example is not None and example.output and example.expected == 0.0 and example.actual < 0.0
    assert example.workload.tensors[0].shape == (2, 40)


def test_as_given_checks_the_given_sizes_alone() -> None:
    specialised = kernel("assert x.shape == (6, 40)")
    with Checker(gpus="none", workers=1, inputs="as-given") as checker:
        verdict = checker.check(SCALE, specialised)
    assert verdict.status is Status.VERIFIED, verdict.headline
    assert verdict.sizes == (((6, 40),),)


def test_branches_that_no_call_took_are_named(checker: Checker) -> None:
    verdict = checker.check(SCALE, kernel("if not x.is_contiguous():\n            x = x.contiguous()"))
    assert verdict and [note.partition(": ")[2] for note in verdict.narrowed] == [
        "verified only where x.is_contiguous()"
    ]
    assert not checker.check(SCALE, KERNEL).narrowed


def test_what_a_file_defines_for_its_tests_is_left_out(checker: Checker) -> None:
    tests = "\n\ndef run_tests():\n    assert set([1])\n\n\nif __name__ == '__main__':\n    sys.exit(run_tests())\n"
    verdict = checker.check(SCALE, f"import sys\n{KERNEL}{tests}")
    assert verdict.headline == "VERIFIED pure"
    assert verdict.narrowed == ("removed, since ModelNew does not use it: run_tests",)


def test_a_kernel_for_one_size_is_rejected_at_others(checker: Checker) -> None:
    verdict = checker.check(SCALE, kernel("assert x.shape == (6, 40)"))
    assert verdict.reason == "does_not_run" and "--inputs as-given" in verdict.note
    assert "as-given" not in checker.check(SCALE, WRONG).note  # wrong at its own sizes, too


def test_a_kernel_for_one_last_axis_is_verified_with_it(checker: Checker) -> None:
    given = module(get_inputs="return [torch.randn(rows, 64)]", forward="return torch.relu(x)")
    relu = kernel("assert x.shape[1] in (32, 64)").replace("tl.load(scale_ptr + at % columns, mask=inside)", "1.0")
    verdict = checker.check(given, relu)
    assert verdict and {shapes[0][1] for shapes in verdict.sizes} == {64} and len(verdict.sizes) > 2
    assert "last axes of the inputs kept their sizes" in verdict.note
    assert checker.check(given, relu.replace("x * scale, 0.0", "x * scale, 0.1")).reason == "wrong_values"
    refused = checker.check(given, relu.replace("x.shape[1] in (32, 64)", "x.shape[1] < 32"))
    assert refused.headline.startswith("REJECTED does_not_run: AssertionError: line ")
    assert refused.headline.endswith(": assert x.shape[1] < 32")


def test_a_kernel_for_multiples_is_verified_on_them(checker: Checker) -> None:
    rows = SCALE.replace("rows = 6", "rows = 32")
    verdict = checker.check(rows, kernel("assert x.shape[0] % 4 == 0"))
    assert verdict and len(verdict.sizes) > 2 and all(shapes[0][0] % 4 == 0 for shapes in verdict.sizes)
    assert "sizes changed by multiples of 4" in verdict.note
    wrong = kernel("assert x.shape[0] % 4 == 0").replace("at < n", "at < n - n % 64")
    assert checker.check(rows, wrong).reason == "wrong_values"


@pytest.mark.parametrize(
    ("least", "columns", "headline"),
    [
        (1 << 20, 40, "VERIFIED pure"),
        (1 << 20, 41, "REJECTED wrong_values: for inputs"),
        (1 << 30, 41, "VERIFIED pure"),
    ],
)
def test_a_kernel_for_large_sizes_alone_is_removed(checker: Checker, least: int, columns: int, headline: str) -> None:
    large = KERNEL.replace("scale_relu", "for_large").partition("class ModelNew")[0]
    launch = f"for_large[(x.numel() // 128,)](x, self.scale, out, n, {columns}, BLOCK=128)"
    branch = f"        if x.numel() > {least}:\n            {launch}\n        return out"
    verdict = checker.check(SCALE, large + kernel("pass").replace("        return out", branch))
    assert verdict.headline.startswith(headline)
    assert not verdict or "removed, since no verified call uses it: for_large" in verdict.narrowed


def test_a_kernel_for_the_given_constructor_is_checked_with_it(checker: Checker) -> None:
    large = SCALE.replace("rows = 6", "rows = 1 << 22").replace("columns = 40", "columns = 4096")
    verdict = checker.check(large, kernel("assert x.shape[1] == 4096"))
    assert verdict and {shapes[0][1] for shapes in verdict.sizes} == {4096}


@pytest.mark.parametrize("fixed", ["pass", "assert x.shape[1] == 4096"])
def test_a_kernel_for_few_rows_does_not_pass_with_a_wide_constructor(checker: Checker, fixed: str) -> None:
    large = SCALE.replace("rows = 6", "rows = 1 << 22").replace("columns = 40", "columns = 4096")
    few = kernel(fixed).replace("triton.cdiv(n, 128)", "triton.cdiv(min(n, 64 * x.shape[1]), 128)")
    assert few != kernel(fixed) and not checker.check(large, few)


def test_a_kernel_for_a_constructor_that_is_too_large_decides_nothing(checker: Checker) -> None:
    large = SCALE.replace("columns = 40", "columns = 8388608")
    assert checker.check(large, KERNEL).status is Status.VERIFIED
    verdict = checker.check(large, kernel("assert x.shape[1] == 8388608"))
    assert verdict.status is Status.UNJUDGED and "the kernel has 8388608 of [8388608]" in verdict.evidence
    assert checker.check(large, WRONG).status is Status.REJECTED


def test_a_kernel_that_the_given_sizes_alone_launch_decides_nothing(checker: Checker) -> None:
    large = KERNEL.replace("scale_relu", "for_large").partition("class ModelNew")[0]
    launch = "for_large[(x.numel() // 128 + 1,)](x, self.scale, out, n, x.shape[1], BLOCK=128)"
    branch = f"        if x.shape[0] > 3000:\n            {launch}\n        return out"
    code = large + kernel("pass").replace("        return out", branch)
    verdict = checker.check(SCALE.replace("rows = 6", "rows = 1 << 21"), code)
    assert verdict.status is Status.UNJUDGED and "no verified call had x.shape[0] > 3000 true" in verdict.evidence


_BLOCKS = "triton.cdiv(n, 128)"
_LARGE_ONES = {
    "right": (_BLOCKS, "verified"),
    "a block less": (f"{_BLOCKS} - n // (1 << 27)", "unjudged"),
    "capped": (f"min({_BLOCKS}, 65536)", "unjudged"),
    "one of many": (f"triton.cdiv({_BLOCKS}, triton.cdiv(n, 1 << 26))", "unjudged"),
    "a block less in a condition": (f"{_BLOCKS} - (1 if x.shape[0] > 1 << 21 and n > 1 << 21 else 0)", "unjudged"),
}


def _with_a_second_kernel(limit: str, blocks: str = _BLOCKS) -> str:
    """A kernel, and another one from this number of elements on."""
    second = KERNEL.replace("scale_relu", "for_large").partition("class ModelNew")[0]
    launch = next(line.strip() for line in KERNEL.splitlines() if LAUNCH in line)
    other = launch.replace("scale_relu", "for_large").replace(_BLOCKS, blocks)
    return second + KERNEL.replace(launch, f"if n < {limit}:\n            {launch}\n        else:\n            {other}")


@pytest.mark.parametrize("about", _LARGE_ONES)
def test_a_kernel_for_large_inputs_is_verified_on_small_ones(checker: Checker, about: str) -> None:
    blocks, status = _LARGE_ONES[about]
    verdict = checker.check(SCALE.replace("rows = 6", "rows = 4194304"), _with_a_second_kernel("1 << 17", blocks))
    assert verdict.status.value == status, verdict.headline
    assert ("was verified at smaller sizes" in verdict.note) == (status == "verified")


def test_a_way_that_no_call_goes_is_rejected_unless_the_file_s_own_call_goes_it(checker: Checker) -> None:
    code = _with_a_second_kernel("1 << 24")
    assert checker.check(SCALE, code).reason == "untried_path"
    assert checker.check(SCALE.replace("rows = 6", "rows = 40000"), code).reason == "untried_path"
    assert checker.check(SCALE.replace("rows = 6", "rows = 4194304"), code)
    wrong = code.replace("tl.maximum(x * scale, 0.0)", "x * scale", 1)
    assert not checker.check(SCALE.replace("rows = 6", "rows = 4194304"), wrong)


LARGE = SCALE.replace("rows = 6", "rows = 1 << 40")


def test_the_constructor_s_smaller_sizes_are_named(checker: Checker) -> None:
    wide = LARGE.replace("columns = 40", "columns = 1 << 16")
    note = checker.check(wide, KERNEL).note
    assert note.startswith("get_inputs() is too large") and note.endswith(" in place of [65536]")


def test_a_constructor_is_tried_above_the_kernel_s_numbers(checker: Checker) -> None:
    wide = SCALE.replace("columns = 40", "columns = 65536")
    assert "65536]" in checker.check(wide, KERNEL).note
    bounded = KERNEL.replace("at % columns", "at % tl.minimum(columns, 10000)")
    verdict = checker.check(wide, bounded)
    assert verdict.reason == "wrong_values" and verdict.evidence.startswith("constructed with ["), verdict.headline
    assert " and [" in verdict.note
    untried = checker.check(wide, bounded.replace("10000", "50000"))
    assert untried and "no call gave scale_relu a columns above 50000, a number of its file" in untried.note
    summed = KERNEL.replace("at % columns", "at % tl.minimum(columns, most)")
    summed = summed.replace(
        "    inside =", "    most = 0\n    for _ in tl.static_range(16):\n        most += 640\n    inside ="
    )
    assert checker.check(wide, summed).evidence.startswith("constructed with [")


LAUNCH = "scale_relu[(triton.cdiv(n, 128),)]"
ON_SMALLER = "on a smaller call that goes as that of get_inputs(): for inputs [13120, 40]"
GIVEN = {
    "capped far away": ("scale_relu[(min(triton.cdiv(n, 128), 65536),)]", "unjudged", "choose another number"),
    "capped": ("scale_relu[(min(triton.cdiv(n, 128), 4096),)]", "rejected", ON_SMALLER),
    "refused": (f"assert n < 1 << 22\n        {LAUNCH}", "rejected", "at the sizes of get_inputs(), AssertionError"),
    "capped in a condition": (
        "blocks = triton.cdiv(n, 128)\n        "
        "if blocks > 4096:\n            blocks = 4096\n        scale_relu[(blocks,)]",
        "rejected",
        ON_SMALLER,
    ),
    "capped by a list": ("scale_relu[(min([triton.cdiv(n, 128), 4096, 65535]),)]", "rejected", ON_SMALLER),
    "capped by another name": (
        "least = min\n        scale_relu[(least(triton.cdiv(n, 128), 4096),)]",
        "rejected",
        ON_SMALLER,
    ),
    "capped before a long loop": (
        "blocks = min(triton.cdiv(n, 128), 4096)\n        parts = [part for part in range(0, n, 256)]\n        "
        "scale_relu[(blocks + len(parts) - len(parts),)]",
        "unjudged",
        "another number",
    ),
    "capped behind a long loop": (
        "parts = [part for part in range(0, n, 256)]\n        "
        "scale_relu[(min(triton.cdiv(n, 128), 4096) + len(parts) - len(parts),)]",
        "unjudged",
        "to tell whether this holds",
    ),
    "divided in place": (
        "k = n\n        k //= 1 << 27\n        scale_relu[(triton.cdiv(n, 128) - k,)]",
        "unjudged",
        "k //= 1 << 27 above 0",
    ),
    "divided": ("scale_relu[(triton.cdiv(n, 128) - n // (1 << 27),)]", "unjudged", "n // (1 << 27) above 0"),
    "in parts": (
        f"for start in range(0, n, 1 << 26):\n            {LAUNCH}",
        "unjudged",
        "has 3 iterations in place of 1",
    ),
    "too many": ("scale_relu[(1, triton.cdiv(n, 128))]", "rejected", "a GPU takes [2147483647, 65535, 65535]"),
}


@pytest.mark.parametrize("about", GIVEN)
def test_the_file_s_own_call_is_planned_where_it_cannot_run(checker: Checker, about: str) -> None:
    large = SCALE.replace("rows = 6", "rows = 4194304")
    launch, status, evidence = GIVEN[about]
    code = KERNEL.replace(LAUNCH, launch)
    if about == "too many":
        code = code.replace("tl.program_id(0)", "tl.program_id(1)")
    verdict = checker.check(large, code)
    assert (verdict.status.value, evidence in verdict.evidence) == (status, True), verdict.headline
    assert checker.check(large, KERNEL)


_STRIDED = KERNEL.replace(
    """    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside""",
    """  for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside""",
).replace(LAUNCH, GIVEN["capped"][0])
HELD = {
    "a capped grid whose programs loop": _STRIDED,
    "more warps": KERNEL.replace("BLOCK=128)", "BLOCK=128, num_warps=8 if n >= 1 << 22 else 4)"),
    "warps by a quotient": KERNEL.replace("BLOCK=128)", "BLOCK=128, num_warps=min(max(n // (1 << 21), 1), 8))"),
    "a way that no forced condition goes": KERNEL.replace(
        "BLOCK=128)", "BLOCK=128 * 2 ** min(1, max(x.shape[0], 9000) // 9001))"
    ),
    "a smaller block": KERNEL.replace(
        f"{LAUNCH}(x, self.scale, out, n, x.shape[-1], BLOCK=128)",
        "block = 64 if n > 1 << 22 else 128\n        "
        "scale_relu[(triton.cdiv(n, block),)](x, self.scale, out, n, x.shape[-1], BLOCK=block)",
    ),
}


@pytest.mark.parametrize("about", HELD)
def test_a_way_for_large_calls_that_a_small_call_can_go_is_tried_on_it(checker: Checker, about: str) -> None:
    verdict = checker.check(SCALE.replace("rows = 6", "rows = 4194304"), HELD[about])
    assert verdict, verdict.headline


def test_the_file_s_own_constructor_is_planned(checker: Checker) -> None:
    wide = SCALE.replace("columns = 40", "columns = 1 << 20")
    code = KERNEL.replace("BLOCK=128)", "BLOCK=128 if self.scale.numel() < 1 << 19 else 64)")  # too few programs
    verdict = checker.check(wide, code)
    assert verdict.status is Status.UNJUDGED and "self.scale.numel() < 1 << 19 false" in verdict.evidence


def test_a_constructor_that_needs_values_is_planned_with_them(checker: Checker) -> None:
    large = SCALE.replace("rows = 6", "rows = 4194304")
    needs_values = "self.bias = float(torch.ones(3).sum())\n        "
    code = KERNEL.replace("self.scale", f"{needs_values}self.scale", 1)
    verdict = checker.check(large, code)
    assert verdict and "could not be evaluated" not in verdict.note, verdict.headline
    refused = checker.check(large, code.replace("n = x.numel()", "n = x.numel()\n        assert n < 1 << 22"))
    assert "get_inputs(), AssertionError" in refused.evidence
    both = checker.check(large.replace("self.scale", f"{needs_values}self.scale", 1), code)
    assert both and "smaller sizes were checked" in both.note, both.note


def test_another_state_at_smaller_sizes_decides_nothing(checker: Checker) -> None:
    drawn = "self.noise = torch.randn(rows)\n        self.scale"
    wide, code = (text.replace("self.scale", drawn, 1) for text in (LARGE.replace("1 << 40", "4194304"), KERNEL))
    assert checker.check(wide, f"rows = 4194304\n{code}").status is Status.UNJUDGED


def test_operators_of_pytorch_need_the_permission(checker: Checker) -> None:
    mixed = KERNEL.replace("return out", "return torch.relu(out)").replace("tl.maximum(x * scale, 0.0)", "x * scale")
    assert checker.check(SCALE, mixed).reason == "kernel_unused"
    with Checker(gpus="none", workers=1, mixed=True) as lenient:
        verdict = lenient.check(SCALE, mixed)
    assert verdict.headline == "VERIFIED mixed"
    assert "aten.relu" in verdict.torch_operators


def test_a_verdict_is_json(checker: Checker) -> None:
    verdict = dataclasses.replace(checker.check(SCALE, WRONG), wall_s=float("nan"))
    data = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert data["status"] == "rejected" and data["speedup"] == 0.0 and data["wall_s"] == "nan"
    assert data["counter_example"]["workload"]["tensors"][0]["shape"] == [2, 40]


# modules that cannot be judged


UNFIT = {
    "does not parse": "def (:",
    "the module does not import: line 3: ModuleNotFoundError": module(imports="import torch\nimport no_such_thing\n"),
    "no class Model": SCALE.replace("class Model(", "class Other("),
    "no function get_inputs": SCALE.replace("def get_inputs", "def get_other_inputs"),
    "get_inputs() raises: line 19: ZeroDivisionError": module(get_inputs="return [1 / 0]"),
    "Model is not constructed": SCALE.replace("return [columns]", "return [columns, 3]"),
    "forward raises: line 15: ValueError: no": module(forward="raise ValueError('no')"),
    "two inputs share memory, and forward changes one": module(
        get_inputs="x = torch.randn(rows, columns)\n    return [x, x]", forward="return x.mul_(y)"
    ).replace("forward(self, x)", "forward(self, x, y)"),
    "is random": module(forward="return x + torch.rand_like(x)"),
    "forward changes total, which is not": module(forward="return x + self.total.add_(x.sum())").replace(
        "        self.scale",
        "        self.register_buffer('total', torch.zeros(1), False)\n        self.scale",
    ),
    "returns no tensor": module(forward="return 3"),
    "returns a set, which is no tensor": module(get_inputs="return [{1}]"),
    "crashes its process": module(forward="import os; os._exit(3)"),
    "has no source": SCALE.replace("return [columns]", "return [object()]"),
}


@pytest.mark.parametrize("message", UNFIT)
def test_an_unfit_module_is_not_judged(message: str, checker: Checker) -> None:
    verdict = checker.check(UNFIT[message], KERNEL)
    assert verdict.status is Status.UNJUDGED and verdict.exit_status == 2
    assert message in verdict.headline and "\n" not in verdict.headline


def test_a_module_that_takes_minutes_is_not_judged(sandbox: Sandbox) -> None:
    endless = module(forward="while True: pass")
    with pytest.raises(UnfitProblem, match="takes longer than 1 s"):
        read_problem(endless, sandbox, dataclasses.replace(GUEST, cpu_s=1), LIMITS)


def test_a_module_whose_values_decide_nothing_is_not_judged(checker: Checker) -> None:
    verdict = checker.check(module(forward="return torch.log(-x.abs() - 1) * self.scale"), KERNEL)
    assert verdict.status is Status.UNJUDGED and "the module decides nothing" in verdict.evidence


# kernels that are no good


def test_a_kernel_that_is_not_python_is_rejected(checker: Checker) -> None:
    verdict = checker.check(SCALE, "def (:")
    assert verdict.status is Status.REJECTED and verdict.reason == "no_code" and "does not parse" in verdict.evidence


def test_a_kernel_that_hangs_is_tried_on_smaller_sizes_and_rejected(
    checker: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_SETTINGS", VerifySettings(limits=Limits(wall_s=30, cpu_s=2)))
    verdict = checker.check(SCALE, kernel("while True: pass"))
    assert verdict.status is Status.REJECTED and verdict.reason == "timed_out"


def test_a_kernel_that_could_exit_is_not_judged_and_the_next_is(checker: Checker) -> None:
    verdict = checker.check(SCALE, kernel("if x.numel(): raise SystemExit(0)\n        global n"))
    assert verdict.status is Status.UNJUDGED and verdict.sizes == ()
    first, second = verdict.evidence.split("; ")
    assert "raise SystemExit is outside of the language: raise ValueError" in first
    assert second.endswith("global: pass the value as an argument")
    assert checker.check(SCALE, KERNEL)


@pytest.mark.parametrize(
    ("wrong", "evidence"),
    [
        ("tl.tanh(x * scale)", "line 14: Triton has no triton.language.tanh"),
        ("tl.maximum(x * weight, 0.0)", "line 14: weight in a kernel is not defined"),
    ],
)
def test_a_kernel_with_a_name_that_exists_nowhere_is_rejected(wrong: str, evidence: str, checker: Checker) -> None:
    verdict = checker.check(SCALE, KERNEL.replace("tl.maximum(x * scale, 0.0)", wrong))
    assert verdict.reason == "does_not_run" and verdict.evidence.startswith(evidence)


def test_a_kernel_that_prints_a_verdict_is_judged_by_its_values(checker: Checker) -> None:
    printing = WRONG.replace("        out = torch", '        print("VERIFIED")\n        out = torch')
    assert checker.check(SCALE, printing).reason == "wrong_values"


def test_a_check_ends_with_its_timeout() -> None:
    with Checker(gpus="none", workers=1, timeout_s=1e-9) as checker:
        verdict = checker.check(SCALE, KERNEL)
    assert verdict.status is Status.UNJUDGED and "no verdict within 1e-09 s" in verdict.evidence


# sizes


def test_large_sizes_shrink_and_the_module_does_not_run_at_them(sandbox: Sandbox) -> None:
    problem = read_problem(LARGE, sandbox, GUEST, LIMITS, more_calls=2)
    assert problem.given is not None and problem.given.tensors[0].shape == (1 << 40, 40)
    shapes = [workload.tensors[0].shape for workload in problem.workloads]
    assert len({rows for rows, _ in shapes}) == 3 and all(2 * rows * columns < 20_000 for rows, columns in shapes)


def test_calls_fit_a_constructor_that_reads_sizes_of_its_file(sandbox: Sandbox) -> None:
    code = module(forward="return x * self.scale + self.rows").replace(
        "        self.scale", "        self.rows = torch.ones(rows, 1)\n        self.scale"
    )
    (workload,) = read_problem(code, sandbox, GUEST, LIMITS, more_calls=2).workloads
    assert workload.tensors[0].shape == (6, 40)


def test_sizes_as_given_that_are_too_large_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(UnfitProblem, match="smaller sizes, or use a GPU"):
        read_problem(SCALE.replace("rows = 6", "rows = 4000"), sandbox, GUEST, LIMITS, resize=False)


def test_integers_keep_the_range_that_they_are_drawn_from(sandbox: Sandbox) -> None:
    code = module(
        get_inputs="return [torch.randn(rows, columns), torch.randint(0, 1000, (rows,))]",
        forward="return torch.relu(x * self.scale) + y[:, None]",
    ).replace("forward(self, x)", "forward(self, x, y)")
    problem = read_problem(code, sandbox, GUEST, LIMITS, more_calls=2)
    assert [workload.tensors[1].high for workload in problem.workloads] == [1000] * 3
    assert len({workload.tensors[1].shape for workload in problem.workloads}) == 3


@pytest.mark.parametrize(
    ("draw", "result", "bounds"),
    [
        ("torch.ones", "x * mask[:, None]", (0, 2)),
        ("torch.zeros", "x + self.scale[mask][:, None]", (0, 2)),
        ("torch.zeros", "x + self.scale[:1][mask][:, None]", (0, 1)),  # 1 is no index there
        ("torch.ones", "x / mask[:, None]", (1, 2)),
    ],
)
def test_integers_that_are_all_0_or_all_1_are_both_where_the_module_takes_them(
    draw: str, result: str, bounds: tuple[int, int], sandbox: Sandbox
) -> None:
    code = module(
        get_inputs=f"return [torch.randn(rows, columns), {draw}(rows, dtype=torch.long)]", forward=f"return {result}"
    ).replace("forward(self, x)", "forward(self, x, mask)")
    problem = read_problem(code, sandbox, GUEST, LIMITS, more_calls=1)
    assert {(call.tensors[1].low, call.tensors[1].high) for call in problem.workloads} == {bounds}


@pytest.mark.parametrize(
    ("signature", "names"), [("value, more", ["value", "x1"]), ("x1, value", ["x0", "x1"]), ("*values", ["x0", "x1"])]
)
def test_inputs_have_the_names_of_forward_s_arguments(sandbox: Sandbox, signature: str, names: list[str]) -> None:
    code = module(get_inputs="return [torch.randn(rows, columns), [torch.randn(columns)]]", forward="return self.scale")
    code = code.replace("forward(self, x)", f"forward(self, {signature})")
    problem = read_problem(code, sandbox, GUEST, LIMITS)
    assert [tensor.name for tensor in problem.workloads[0].tensors] == names


def test_a_dict_that_reads_like_a_tensor_is_refused(sandbox: Sandbox) -> None:
    more = module(get_inputs="return [{'tensor': torch.randn(rows), 'other': 1}]", forward="return self.scale")
    assert read_problem(more, sandbox, GUEST, LIMITS).workloads[0].tensors[0].name == "x0"
    code = module(get_inputs="return [{'tensor': torch.randn(rows, columns)}]")
    with pytest.raises(UnfitProblem, match="the key 'tensor' alone"):
        read_problem(code, sandbox, GUEST, LIMITS)


RECURRENT = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int, layers: int):
        super().__init__()
        self.gru = nn.GRU(features, features, layers)

    def forward(self, x, h):
        return self.gru(x, h)[0]


def get_inputs():
    return [torch.rand(2048, 4, 256), torch.rand(6, 4, 256)]


def get_init_inputs():
    return [256, 6]
"""


def test_a_recurrent_module_takes_seconds_at_any_length(sandbox: Sandbox) -> None:
    problem = read_problem(RECURRENT, sandbox, dataclasses.replace(GUEST, cpu_s=15), LIMITS, more_calls=1)
    assert len(problem.workloads) == 2
    assert problem.given is not None and problem.given.tensors[0].shape == (2048, 4, 256)


def test_inputs_and_buffers_are_on_the_gpu_of_the_parameters(sandbox: Sandbox) -> None:
    code = module(forward="assert x.device == self.scale.device == self.shift.device; return x * self.scale")
    code = code.replace(
        "        self.scale", '        self.register_buffer("shift", torch.zeros(3))\n        self.scale'
    )
    assert read_problem(code, sandbox, GUEST, LIMITS).workloads


def test_the_state_is_described_as_it_was_before_any_call(sandbox: Sandbox) -> None:
    code = module(forward="self.mean.mul_(0.9).add_(x.mean(0)); return x - self.mean")
    buffer = '        self.register_buffer("mean", torch.zeros(40))\n        self.scale'
    code = code.replace("        self.scale", buffer)
    state = {entry.name: entry for entry in read_problem(code, sandbox, GUEST, LIMITS).state}
    assert (state["mean"].mean, state["mean"].std) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("draw", "result", "high"),
    [
        ("torch.rand", "torch.log(x)", 2),
        ("torch.rand", "torch.log(x) + torch.log1p(-x)", 1),
        ("torch.randn", "torch.log(x)", 0),
        ("torch.rand", "nn.functional.binary_cross_entropy(x, x)", 1),  # raises on others
    ],
)
def test_inputs_between_0_and_1_are_above_0_and_at_most_2_where_others_fail(
    draw: str, result: str, high: int, sandbox: Sandbox
) -> None:
    code = module(get_inputs=f"return [{draw}(rows, columns)]", forward=f"return {result} * self.scale")
    problem = read_problem(code, sandbox, GUEST, LIMITS, more_calls=1)
    assert [workload.tensors[0].high for workload in problem.workloads] == [high] * 2


def test_a_structure_that_draws_lack_is_named_and_no_rejection_relies_on_it(checker: Checker) -> None:
    triangular = module(get_inputs="return [torch.triu(torch.randn(columns, columns))]")
    verdict = checker.check(triangular, WRONG)
    assert verdict.status is Status.UNJUDGED and "% zeros" in verdict.evidence
    assert "% zeros as given" in checker.check(triangular, KERNEL).note


@pytest.mark.parametrize(
    ("get_inputs", "forward"),
    [
        ("return [torch.randn(columns, rows).t()]", "torch.relu(x * self.scale)"),
        (
            "x = torch.randn(rows, columns)\n    x[0] = float('-Infinity')\n    return [x]",
            "torch.relu(torch.where(x < -1e38, 1.0, x) * self.scale)",
        ),
    ],
)
def test_the_values_and_strides_of_the_file_are_tried(checker: Checker, get_inputs: str, forward: str) -> None:
    given = module(get_inputs=get_inputs, forward=f"return {forward}")
    verdict = checker.check(given, KERNEL)
    assert verdict.status is Status.REJECTED and verdict.evidence.startswith("on the values of get_inputs()")
    right = KERNEL.replace("    out =", "    x = x.contiguous()\n        out =")
    right = right.replace("tl.maximum(x * scale, 0.0)", "tl.maximum(tl.where(x < -1e38, 1.0, x) * scale, 0.0)")
    assert checker.check(given, right)


# many


def test_many_are_checked_in_their_order_also_asynchronously(checker: Checker) -> None:
    pairs = [(SCALE, "no python at all ("), (SCALE, KERNEL), ("", KERNEL)]
    wanted = [Status.REJECTED, Status.VERIFIED, Status.UNJUDGED]
    assert [verdict.status for verdict in checker.check_all(pairs)] == wanted
    assert [verdict.status for verdict in asyncio.run(checker.check_all_async(pairs))] == wanted


def test_a_module_is_read_once(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def read(code: str, *arguments: object) -> None:
        reads.append(code)
        raise UnfitProblem("no good")

    monkeypatch.setattr(checking, "read_problem", read)
    for _ in range(3):
        assert checker.check("an unknown module", KERNEL).evidence == "no good"
    assert reads == ["an unknown module"]


def test_a_bug_of_the_verifier_ends_no_other_check(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(checking, "judge_code", judge)
    verdict = checker.check(SCALE, KERNEL)
    assert verdict.status is Status.UNJUDGED
    assert "which is a bug: ZeroDivisionError: a bug" in verdict.evidence


def test_stages_never_go_back() -> None:
    assert later_stage("constructing", "reference") == "reference"
    assert later_stage("further checks", "reference") == "further checks"
    assert later_stage("candidate", "a job that is no stage") == "candidate"


# machine and package


@pytest.mark.parametrize(
    ("package", "installed", "message"),
    [
        ("torch", "2.4.1+cpu", "torch 2.4.1+cpu is installed: kernelquarry needs torch 2.11 or newer"),
        ("triton", "3.5.0", "triton 3.5.0 is installed: kernelquarry needs triton 3.6 or newer"),
    ],
)
def test_an_old_torch_or_triton_is_refused(
    package: str, installed: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "version", lambda name: installed if name == package else "99.0")
    with pytest.raises(UserError, match=message.replace("+", r"\+")):
        Checker(gpus="none")


def test_a_missing_triton_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "triton":
            raise versions.PackageNotFoundError(name)
        return "99.0"

    monkeypatch.setattr(versions, "version", version)
    with pytest.raises(UserError, match=r"triton is not installed: .* pip install -U triton"):
        Checker(gpus="none")


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="choose derived or as-given"):
        Checker(gpus="none", inputs="mine")
    with pytest.raises(UserError, match="a timeout of 0 s"):
        Checker(gpus="none", timeout_s=0)
    with pytest.raises(UserError, match="timing needs a GPU"):
        Checker(gpus="none", timed=True)


def test_importing_the_package_loads_nothing() -> None:
    script = "import sys, kernelquarry; print([name for name in ('torch', 'numpy', 'pydantic') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(kernelquarry.__all__) <= set(dir(kernelquarry))
    assert kernelquarry.Checker is Checker
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kernelquarry.nothing


def test_a_module_without_the_class_model_names_its_classes(checker: Checker) -> None:
    evidence = checker.check(SCALE.replace("class Model(", "class Scale("), KERNEL).evidence
    assert evidence.endswith("has no class Model that derives from nn.Module: rename Scale")


def test_sizes_get_no_note_where_no_call_was_made(checker: Checker) -> None:
    large = SCALE.replace("rows = 6", "rows = 1 << 30")
    assert "smaller sizes were checked" in checker.check(large, KERNEL).note
    misspelt = checker.check(large, KERNEL.replace("tl.maximum", "tl.maximal"))
    assert misspelt.reason == "does_not_run" and not misspelt.note
