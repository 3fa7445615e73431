"""GRPO of a tiny model with the real verifier, and its reward function."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import make_verdict
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import RewardSection, load_recipe
from kernelquarry.recipes.generate.models import load_tokenizer
from kernelquarry.recipes.judge.judge_answer import Judgement
from kernelquarry.recipes.judge.verifier_pool import VerifierPool
from kernelquarry.recipes.train.grpo import make_reward_fn, shares, train
from kernelquarry.recipes.train.rollouts import FinishedCallback, frozen_copy, merged_weights
from kernelquarry.recipes.train.survey import instructive
from kernelquarry.recipes.train.trainer import TrainingJob

LORA = ("grpo.lora.rank=2", "grpo.lora.alpha=4")


@pytest.mark.parametrize(("rollouts", "lora"), [("auto", ()), ("slots", ()), ("slots", LORA)])
def test_training_judges_all_answers_and_resumes(
    dataset: Path, recipe_file: str, tmp_path: Path, rollouts: str, lora: tuple[str, ...]
) -> None:
    recipe = load_recipe(recipe_file, [f"grpo.rollouts={rollouts}", "model.attention=varlen", *lora])
    half = train(TrainingJob(recipe, str(dataset), tmp_path, minutes=1e-9), SandboxSettings())
    assert not half.done and half.steps == 1
    trained = train(TrainingJob(recipe, str(dataset), tmp_path), SandboxSettings())
    assert trained.done and trained.steps == 2 and (trained.model / "model.safetensors").is_file()
    answers = [json.loads(line) for line in (trained.stage / "answers-0.jsonl").read_text().splitlines()]
    assert len(answers) == 2 * recipe.grpo.prompts * recipe.grpo.generations
    assert {answer["why"] for answer in answers} == {"no_code"}  # random weights write no code
    logged = [json.loads(line) for line in (trained.stage / "curves.jsonl").read_text().splitlines()]
    assert all("reward_wait" in entry and entry["correct"] == 0.0 for entry in logged if "reward" in entry)


def test_a_survey_chooses_prompts_whose_answers_are_right_now_and_then(
    dataset: Path, recipe_file: str, tiny_model: Path, tmp_path: Path, pairs: list[Pair]
) -> None:
    section = load_recipe(recipe_file, ("grpo.survey=4", "grpo.right=[0.25, 0.5]")).grpo
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny_model), load_tokenizer(str(tiny_model), "chatml.jinja")
    surveyed = [pairs[0], pairs[1], pairs[2], pairs[3]]
    verifiers = EveryNth({pair.id: every for pair, every in zip(surveyed, (1, 2, 4, 9), strict=True)})
    kept = instructive(surveyed, model, tokenizer, verifiers, section, tmp_path)
    assert kept == [pairs[1], pairs[2]]
    counts = [json.loads(line)["right"] for line in (tmp_path / "survey-0.jsonl").read_text().splitlines()]
    assert counts == [4, 2, 1, 0]
    assert instructive(surveyed, model, tokenizer, EveryNth({}), section, tmp_path) == kept  # by the counts in the file


def test_grpo_trains_on_what_the_survey_chose(dataset: Path, recipe_file: str, tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file, ("grpo.survey=2", "grpo.right=[0, 0]", "grpo.steps=1"))
    trained = train(TrainingJob(recipe, str(dataset), tmp_path / "all"), SandboxSettings())
    assert trained.done and len((trained.stage / "survey-0.jsonl").read_text().splitlines()) > 1
    recipe = load_recipe(recipe_file, ("grpo.survey=2",))
    with pytest.raises(UserError, match="widen it"):
        train(TrainingJob(recipe, str(dataset), tmp_path / "none"), SandboxSettings())


def test_rollouts_are_written_with_merged_adapters(tiny_model: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    writer = frozen_copy(adapted, None)
    assert not hasattr(writer, "peft_config")
    weights = dict(merged_weights(adapted))
    whole = adapted.merge_and_unload().state_dict()
    assert weights.keys() == dict(writer.named_parameters()).keys()
    for name, weight in weights.items():
        torch.testing.assert_close(weight, whole[name])


class FixedJudgements(VerifierPool):
    """A verifier pool with fixed judgements by text."""

    def __init__(self, judgements: dict[str, Judgement]) -> None:
        self._judgements, self.waited_s = judgements, 0.0

    def submit(self, id: str, text: str) -> Future[Judgement]:
        future: Future[Judgement] = Future()
        future.set_result(self._judgements[text])
        return future


class EveryNth(VerifierPool):
    """A verifier pool for which every nth answer to a row is right."""

    def __init__(self, every: dict[str, int]) -> None:
        self._every, self._count = every, Counter[str]()

    def submit(self, id: str, text: str) -> Future[Judgement]:
        self._count[id] += 1
        is_right = self._count[id] % self._every[id] == 0
        future: Future[Judgement] = Future()
        future.set_result(
            Judgement("a", verdict=make_verdict()) if is_right else Judgement("b", reason=Reason.WRONG_VALUES)
        )
        return future


def test_each_answer_is_rewarded_and_recorded(tmp_path: Path) -> None:
    known = {
        "right": Judgement("a", verdict=make_verdict()),
        "fake": Judgement("b", reason=Reason.OUTPUT_NOT_FROM_KERNEL, evidence="no launch"),
        "none": Judgement(""),
        "else": Judgement("c", reason=Reason.OUTSIDE_LANGUAGE),
    }
    section = RewardSection(kind="graded", penalties={"unused": 0.5})
    logged: dict[str, float] = {}
    rewards = make_reward_fn(FixedJudgements(known), section, tmp_path / "answers.jsonl")(
        completions=[[{"role": "assistant", "content": text}] for text in known],
        pair=["p", "p", "q", "q"],
        log_metric=logged.__setitem__,
    )
    assert rewards == [1.0, -0.5, 0.0, None]  # nothing ran that is outside of the language
    assert logged["correct"] == logged["hack/unused"] == 1 / 4
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [(line["pair"], line["why"]) for line in lines] == [
        ("p", ""),
        ("p", "kernel_unused"),
        ("q", "no_code"),
        ("q", "outside_language"),
    ]
    assert shares([known["none"]]) == {"correct": 0.0}


def test_an_answer_is_reported_when_it_ends() -> None:
    import torch

    finished: list[Any] = []
    criterion = FinishedCallback(torch.tensor([9]), lambda prompt, answer: finished.append((prompt, answer)))
    rows = torch.tensor([[0, 1, 5, 9, 9], [2, 3, 6, 7, 9]])
    for end in (3, 4, 5):
        assert not criterion(rows[:, :end], None).any()  # type: ignore[arg-type]
        assert len(finished) == {3: 0, 4: 1, 5: 2}[end]
    assert finished == [([0, 1], [5, 9]), ([2, 3], [6, 7, 9])]


def test_an_exception_of_the_verifier_affects_one_answer(pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(code: str, *rest: Any) -> Judgement:
        if "bad" in code:
            raise RuntimeError("no guest")
        return Judgement(code, reason=Reason.WRONG_VALUES)

    monkeypatch.setattr("kernelquarry.recipes.judge.verifier_pool.judge_code", breaks)
    with VerifierPool({pairs[0].id: pairs[0]}, SandboxSettings()) as verifiers:
        found = verifiers.judge([pairs[0].id] * 2, ["```python\nbad\n```", "```python\ngood\n```"])
    assert [judgement.why for judgement in found] == ["errored", "wrong_values"]
    assert "no guest" in found[0].evidence
