"""The environment, loaded and scored by verifiers itself."""

from __future__ import annotations

import asyncio
import json
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelquarry.pipeline.adapters.shared import shared_checker
from kernelquarry.pipeline.check import Checker
from tests.pipeline.adapters.conftest import snippets
from tests.pipeline.check.pairs import KERNEL, SCALE, WRONG
from tests.pipeline.conftest import in_this_process
from tests.scripted_endpoint import ScriptedEndpoint, streamed


@pytest.fixture(scope="module")
def vf() -> Any:
    """The library. Tests import it when they run, since the import takes seconds."""
    return pytest.importorskip("verifiers.v1", reason="verifiers is not installed: make test installs it")


@pytest.fixture
def environment(vf: Any, dataset: Path, monkeypatch: pytest.MonkeyPatch, checker: Checker) -> Any:
    from kernelquarry.pipeline.adapters import verifiers

    monkeypatch.setattr(verifiers, "shared_checker", lambda **settings: checker)
    return vf.load_environment(vf.resolve_env_config({"taskset": {"id": "kernelquarry", "dataset": str(dataset)}}))


def scored(task: Any, reply: str) -> Any:
    """The trace of a rollout with this reply, scored."""
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode

    question = MessageNode(parent=None, message=vf.UserMessage(content="?"), sampled=False)
    answer = MessageNode(parent=0, message=vf.AssistantMessage(content=reply), sampled=True)
    trace = vf.Trace(
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        task=vf.TraceTask(type=type(task).__name__, data=task.data),
        nodes=[question, answer],
    )
    asyncio.run(task.score(trace))
    return trace


def test_the_environment_is_found_by_its_id(environment: Any) -> None:
    agent = environment.config.agent
    assert (agent.harness.id, agent.runtime.type) == ("null", "subprocess")
    (task,) = environment.taskset
    assert task.data.id == "rl_1" and task.data.module == SCALE and SCALE.strip() in task.data.prompt
    assert "Triton" in task.data.system_prompt
    assert [hook.__name__ for hook in task.hooks("stop")] == ["single_turn"]


def test_replies_are_rewarded(environment: Any) -> None:
    (task,) = environment.taskset
    right = scored(task, f"```python\n{KERNEL}```")
    assert right.reward == 1.0 and right.metrics == {"verified": 1.0}
    wrong = scored(task, f"```python\n{WRONG}```")
    assert wrong.reward == 0.25 and wrong.metrics == {"verified": 0.0}
    assert scored(task, "I do not know.").reward == 0.0


def test_a_reply_without_verdict_is_an_error(vf: Any, environment: Any) -> None:
    (task,) = environment.taskset
    with pytest.raises(vf.TaskError, match="UNJUDGED"):
        scored(task.with_data(module="x = 1"), f"```python\n{KERNEL}```")


def test_the_command_of_the_page_rewards_a_right_kernel(
    vf: Any, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program runs in this process, which has the library and warm processes."""
    (command,) = (line for line in "".join(snippets("verifiers.md", "")).splitlines() if line.startswith("vf-eval"))
    monkeypatch.setenv("API_KEY", "key")
    monkeypatch.chdir(tmp_path)
    with ScriptedEndpoint(lambda request, number: streamed(f"```python\n{KERNEL}```")) as endpoint:
        command = command.replace("examples/sample", str(dataset)).replace("http://127.0.0.1:8000/v1", endpoint.url)
        name, *arguments = shlex.split(command)
        program = str(Path(sys.executable).with_name(name))
        monkeypatch.setattr("sys.argv", [program, *arguments, "-o", str(tmp_path)])
        with in_this_process(), pytest.raises(SystemExit) as ended:
            runpy.run_path(program, run_name="__main__")
    shared_checker(timed=False, timeout_s=None).close()
    shared_checker.cache_clear()
    assert not ended.value.code
    (request,) = endpoint.requests
    assert request["model"] == "MODEL"
    (traces,) = tmp_path.rglob("traces.jsonl")
    (trace,) = json.loads(traces.read_text())["traces"]
    assert trace["rewards"]["kernel"]["score"] == 1.0 and trace["errors"] == []


def test_checkers_are_shared() -> None:
    shared_checker.cache_clear()
    one, other = shared_checker(gpus="none", timeout_s=9), shared_checker(gpus="none", timeout_s=9)
    assert one is other
    one.close()
    shared_checker.cache_clear()
