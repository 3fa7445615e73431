"""Honest candidates are kept with a verdict; each evil one is dropped for its expected reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from corpus import Case, load_case, load_cases, make_workload
from factories import make_pair

from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Pair, Purity, StateSpec, Tier, Verified
from kernelquarry.transforms.verify import Task, VerifySettings, replay_pair, verify
from kernelquarry.transforms.verify.checks import CHECKS, Verification
from kernelquarry.transforms.verify.compiling import compile_for_targets
from kernelquarry.transforms.verify.evidence import Rejected

SETTINGS = VerifySettings(limits=Limits(wall_s=60, cpu_s=30))
HONEST_CASES = load_cases("honest")
EVIL = replace(SETTINGS, find_counterexamples=False)  # counter-examples have tests of their own
ENDLESS = replace(EVIL, limits=Limits(wall_s=60, cpu_s=2))  # an endless candidate uses all of it


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", HONEST_CASES, ids=by_name)
def test_honest(case: Case, sandbox: Sandbox) -> None:
    """Each case is compiled for one of two targets."""
    target = ("sm_90", "gfx942")[HONEST_CASES.index(case) % 2]
    outcome = verify(case.candidate, sandbox, replace(SETTINGS, target=target))
    if case.name == "linear_tiles_set_by_autotune_hook":  # sets attributes of descriptors
        assert isinstance(outcome, Dropped) and outcome.reason is Reason.OUTSIDE_LANGUAGE, outcome
        return
    assert isinstance(outcome, Kept), outcome
    verdict = outcome.record.verdict
    assert verdict.tiers == (Tier.COMPILED, Tier.INTERPRETED)
    assert verdict.targets == (target,)
    assert set(verdict.launched_kernels) == set(case.candidate.kernels)
    assert verdict.deterministic == case.deterministic
    task = Task.of_candidate(case.candidate)
    assert set(range(len(task.workloads))) <= {trial.workload for trial in verdict.trials}
    assert verdict.worst_ratio < 0.6, "honest kernels keep a distance from the limit"
    assert {"zeros", "constant", "other_inputs"} <= set(verdict.impostors)


@pytest.mark.parametrize("case", load_cases("evil"), ids=by_name)
def test_evil(case: Case, sandbox: Sandbox) -> None:
    outcome = verify(case.candidate, sandbox, ENDLESS if case.reasons[0] is Reason.TIMED_OUT else EVIL)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.reason in case.reasons, outcome
    assert case.evidence in outcome.evidence


@pytest.fixture(scope="module")
def softmax() -> Candidate:
    return load_case("honest", "softmax").candidate


@pytest.fixture(scope="module")
def row(softmax: Candidate, sandbox: Sandbox) -> Pair:
    outcome = verify(softmax, sandbox, SETTINGS)
    assert isinstance(outcome, Kept)
    return flatten_verified(Verified(softmax, outcome.record.verdict))


def with_reference(candidate: Candidate, code: str) -> Candidate:
    return replace(candidate, probed=replace(candidate.probed, python_code=code))


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("x * 0.0 + 1e-3", Reason.IMPOSTOR_PASSES),
        ("x", Reason.IMPOSTOR_PASSES),
        ("x / (x - x)", Reason.ORACLE_FAILED),
        ("x.no_such_method()", Reason.ORACLE_FAILED),
        ("__import__('os')._exit(0)", Reason.CRASHED),
    ],
)
def test_a_reference_that_proves_nothing(forward: str, reason: Reason, softmax: Candidate, sandbox: Sandbox) -> None:
    code = f"from torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        return {forward}\n"
    outcome = verify(with_reference(softmax, code), sandbox, SETTINGS)
    assert isinstance(outcome, Dropped) and outcome.reason is reason, outcome


def test_the_oracle_is_in_float64_even_if_the_reference_casts(softmax: Candidate, sandbox: Sandbox) -> None:
    code = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n" + (
        "        scale = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.float32).diagonal().diag()\n"
        "        return torch.softmax(x.float() @ scale, dim=-1, dtype=torch.float32)\n"
    )
    outcome = verify(with_reference(softmax, code), sandbox, SETTINGS)
    assert isinstance(outcome, Kept), outcome


def test_a_candidate_of_one_shape_only_gets_the_first_workload(sandbox: Sandbox) -> None:
    case = load_case("evil", "hard_coded_row_count")
    outcome = verify(replace(case.candidate, shape_general=False), sandbox, SETTINGS)
    assert isinstance(outcome, Kept), outcome
    assert {trial.workload for trial in outcome.record.verdict.trials} == {0}


def contiguous(code: str) -> str:
    return code.replace("forward(self, x):\n", "forward(self, x):\n        x = x.contiguous()\n")


def lowered(candidate: Candidate, code: str) -> Candidate:
    """The candidate with `code`, marked as lowered."""
    return replace(candidate, triton_code=code, generator=replace(candidate.generator, kind="inductor"))


def test_constructor_arguments_of_lowered_candidates_are_read(softmax: Candidate, sandbox: Sandbox) -> None:
    candidate = lowered(softmax, contiguous(softmax.triton_code))
    candidate = replace(candidate, probed=replace(candidate.probed, init_args="[*globals().get('none', ())]"))
    outcome = verify(candidate, sandbox, replace(SETTINGS, target="", find_counterexamples=False))
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.OUTSIDE_LANGUAGE, outcome
    assert outcome.evidence.startswith("the constructor's arguments: the name globals is outside")


def drawn(candidate: Candidate, sandbox: Sandbox) -> list[str]:
    outcome = verify(candidate, sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Kept), outcome
    return [trial.distribution for trial in outcome.record.verdict.trials]


def test_lowered_kernels_must_accept_strided_inputs(softmax: Candidate, sandbox: Sandbox) -> None:
    assert "shifted_strided" in drawn(lowered(softmax, contiguous(softmax.triton_code)), sandbox)
    outcome = verify(lowered(softmax, softmax.triton_code), sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Dropped) and "shifted_strided" in outcome.evidence, outcome


def test_lowered_kernels_must_keep_nan(softmax: Candidate, sandbox: Sandbox) -> None:
    code = contiguous(softmax.triton_code)
    assert "special" in drawn(lowered(softmax, code), sandbox)
    lost = code.replace("    power =", "    x = tl.where(x == x, x, 0.0)\n    power =")
    outcome = verify(lowered(softmax, lost), sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Dropped) and "special" in outcome.evidence, outcome


def test_a_model_s_candidate_gets_neither(softmax: Candidate, sandbox: Sandbox) -> None:
    assert not {"shifted_strided", "special"} & set(drawn(softmax, sandbox))


@pytest.mark.parametrize(
    ("demand", "rejected", "replacements"),
    [("x.view(-1)", "shifted_strided", ["shifted"]), ("assert not x.isnan().any()", "special", [])],
)
def test_trials_that_the_reference_rejects_are_replaced(
    demand: str, rejected: str, replacements: list[str], softmax: Candidate, sandbox: Sandbox
) -> None:
    code = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        "
    candidate = with_reference(softmax, f"{code}{demand}\n        return torch.softmax(x, dim=-1)\n")
    whole = drawn(lowered(softmax, contiguous(softmax.triton_code)), sandbox)
    wanted = [other for name in whole for other in (replacements if name == rejected else [name])]
    assert drawn(lowered(candidate, contiguous(softmax.triton_code)), sandbox) == wanted


def test_a_kernel_for_the_workloads_sizes_only_is_rejected(softmax: Candidate, sandbox: Sandbox) -> None:
    """No workload has more columns than this block."""
    columns = max(workload.tensors[0].shape[-1] for workload in softmax.probed.workloads)
    block = f"BLOCK={1 << (columns - 1).bit_length()}"
    code = softmax.triton_code.replace("BLOCK=triton.next_power_of_2(x.shape[1])", block)
    assert code != softmax.triton_code
    outcome = verify(replace(softmax, triton_code=code), sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Dropped) and outcome.reason == Reason.WRONG_VALUES, outcome


def test_multiples_replace_enlarged_calls_that_the_reference_rejects(softmax: Candidate, sandbox: Sandbox) -> None:
    shapes = [(2, 6), (3, 12), (5, 18)]
    code = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        "
    code += "assert x.shape[1] % 6 == 0\n        return torch.softmax(x, dim=-1)\n"
    workloads = tuple(make_workload([list(shape)]) for shape in shapes)
    candidate = replace(softmax, probed=replace(softmax.probed, python_code=code, workloads=workloads))
    outcome = verify(candidate, sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Kept), outcome
    calls = Task.of_candidate(candidate).calls
    assert [calls[trial.workload].tensors[0].shape for trial in outcome.record.verdict.trials[4:]] == [
        *shapes[1:],
        shapes[0],  # sparse
        shapes[2],  # assorted, on the workload with the most rows
        (20, 18),
        (5, 72),
    ]


@pytest.mark.parametrize(("kind", "ends"), [("inductor", Kept), ("model", Dropped)])
def test_only_a_model_s_source_is_read(softmax: Candidate, sandbox: Sandbox, kind: str, ends: type) -> None:
    """Lowered candidates copy code of the reference's constructor, which need not be in the language."""
    code = contiguous(softmax.triton_code) + "\n\nNAMES = dir(torch.ops)\n"
    candidate = replace(softmax, triton_code=code, generator=replace(softmax.generator, kind=kind))
    assert isinstance(verify(candidate, sandbox, replace(SETTINGS, target="")), ends)


