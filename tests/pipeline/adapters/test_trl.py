"""The reward function, called by TRL's own trainer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelquarry import KernelReward
from kernelquarry.pipeline.check import Checker, CheckVerdict, Status
from tests.pipeline.adapters.conftest import snippets
from tests.pipeline.check.pairs import KERNEL, SCALE, WRONG

ANSWERS = [
    f"Here it is.\n```python\n{KERNEL}```",
    f"```python\n{WRONG}```",
    "I do not know.",
    f"```python\n{KERNEL}```",
]


VERDICTS = {
    "pure": CheckVerdict(Status.VERIFIED, purity="pure"),
    "mixed": CheckVerdict(Status.VERIFIED, purity="mixed"),
    "wrong": CheckVerdict(Status.REJECTED, "wrong_values"),
    "form": CheckVerdict(Status.REJECTED, "wrong_contract"),
    "crash": CheckVerdict(Status.REJECTED, "does_not_run"),
    "fake": CheckVerdict(Status.REJECTED, "kernel_unused"),
    "slow": CheckVerdict(Status.UNJUDGED),
    "": CheckVerdict(Status.REJECTED, "no_code"),
}


class FixedVerdicts(Checker):
    """A checker with a verdict for each comment on a class."""

    def __init__(self) -> None:
        self.checked: list[str] = []

    async def check_all_async(self, pairs: Iterable[tuple[str, str]]) -> list[CheckVerdict]:
        kernels = [kernel for module, kernel in pairs if module == SCALE]
        self.checked += kernels
        return [VERDICTS[kernel.partition("# ")[2].strip()] for kernel in kernels]


def answer(name: str) -> str:
    """An answer whose verdict is the one of this name."""
    return f"Here it is.\n```python\n{KERNEL}# {name}\n```" if name else "I do not know."


def rewards(completions: Sequence[Any], **levels: Any) -> list[float | None]:
    reward = KernelReward(FixedVerdicts(), **levels)
    modules = [SCALE] * len(completions)
    return asyncio.run(reward(completions=completions, python_code=modules, prompts=modules))


def test_each_verdict_has_its_level() -> None:
    texts = [answer(name) for name in VERDICTS]
    assert rewards(texts) == [1.0, 0.8, 0.25, 0.15, 0.05, 0.0, None, 0.0]
    assert rewards(texts, kind="binary") == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, 0.0]
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    assert rewards(chats, contract=0.5) == [1.0, 0.8, 0.5, 0.15, 0.05, 0.0, None, 0.0]


def test_equal_kernels_are_checked_once_and_shares_are_logged() -> None:
    checker, logged = FixedVerdicts(), dict[str, float]()
    answers = [answer("pure"), answer("slow"), answer("pure").removeprefix("Here it is."), answer("wrong")]
    reward = KernelReward(checker, column="problem")
    found = asyncio.run(reward(completions=answers, problem=[SCALE] * 4, log_metric=logged.__setitem__))
    assert found == [1.0, None, 1.0, 0.25] and len(checker.checked) == 3
    assert logged == {"kernels/verified": 0.5, "kernels/unjudged": 0.25}


def test_the_page_trains(dataset: Path, chat_model: Path, tmp_path: Path) -> None:
    """The example of the page, with a tiny model and scripted completions."""

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        encode = trainer.processing_class
        chats = [encode.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True) for prompt in prompts]
        completions = [encode(answer)["input_ids"] for answer in ANSWERS]
        return {
            "prompt_ids": [encode(chat)["input_ids"] for chat in chats],
            "completion_ids": completions,
            "logprobs": [[0.0] * len(ids) for ids in completions],
        }

    (code,) = snippets("trl.md", "python")
    arguments = "max_steps=1, per_device_train_batch_size=4, num_generations=4, logging_steps=1, bf16=False"
    arguments += f', report_to="none", output_dir="{tmp_path}", '
    for old, new in (
        ("examples/sample", str(dataset)),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct", str(chat_model)),
        ("GRPOConfig(", f"GRPOConfig({arguments}"),
        ("Checker(timeout_s=60", 'Checker(timeout_s=60, gpus="none", workers=1'),
        ("train_dataset=prompts", "train_dataset=prompts, rollout_func=rollout"),
    ):
        assert old in code
        code = code.replace(old, new)
    values: dict[str, Any] = {"rollout": rollout}
    exec(code, values)
    (logged,) = (entry for entry in values["trainer"].state.log_history if "reward" in entry)
    assert logged["rewards/kernel_reward/mean"] == pytest.approx(2.25 / 4)
    assert logged["kernels/verified"] == 0.5 and logged["kernels/unjudged"] == 0.0
    assert not math.isnan(logged["loss"])
