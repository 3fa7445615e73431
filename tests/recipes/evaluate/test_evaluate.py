"""Evaluation of scripted answers by the real verifier, suites, and samplers of local models and endpoints."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from corpus import load_case

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import EvaluationSection
from kernelquarry.recipes.evaluate.answers import Answer, read_records
from kernelquarry.recipes.evaluate.evaluate import evaluate, raises_at_once
from kernelquarry.recipes.evaluate.problems import Problem, read_suite, with_short_prompts
from kernelquarry.recipes.evaluate.results import leaderboard, read_results, render, summarise, write_results
from kernelquarry.recipes.evaluate.right_answer import example
from kernelquarry.recipes.generate.samplers import EndpointModel, LocalModel, Sampled
from kernelquarry.recipes.judge.verify_task import row_of_source

SOFTMAX = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(4, 10)]


def get_init_inputs():
    return []
"""
RIGHT = load_case("honest", "softmax_online").candidate.triton_code
WRONG = RIGHT.replace("tl.exp(", "1.001 * tl.exp(", 1)
LAZY = "import torch\nclass ModelNew(torch.nn.Module):\n def forward(self, x):\n  return x.softmax(-1)  # @triton.jit\n"
ANSWERS = [f"```python\n{RIGHT}```", "I cannot.", f"```python\n{LAZY}```"]


class ScriptedSampler:
    """A sampler of fixed answers that fails after `fails_after` of them."""

    def __init__(self, answers: Sequence[str], fails_after: int = 100) -> None:
        self.answers, self.left, self.sampled = answers, fails_after, 0

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        for index, chat in enumerate(chats):
            if not self.left:
                raise UserError("the endpoint died")
            self.left -= 1
            self.sampled += 1
            assert "softmax" in chat[1]["content"]
            yield Sampled(index, self.answers[(seed + index) % len(self.answers)], 7)

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        yield self.answers[0]


@pytest.fixture(scope="module")
def problem() -> Problem:
    with Sandbox(SandboxSettings()) as sandbox:
        return Problem("softmax", "", row_of_source("softmax", SOFTMAX, sandbox), False)


def test_answers_are_scored_by_our_verifier_and_by_kernelbenchs_check(problem: Problem, tmp_path: Path) -> None:
    dies = ScriptedSampler(ANSWERS, fails_after=2)
    with pytest.raises(UserError, match="died"):
        evaluate([problem], dies, 3, tmp_path, SandboxSettings())
    rest = ScriptedSampler(ANSWERS)
    run = evaluate([problem], rest, 3, tmp_path, SandboxSettings())
    assert rest.sampled == 1  # the first two are kept
    assert run.writing_s == run.judging_s == 0  # unknown after a restart
    right, silent, lazy = sorted(run.scores, key=lambda score: score.sample)
    assert (right.why, right.others, right.naive, right.compiled) == ("", True, True, True)
    assert (silent.why, silent.others, silent.naive, silent.compiled) == ("no_code", False, False, False)
    assert (lazy.why, lazy.hack, lazy.others, lazy.naive) == ("kernel_unused", "unused", True, True)
    results = summarise("given", "own", "", "greedy", "CPU", run, ["softmax"])
    assert results.strict["pass@1"].value == pytest.approx(1 / 3)
    assert results.others["pass@1"].value == pytest.approx(2 / 3)
    assert results.naive_gap.value == pytest.approx(1 / 3)
    assert results.why == {"kernel_unused": 1, "no_code": 1, "verified": 1} and results.hacks == {"unused": 1}
    assert results.tokens == 21 and not results.fast
    shown = example([problem], run)
    assert shown.startswith("1 of 3 answers are right.") and SOFTMAX.strip() in shown and RIGHT.strip() in shown
    wrong = replace(run, scores=[silent, lazy])
    assert example([problem], wrong) == (
        "**None of 2 answers is right.** Most frequent reasons: no_code (1), kernel_unused (1).\n"
    )
    write_results(tmp_path, [results])
    assert read_results(tmp_path) == [results]
    assert "| our verifier | 66.7" in render([results]) and "| kernel_unused | 1 |" in render([results])
    assert "| given | 33.3" in leaderboard([results])


