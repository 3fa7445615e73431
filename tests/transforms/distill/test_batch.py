"""Files of questions and answers: what is written is what is read, once, and what is no such file is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import completion
from teaching import make_teacher, make_teaching

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.distill import BatchWriter, Imported, import_batch
from kernelquarry.transforms.distill.batch import Postponed
from kernelquarry.transforms.distill.cache import Cache, Reply
from kernelquarry.transforms.distill.client import Ask

TABLE = make_teaching(make_teacher(name="a", batch_price=0.5), make_teacher(name="b"))
ASKS = [
    Ask(teacher, (Message(role="user", content="a kernel"),), sample) for teacher in TABLE.teachers for sample in (0, 1)
]


def ask(folder: Path) -> list[Reply | Exception]:
    with BatchWriter(folder / "answers.sqlite", folder / "batches") as writer:
        return writer.ask_all(ASKS)


def questions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("batches/*")) for line in file.read_text().splitlines()]


def answered(question: dict[str, Any], status: int = 200, body: Any = None) -> str:
    body = json.loads(completion("a kernel of mine")) if body is None else body
    return json.dumps({"custom_id": question["custom_id"], "response": {"status_code": status, "body": body}})


def take(folder: Path, *lines: str) -> Imported:
    (folder / "output.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return import_batch(folder / "output.jsonl", TABLE, folder / "answers.sqlite")


def test_each_question_is_written_once_and_answered_from_the_file(tmp_path: Path) -> None:
    assert all(isinstance(reply, Postponed) for reply in ask(tmp_path))
    asked = questions(tmp_path)
    assert len({question["custom_id"] for question in asked}) == len(asked) == 4
    lines = [answered(question) for question in asked]
    assert take(tmp_path, *lines) == take(tmp_path, *lines) == Imported(4, 0, 0)
    replies = ask(tmp_path)
    assert [reply.content for reply in replies if isinstance(reply, Reply)] == ["a kernel of mine"] * 4
    cache = Cache(tmp_path / "answers.sqlite")
    assert cache.spent().usd == pytest.approx(2 * 120e-6 / 2 + 2 * 120e-6)  # half the price where that was said
    cache.close()


def test_what_the_batch_failed_at_is_asked_again_and_what_it_refused_is_not(tmp_path: Path) -> None:
    ask(tmp_path)
    first, second, third, fourth = questions(tmp_path)
    failed = json.dumps({"custom_id": second["custom_id"], "response": None, "error": {"code": "batch_expired"}})
    odd = answered(fourth, body={"choices": []})
    assert take(tmp_path, answered(first, 400, "too long"), failed, answered(third, 429), odd) == Imported(0, 1, 3)
    refused, *others = ask(tmp_path)
    assert isinstance(refused, Reply) and refused.finish == "refused"
    assert all(isinstance(reply, Postponed) for reply in others)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]\n", "not the output of a batch"),
        ("teachers = 1\n", "not the output of a batch"),
        ('{"custom_id": "c:0:0", "response": null}\n', "'c:0:0' is of no teacher in the table"),
        ('{"custom_id": 7, "response": null}\n', "'7'|7 is of no teacher"),
        ('{"custom_id": "a:0:0", "method": "POST", "body": {}}\n', "these are the questions"),
    ],
)
def test_what_is_no_file_of_answers_is_told_in_a_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "output.jsonl").write_text(text)
    with pytest.raises(UserError, match=says):
        import_batch(tmp_path / "output.jsonl", TABLE, tmp_path / "answers.sqlite")
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UserError, match="no such file"):
            import_batch(path, TABLE, tmp_path / "answers.sqlite")