SCALED = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    x, weight = tl.load(x_ptr + row * columns + column, inside), tl.load(weight_ptr + column, inside)
    tl.store(out_ptr + row * columns + column, x.to(tl.float32) * weight.to(tl.float32), inside)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(24))

    def forward(self, x):
        out = torch.empty_like(x)
        scale[(x.shape[0],)](x, self.weight, out, 24, BLOCK=32)
        return out
"""


def test_a_candidate_with_a_backward_caches_nothing(softmax: Candidate, sandbox: Sandbox) -> None:
    """No plan has a backward, and plans alone tell what is cached."""
    cached = SCALED.replace("class ModelNew", "@functools.cache\ndef rows_of(n):\n    return n\n\nclass ModelNew")
    code = cached.replace("import torch", "import functools\nimport torch", 1).replace("(x.shape[0],)", "(rows_of(7),)")
    task = replace(Task.of_candidate(softmax), triton_code=code, by_model=True)
    CHECKS[0].run(Verification(task, (), sandbox, SETTINGS))
    with pytest.raises(Rejected, match="a cache in a candidate with a backward"):
        CHECKS[0].run(Verification(replace(task, training=True), (), sandbox, SETTINGS))


def test_a_model_s_candidate_is_cast_to_the_row_s_half_precision(softmax: Candidate, sandbox: Sandbox) -> None:
    reference = SCALED.replace("ModelNew", "Model").partition("        out =")[0] + "        return x * self.weight\n"
    workloads = tuple(make_workload([{"shape": [rows, 24], "dtype": "bfloat16"}]) for rows in (5, 9))
    state = (StateSpec("weight", "parameter", (24,), "bfloat16", 1.0, 0.0, 1.0),)
    probed = replace(softmax.probed, python_code=reference, workloads=workloads, state=state)
    candidate = replace(softmax, probed=probed, triton_code=SCALED, kernels=("scale",), dtype="bfloat16")
    outcome = verify(candidate, sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Kept), outcome


ROOMY = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def softmax_rows(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=float("-inf"))
    power = tl.where(inside, tl.exp(x - tl.where(row < rows, tl.max(x, axis=1)[:, None], 0.0)), 0.0)
    one = (tl.arange(0, BLOCK)[:, None] == tl.arange(0, BLOCK)[None, :]).to(tl.float32)
    power = tl.dot(power, one, input_precision="tf32x3")
    tl.store(out_ptr + row * columns + column, power / tl.sum(power, axis=1)[:, None], mask=inside)

class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        block = max(128, triton.next_power_of_2(columns))
        softmax_rows[(triton.cdiv(rows, 64),)](x, out, rows, columns, ROWS=64, BLOCK=block)
        return out
"""