def test_an_evaluation_that_is_cut_short_counts_whole_rounds(problem: Problem, tmp_path: Path) -> None:
    other = replace(problem, id="other")
    evaluate([problem, other], ScriptedSampler(ANSWERS), 2, tmp_path, SandboxSettings(), weaker_checks=False)
    scores = (tmp_path / "scores.jsonl").read_text().splitlines()
    (tmp_path / "scores.jsonl").write_text("".join(f"{line}\n" for line in scores if '"sample": 0' in line))
    run = evaluate([problem, other], ScriptedSampler(ANSWERS), 2, tmp_path, SandboxSettings(), end=0.0)
    assert not run.done and [(score.problem, score.sample) for score in run.scores] == [("softmax", 0), ("other", 0)]
    assert summarise("given", "own", "", "greedy", "CPU", run, ["softmax", "other"]).samples == 1
    (tmp_path / "scores.jsonl").write_text("".join(f"{line}\n" for line in scores if "other" not in line))
    late = time.monotonic() + 600
    run = evaluate([problem, other], ScriptedSampler([]), 2, tmp_path, SandboxSettings(), end=late)
    assert run.done and len(run.scores) == 4
    assert [answer.sample for answer in run.answers] == [0, 0, 1, 1]
    results = summarise("given", "own", "", "greedy", "CPU", run, ["softmax", "other"], weaker_checks=False)
    assert not results.others and results.naive is None
    write_results(tmp_path, [results])
    assert read_results(tmp_path) == [results]
    assert "naive" not in render([results]) and "| given |" in leaderboard([results])


