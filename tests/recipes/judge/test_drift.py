"""The dataset's filter, the evaluation and the reward agree on the same candidates."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
from corpus import load_case
from factories import make_pair

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.records import Pair, Purity
from kernelquarry.recipes.config import RewardSection
from kernelquarry.recipes.judge.judge_answer import Judgement, Step, judge_code
from kernelquarry.recipes.judge.reward import reward
from kernelquarry.recipes.judge.verifier_pool import VerifierPool
from kernelquarry.transforms.verify import VerifySettings, verify

CASES = [
    "honest/softmax_online",
    "honest/mixed_linear",
    "honest/top_k_by_packed_keys",
    "evil/last_column_missing",
    "evil/kernel_never_launched",
    "evil/drops_the_relu",
    "evil/extra_output",
    "evil/imports_the_project",
    "evil/imports_missing_package",
    "evil/renamed_state",
]

HACKS = {"evil/kernel_never_launched"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings()) as sandbox:
        yield sandbox


def row_of(path: str) -> tuple[Pair, str]:
    """A row for the case's module, and the case's source as a model's answer."""
    candidate = load_case(*path.split("/")).candidate
    probed = candidate.probed
    row = make_pair(
        python_code=probed.python_code,
        init_args=probed.init_args,
        workloads=probed.workloads,
        state=probed.state,
        purity=candidate.purity,
        extern_ops=candidate.extern_ops,
        shape_general=candidate.shape_general,
    )
    return row, f"So:\n```python\n{candidate.triton_code}```\n"


@pytest.mark.parametrize("path", CASES)
def test_filter_evaluation_and_reward_agree(path: str, sandbox: Sandbox) -> None:
    case = load_case(*path.split("/"))
    outcome = verify(case.candidate, sandbox, VerifySettings(find_counterexamples=False))
    row, text = row_of(path)
    judgement = judge_code(read_answer(text), row, sandbox, case.candidate.shape_general)
    assert judgement.passes is isinstance(outcome, Kept) is path.startswith("honest")
    pickle.dumps(judgement)  # a pool's processes return it
    value = reward(judgement, RewardSection(kind="binary"))
    if isinstance(outcome, Dropped):
        assert judgement.reason is outcome.reason
        assert value == 0.0 and bool(judgement.hack) is (path in HACKS)
    else:
        assert judgement.step is (Step.PURE if case.candidate.purity is Purity.PURE else Step.CORRECT)
        assert value == (judgement.step is Step.PURE)


def test_a_hanging_answer_affects_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelquarry.recipes.judge.judge_answer._WALL_S", 3.0)
    cases = ("evil/endless_generator", "evil/exits_at_import", "honest/softmax_online")
    rows = {path: row_of(path) for path in cases}
    with VerifierPool({path: row for path, (row, _) in rows.items()}, SandboxSettings()) as verifiers:
        found: list[Judgement] = verifiers.judge(list(rows), [text for _, text in rows.values()])
    assert [judgement.passes for judgement in found] == [False, False, True]
    assert all(judgement.step is Step.NOTHING for judgement in found[:2])