def test_a_model_s_candidate_may_need_features_of_one_target(softmax: Candidate, sandbox: Sandbox) -> None:
    """The kernel needs 192 KiB of shared memory on an H100; an MI300 has 64 KiB."""
    roomy = replace(softmax, triton_code=ROOMY, kernels=("softmax_rows",))
    outcome = verify(roomy, sandbox, SETTINGS)
    assert isinstance(outcome, Kept), outcome
    verdict = outcome.record.verdict
    assert verdict.targets == ("sm_90",)
    task, others = Task.of_candidate(roomy), ("sm_100", "gfx942")
    assert compile_for_targets(task, verdict, others, sandbox, SETTINGS.limits) == ("sm_100",)
    assert compile_for_targets(task, replace(verdict, launches=2), others, sandbox, SETTINGS.limits) == ()


def test_the_environment_is_recorded(row: Pair, sandbox: Sandbox) -> None:
    environment = row.verdict.environment
    assert environment.device == "cpu-interpreter"
    recorded = json.loads(environment.sandbox)
    assert recorded.keys() == sandbox.layers.keys()
    for name, state in sandbox.layers.items():
        assert recorded[name] == ("off" if state.startswith("off") else state)


def test_a_row_is_verified_again_from_the_row_alone(row: Pair, sandbox: Sandbox) -> None:
    replayed = replay_pair(row, sandbox, SETTINGS)
    assert replayed.agrees and replayed.identical
    assert "to the last bit" in replayed.render()


