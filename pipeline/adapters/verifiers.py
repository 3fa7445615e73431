"""An environment for `verifiers`, which prime-rl trains on: write a kernel for a module, in one turn.

`verifiers` finds it under the id `kernelquarry`, since the package exports the taskset and the environment.
"""

from __future__ import annotations

from typing import Literal

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarnessConfig

from kernelquarry.pipeline.check import Status
from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.recipes.config import RewardSection
from kernelquarry.recipes.judge.reward import reward

from .shared import shared_checker


class KernelData(vf.TaskData):
    """The prompt, and the module that a kernel is requested for."""

    module: str


class KernelTaskConfig(vf.TaskConfig):
    """How answers are judged."""

    kind: Literal["binary", "graded", "speed"] = "graded"  # see `recipes/judge/reward.py`
    timeout_s: float | None = None  # of one check


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    @vf.stop
    async def single_turn(self, trace: vf.Trace) -> bool:
        return bool(trace.num_turns >= 1)

    @vf.reward
    async def kernel(self, trace: vf.Trace) -> float:
        """The reward of the last reply. Raises: RuntimeError: no verdict; the rollout is then no sample."""
        timed = self.config.kind == "speed"
        checker = shared_checker(timed=timed, timeout_s=self.config.timeout_s)
        verdict = await checker.check_async(self.data.module, read_answer(trace.last_reply))
        if verdict.status is Status.UNJUDGED:
            raise RuntimeError(verdict.headline)
        trace.record_metric("verified", float(bool(verdict)))
        return reward(verdict, RewardSection(kind=self.config.kind))


class KernelTasksetConfig(vf.TasksetConfig):
    """The dataset that the tasks are read from."""

    dataset: str = ""  # folder, or id on the Hub
    split: str = "train"
    task: KernelTaskConfig = KernelTaskConfig()


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """A task for each row of the config `rl`."""

    def load(self) -> list[KernelTask]:
        from datasets import load_dataset

        if not self.config.dataset:
            raise ValueError("no dataset: name a folder or an id on the Hub with --env.taskset.dataset")
        rows = load_dataset(self.config.dataset, "rl", split=self.config.split)
        return [
            KernelTask(
                KernelData(
                    id=row["id"],
                    system_prompt=row["prompt"][0]["content"],
                    prompt=row["prompt"][1]["content"],
                    module=row["python_code"],
                ),
                self.config.task,
            )
            for row in rows
        ]


class KernelEnvConfig(vf.SingleAgentEnvConfig):
    """One agent without tools, on this machine."""

    agent: vf.AgentConfig = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())


class KernelEnv(vf.Env[KernelEnvConfig]):
    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        await agents.agent.run(task)
