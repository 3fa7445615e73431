"""A reward function for TRL's `GRPOTrainer`, and for other trainers that call reward functions as TRL does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernelquarry.pipeline.check import Checker, CheckVerdict, Status
from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.recipes.config import RewardSection
from kernelquarry.recipes.judge.reward import reward


class KernelReward:
    """An asynchronous reward function: checks the kernels of a batch of completions in parallel.

    The training dataset needs a column with the source of each prompt's module, as the config `rl` has.
    """

    def __init__(self, checker: Checker, *, column: str = "python_code", **levels: Any) -> None:
        """Prepare a reward function; the caller closes the checker.

        Args:
            column: name of the column with the modules.
            levels: fields of `RewardSection`: `kind`, and rewards that differ from the defaults. "graded" is the
                default kind; "speed" needs a checker with `timed=True`.
        """
        self._checker = checker
        self._column = column
        self._levels = RewardSection(**{"kind": "graded"} | levels)
        self.__name__ = "kernel_reward"  # in TRL's logs

    async def __call__(
        self,
        completions: Sequence[Any],
        log_metric: Callable[[str, float], None] = lambda name, value: None,
        **columns: Any,
    ) -> list[float | None]:
        """The reward of each completion; None, which TRL leaves out, if its kernel could not be judged.

        Args:
            completions: texts, or chats that end with the message to score.
        """
        texts = [each if isinstance(each, str) else each[-1]["content"] or "" for each in completions]
        pairs = list(zip(columns[self._column], map(read_answer, texts), strict=True))
        distinct = list(dict.fromkeys(pairs))
        verdicts = dict(zip(distinct, await self._checker.check_all_async(distinct), strict=True))
        found = [verdicts[pair] for pair in pairs]
        for name, share in _shares(found).items():
            log_metric(name, share)
        return [None if verdict.status is Status.UNJUDGED else reward(verdict, self._levels) for verdict in found]


def _shares(verdicts: Sequence[CheckVerdict]) -> dict[str, float]:
    """Share of kernels that are verified, and share of those that could not be judged."""
    return {
        f"kernels/{status}": sum(verdict.status is status for verdict in verdicts) / len(verdicts)
        for status in (Status.VERIFIED, Status.UNJUDGED)
    }
