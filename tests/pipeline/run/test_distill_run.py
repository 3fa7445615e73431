"""Distillation in a whole run: off by default, resumed after a kill, through batch files, and shown in the report."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import Said, ScriptedEndpoint, completion
from teaching_table import TABLE

from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.chats import Conversation
from kernelquarry.pipeline.schema.records import Pair, Rejection
from kernelquarry.transforms.distill.cache import Cache
from tests.pipeline.command import Built, Ended, run

Invoke = Callable[..., Ended]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def teach(request: dict[str, Any], number: int) -> Said:
    """Reply without a kernel first; after the rejection, reply with the prompt's kernel and a name for a number."""
    shown = BLOCK.findall(request["messages"][1]["content"])[1]
    if len(request["messages"]) == 2:
        return Said("```python\nimport os\n```")
    code = shown.replace("num_warps=8", "num_warps=WARPS").replace("class ModelNew", "WARPS = 8\n\n\nclass ModelNew")
    return Said(f"```python\n{code}```")


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(teach) as endpoint:
        yield endpoint


@pytest.fixture
def folder(built: Built, tmp_path: Path, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the finished run, and a table of one teacher. Commands run in it."""
    shutil.copytree(built.folder, tmp_path / "copy")
    (tmp_path / "copy" / "teachers.toml").write_text(TABLE.format(url=endpoint.url))
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def build(folder: Path, invoke: Invoke) -> Invoke:
    """A function that repeats the run with further options."""
    corpus = json.loads((folder / "out/layers/run.json").read_text())["corpus"]
    return partial(invoke, "dataset", corpus, "--out", "out/layers")


def rows(folder: Path, config: str, kind: type) -> list[Any]:
    shards = sorted((folder / "out/layers/dataset/data" / config).glob("*.parquet"))
    return [row for shard in shards for row in read_records(shard, kind)]


DISTILLED = ("--distill", "teachers.toml")


def test_models_add_pairs_with_their_provenance(folder: Path, endpoint: ScriptedEndpoint, build: Invoke) -> None:
    ended = build(*DISTILLED)
    assert ended.status == 0, ended.err
    assert ended.out.startswith("4 verified pairs")
    pairs = [pair for pair in rows(folder, "pairs", Pair) if pair.distillation]
    assert len(pairs) == 2
    for pair in pairs:
        (distillation,) = pair.distillation
        assert [turn.reason for turn in distillation.turns] == ["no_code", ""]
        assert distillation.terms == "permits" and distillation.cost_usd == pytest.approx(240e-6)
        assert "WARPS = 8" in pair.triton_code and "near_lowered" in pair.marks
    conversations = rows(folder, "multiturn", Conversation)
    assert [len(row.messages) for row in conversations] == [5, 5]
    assert [row.reasons for row in conversations] == [("no_code", "")] * 2
    assert {row.triton_code for row in rows(folder, "rejected", Rejection) if row.distillation} == {"import os\n"}
    report = (folder / "out/layers/report.html").read_text()
    assert "2 kernels by language models were verified" in report and "scripted · refine · 2" in report
    requests = len(endpoint.requests)
    again = build(*DISTILLED)
    assert "nothing to do" in again.out
    assert len(endpoint.requests) == requests == 4


def test_without_a_table_no_model_is_called(endpoint: ScriptedEndpoint, build: Invoke) -> None:
    assert build(*DISTILLED).status == 0
    requests = len(endpoint.requests)
    off = build()
    assert off.out.startswith("2 verified pairs") and len(endpoint.requests) == requests


def test_answers_from_before_a_kill_are_not_requested_again(
    folder: Path, endpoint: ScriptedEndpoint, build: Invoke
) -> None:
    killed = run("distill", "out/layers", *DISTILLED, cwd=folder, fault="SIGKILL", after=1)
    assert killed.status == -9
    before = dict(endpoint.sent)
    assert build(*DISTILLED).status == 0
    assert before and set(endpoint.sent.values()) == {1}


def test_an_endpoint_that_fails_loses_no_kernel(endpoint: ScriptedEndpoint, build: Invoke, invoke: Invoke) -> None:
    endpoint.script = lambda request, number: Said(status=500)
    ended = build(*DISTILLED)
    assert ended.status == 0 and ended.out.startswith("2 verified pairs")
    assert "Unanswered" in invoke("funnel", "out/layers").out
    endpoint.script = teach
    assert build(*DISTILLED).out.startswith("4 verified pairs")


def test_batches_go_out_and_come_back(folder: Path, endpoint: ScriptedEndpoint, build: Invoke, invoke: Invoke) -> None:
    for _ in range(2):  # the answers, and their repairs
        invoke("distill", "out/layers", *DISTILLED, "--batch", "batches")
        lines = [json.loads(line) for line in (folder / "batches/scripted.jsonl").read_text().splitlines()]
        assert [line["url"] for line in lines] == ["/v1/chat/completions"] * 2
        answers = [
            {
                "custom_id": line["custom_id"],
                "response": {"status_code": 200, "body": json.loads(completion(teach(line["body"], 0).content))},
            }
            for line in lines
        ]
        (folder / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
        done = invoke("import-batch", "answers.jsonl", *DISTILLED)
        assert done.out == "2 answers, 0 refused, 0 to be requested again\n"
    assert build(*DISTILLED).out.startswith("4 verified pairs")
    assert endpoint.requests == []
    cache = Cache(folder / "out/cache/answers.sqlite")
    assert cache.spent().usd == pytest.approx(4 * 120e-6 / 2)
    cache.close()