def test_incomplete_lines_are_ignored_and_other_fields_rejected(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    line = json.dumps({"problem": "p", "sample": 0, "text": "t", "tokens": 1, "cut": False})
    path.write_text(line + "\n" + line[:20])
    assert read_records(path, Answer) == [Answer("p", 0, "t", 1, False)]
    path.write_text('{"other": 1}\n')
    with pytest.raises(UserError, match="give another --out"):
        read_records(path, Answer)


def test_a_checkout_of_kernelbench_is_read_by_level(tmp_path: Path) -> None:
    for level, number in ((1, 10), (1, 2), (2, 1)):
        (tmp_path / "KernelBench" / f"level{level}").mkdir(parents=True, exist_ok=True)
        (tmp_path / "KernelBench" / f"level{level}" / f"{number}_Softmax.py").write_text(SOFTMAX)
    with Sandbox(SandboxSettings()) as sandbox:
        found = read_suite("kernelbench", str(tmp_path), (1, 2), 0, sandbox)
        first = read_suite("kernelbench", str(tmp_path), (1,), 1, sandbox)
        with pytest.raises(UserError, match="no problems of level 4"):
            read_suite("kernelbench", str(tmp_path), (4,), 0, sandbox)
        with pytest.raises(UserError, match="there are modules, slices, easy, test, embedded"):
            read_suite("unknown", "", (), 0, sandbox)
    assert [each.id for each in found] == ["1-002_Softmax", "1-010_Softmax", "2-001_Softmax"]
    assert [each.level for each in found] == ["level 1", "level 1", "level 2"]
    assert [each.id for each in first] == ["1-002_Softmax"]
    workload = found[0].row.workloads[0]
    assert "for inputs `x` (batch, length), where names are sizes that vary." in found[0].chat[1]["content"]
    assert workload.tensors[0].shape == (4, 10) and workload.args == '[{"tensor": 0}]'


def test_a_problem_that_is_too_large_to_run_is_checked_at_smaller_sizes(tmp_path: Path) -> None:
    (tmp_path / "KernelBench" / "level1").mkdir(parents=True)
    large = SOFTMAX.replace("randn(4, 10)", "randn(1 << 24, 1000)")
    assert large != SOFTMAX
    (tmp_path / "KernelBench" / "level1" / "1_Softmax.py").write_text(large)
    with Sandbox(SandboxSettings()) as sandbox:
        (found,) = read_suite("kernelbench", str(tmp_path), (1,), 0, sandbox)
    assert found.row.workloads[0].tensors[0].shape == (1 << 24, 1000) and found.row.python_code == large
    assert "With these sizes, the result is (batch, length)." in found.chat[1]["content"]
    run = evaluate([found], ScriptedSampler(ANSWERS), 3, tmp_path, SandboxSettings(), weaker_checks=False)
    scores = sorted(run.scores, key=lambda score: score.sample)
    assert [score.why for score in scores] == ["", "no_code", "kernel_unused"]


def test_the_embedded_suite_is_read() -> None:
    with Sandbox(SandboxSettings()) as sandbox:
        problems = read_suite("embedded", "", (), 0, sandbox)
    assert len(problems) == 5 and all(problem.general for problem in problems)
    norm = next(problem for problem in problems if problem.id == "residual_rms_norm").row
    assert norm.init_args == "[48]" and [entry.name for entry in norm.state] == ["weight"]


@pytest.mark.parametrize("slots", [False, True])
def test_a_local_model_answers_every_chat(tiny_model: Path, slots: bool) -> None:
    section = EvaluationSection(new_tokens=5, batch=2, slots=slots)
    model = LocalModel(str(tiny_model), section, chat="chatml.jinja")
    chats: list[list[Message]] = [[{"role": "user", "content": "x" * length}] for length in (3, 30, 1)]
    sampled = list(model.sample(chats))
    assert sorted(each.index for each in sampled) == [0, 1, 2]
    assert all(0 < each.tokens <= 5 for each in sampled)
    assert list(model.sample(chats)) == sampled
    assert isinstance("".join(model.stream(chats[0])), str)


def test_the_test_suite_has_no_composed_modules(dataset: Path, tmp_path: Path) -> None:
    pairs = list(read_rows(dataset))
    first, *others = [pair for pair in pairs if pair.split == "test"]
    rows = [replace(first, source=replace(first.source, corpus="compose")), *others]
    write_rows(tmp_path, Path("data/pairs"), Pair, rows)
    with Sandbox(SandboxSettings()) as sandbox:
        found = {problem.id for problem in read_suite("test", str(tmp_path), (), 0, sandbox)}
    assert found == {pair.id for pair in others}


@pytest.mark.parametrize("suite", ["test", "modules"])
@pytest.mark.parametrize("general", [True, False])
def test_a_problem_demands_the_sizes_of_the_rows_own_kernel(
    dataset: Path, tmp_path: Path, suite: str, general: bool
) -> None:
    rows = [replace(pair, shape_general=general) for pair in read_rows(dataset)]
    write_rows(tmp_path, Path("data/pairs"), Pair, rows)
    with Sandbox(SandboxSettings()) as sandbox:
        problems = read_suite(suite, str(tmp_path), (), 0, sandbox)
    assert {problem.general for problem in problems} == {general}
    assert any("names are sizes that vary" in problem.chat[-1]["content"] for problem in problems) == general


def test_long_prompts_are_left_out(dataset: Path, tiny_model: Path) -> None:
    model = LocalModel(str(tiny_model), EvaluationSection(), chat="chatml.jinja")
    with Sandbox(SandboxSettings()) as sandbox:
        problems = read_suite("test", str(dataset), (), 0, sandbox)
        more = read_suite("test", str(dataset), (), 0, sandbox, held_out=0.9)
    assert {problem.id for problem in problems} != {problem.id for problem in more}
    lengths = sorted(model.tokens(problem.chat) for problem in problems)
    assert [model.tokens(each.chat) for each in with_short_prompts(problems, model.tokens, lengths[0], 1)] == lengths[
        :1
    ]
    with pytest.raises(UserError, match="longer than --prompt-tokens 3"):
        with_short_prompts(problems, model.tokens, 3, 0)


class EchoEndpoint(BaseHTTPRequestHandler):
    """Replies with the prompt, and fails after three replies."""

    answered = 0

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).answered += 1
        if self.answered > 3:
            self.send_error(503)
            return
        message = {"role": "assistant", "content": f"{request['model']}: {request['messages'][0]['content']}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {
            "id": "1",
            "created": 0,
            "model": request["model"],
            "choices": [choice],
            "usage": {"completion_tokens": 4},
        }
        raw = json.dumps(body | {"object": "chat.completion", "system_fingerprint": ""}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_endpoint_is_sampled_and_its_failure_is_a_user_error() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), EchoEndpoint)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        model = EndpointModel("m", f"http://127.0.0.1:{server.server_port}/v1", EvaluationSection(), tries=1)
        chats: list[list[Message]] = [[{"role": "user", "content": str(number)}] for number in range(3)]
        assert sorted(each.text for each in model.sample(chats)) == ["m: 0", "m: 1", "m: 2"]
        with pytest.raises(UserError, match="the same command goes on from here"):
            list(model.sample(chats))
    finally:
        server.shutdown()
        server.server_close()


class WithGpu:
    """A sandbox that claims to have a GPU; tracing needs none."""

    gpus = SimpleNamespace(description=SimpleNamespace(target="sm_90"))

    def __init__(self, sandbox: Sandbox) -> None:
        self.run = sandbox.run


@pytest.mark.parametrize(
    ("old", "new", "raises"),
    [
        ("tl.exp(", "tl.expo(", True),  # does not compile
        ("out = torch.empty_like(x)", "out = self.weight", True),
        (
            "out = torch.empty_like(x)",
            "assert x.shape[0] == 4; out = torch.empty_like(x)",
            False,
        ),  # only later calls raise
        ("tl.exp(", "1.001 * tl.exp(", False),
    ],
)
def test_an_exception_in_the_first_call_is_detected_without_running_kernels(
    old: str, new: str, raises: bool, problem: Problem
) -> None:
    code = RIGHT.replace(old, new)
    assert code != RIGHT
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        assert raises_at_once(code, problem.row, WithGpu(sandbox)) is raises  # type: ignore[arg-type]
        assert not raises_at_once(code, problem.row, sandbox)  # without a GPU, KernelBench's check is cheap and is run
