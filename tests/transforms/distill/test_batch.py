"""Batch files: each request is written once, replies are imported into the cache, and other files are rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from distill_factories import make_distill_config, make_teacher
from scripted_endpoint import completion

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.distill import BatchImport, BatchWriter, import_batch
from kernelquarry.transforms.distill.batch import Postponed
from kernelquarry.transforms.distill.cache import Cache, Reply
from kernelquarry.transforms.distill.client import ChatRequest

TABLE = make_distill_config(make_teacher(name="a", batch_price=0.5), make_teacher(name="b"))
REQUESTS = [
    ChatRequest(teacher, (Message(role="user", content="a kernel"),), sample)
    for teacher in TABLE.teachers
    for sample in (0, 1)
]


def fetch(folder: Path) -> list[Reply | Exception]:
    with BatchWriter(folder / "answers.sqlite", folder / "batches") as writer:
        return writer.fetch_all(REQUESTS)


def questions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("batches/*")) for line in file.read_text().splitlines()]


def batch_line(question: dict[str, Any], status: int = 200, body: Any = None) -> str:
    body = json.loads(completion("a kernel of mine")) if body is None else body
    return json.dumps({"custom_id": question["custom_id"], "response": {"status_code": status, "body": body}})


def import_lines(folder: Path, *lines: str) -> BatchImport:
    (folder / "output.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return import_batch(folder / "output.jsonl", TABLE, folder / "answers.sqlite")


def test_requests_are_written_once_and_imported_idempotently(tmp_path: Path) -> None:
    assert all(isinstance(reply, Postponed) for reply in fetch(tmp_path))
    written = questions(tmp_path)
    assert len({question["custom_id"] for question in written}) == len(written) == 4
    lines = [batch_line(question) for question in written]
    assert import_lines(tmp_path, *lines) == import_lines(tmp_path, *lines) == BatchImport(4, 0, 0)
    replies = fetch(tmp_path)
    assert [reply.content for reply in replies if isinstance(reply, Reply)] == ["a kernel of mine"] * 4
    cache = Cache(tmp_path / "answers.sqlite")
    assert cache.spent().usd == pytest.approx(2 * 120e-6 / 2 + 2 * 120e-6)  # teacher `a` has batch_price 0.5
    cache.close()


def test_failed_requests_are_written_again_and_refused_ones_are_not(tmp_path: Path) -> None:
    fetch(tmp_path)
    first, second, third, fourth = questions(tmp_path)
    failed = json.dumps({"custom_id": second["custom_id"], "response": None, "error": {"code": "batch_expired"}})
    malformed = batch_line(fourth, body={"choices": []})
    assert import_lines(
        tmp_path, batch_line(first, 400, "too long"), failed, batch_line(third, 429), malformed
    ) == BatchImport(0, 1, 3)
    refused, *others = fetch(tmp_path)
    assert isinstance(refused, Reply) and refused.finish == "refused"
    assert all(isinstance(reply, Postponed) for reply in others)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]\n", "not the output of a batch"),
        ("teachers = 1\n", "not the output of a batch"),
        ('{"custom_id": "c:0:0", "response": null}\n', "'c:0:0' names no teacher in the table"),
        ('{"custom_id": 7, "response": null}\n', "'7'|7 names no teacher"),
        ('{"custom_id": "a:0:0", "method": "POST", "body": {}}\n', "these are the questions"),
    ],
)
def test_a_file_that_is_no_batch_output_is_rejected(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "output.jsonl").write_text(text)
    with pytest.raises(UserError, match=says):
        import_batch(tmp_path / "output.jsonl", TABLE, tmp_path / "answers.sqlite")
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UserError, match="no such file"):
            import_batch(path, TABLE, tmp_path / "answers.sqlite")