def test_a_row_with_another_kernel_does_not_replay(row: Pair, sandbox: Sandbox) -> None:
    changed = replace(row, triton_code=row.triton_code.replace("tl.max(x, axis=0)", "tl.min(x, axis=0)"))
    replayed = replay_pair(changed, sandbox, SETTINGS)
    assert not replayed.agrees
    assert "wrong_values" in replayed.render() and "NOT verified" in replayed.render()


def test_a_replay_adds_trials_that_a_row_lacks(row: Pair, sandbox: Sandbox) -> None:
    one = replace(row, verdict=replace(row.verdict, trials=row.verdict.trials[:1]))
    replayed = replay_pair(one, sandbox, SETTINGS)
    assert replayed.agrees and replayed.identical and replayed.now is not None
    assert len(replayed.now.trials) == len(row.verdict.trials)
    ignorant = "tl.where(tl.max(x, axis=0) > 20, 0.0, power / tl.sum(power, axis=0))"
    wrong = replace(one, triton_code=row.triton_code.replace("power / tl.sum(power, axis=0)", ignorant))
    assert wrong.triton_code != row.triton_code and not replay_pair(wrong, sandbox, SETTINGS).agrees


def test_a_row_with_wrong_claims_does_not_replay(row: Pair, sandbox: Sandbox) -> None:
    claimed = replace(row, verdict=replace(row.verdict, launches=7))
    assert any("launches" in difference for difference in replay_pair(claimed, sandbox, SETTINGS).differences)


def test_the_rows_of_the_factories_replay(sandbox: Sandbox) -> None:
    """Other tests build on this row, so its code must be right."""
    pair = make_pair()
    replayed = replay_pair(pair, sandbox, SETTINGS)
    assert replayed.now is not None, replayed.rejected


def test_a_verdict_has_the_share_that_kernels_wrote(row: Pair, softmax: Candidate, sandbox: Sandbox) -> None:
    """A second output is computed by an operator outside of the kernels."""
    assert row.verdict.written == 1.0
    reference = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        "
    both = with_reference(softmax, f"{reference}return torch.softmax(x, dim=-1), torch.sin(x).double()[:, ::2]\n")
    code = softmax.triton_code.replace("return out", "return out, torch.sin(x).double()[:, ::2]")
    mixed = replace(both, triton_code=code, purity=Purity.MIXED, extern_ops=("aten.sin", "aten._to_copy"))
    outcome = verify(mixed, sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Kept), outcome
    _, columns = softmax.probed.workloads[0].tensors[0].shape
    assert outcome.record.verdict.written == pytest.approx(columns * 4 / (columns * 4 + -(-columns // 2) * 8))


def test_a_lowered_candidate_may_raise_where_its_guards_do_not_hold(softmax: Candidate, sandbox: Sandbox) -> None:
    """The workloads have sizes up to 90, and larger calls have 129 and 65."""
    check = "        if x.shape[1] > 100:\n            raise ValueError(x.shape)\n"
    code = contiguous(softmax.triton_code).replace("        out =", f"{check}        out =")
    refusing = lowered(softmax, code)
    outcome = verify(refusing, sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.DOES_NOT_RUN, outcome
    outcome = verify(replace(refusing, guards=("input0_1 <= 100",)), sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Kept), outcome
    calls = Task.of_candidate(refusing).calls
    larger = {calls[trial.workload].tensors[0].shape for trial in outcome.record.verdict.trials} - {
        workload.tensors[0].shape for workload in softmax.probed.workloads
    }
    assert larger == {(4 * 17, 90)}, "calls that the guard allows replace the one that it forbids"


def test_a_guard_does_not_allow_raising_on_a_workload(softmax: Candidate, sandbox: Sandbox) -> None:
    code = contiguous(softmax.triton_code).replace("        out =", "        assert x.shape[1] < 60\n        out =")
    refusing = replace(lowered(softmax, code), guards=("input0_1 < 60",))
    outcome = verify(refusing, sandbox, replace(SETTINGS, target=""))
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.DOES_NOT_RUN, outcome
