"""Questions as files for batch endpoints, in OpenAI's format, and their answers back into the cache.

A run with a folder for batches asks nobody: what the cache does not know is written to `<folder>/<teacher>.jsonl`, and
its modules wait. Once the answers are in the cache, the same run goes on; turns of repair are the batches that follow.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from kernelquarry.pipeline.schema.errors import NotYet, UserError
from kernelquarry.pipeline.schema.files import replace_file

from .cache import Cache, Reply
from .client import Ask
from .endpoint import Malformed, body_of, read_reply, refusal, request_of
from .teachers import DistillConfig, Teacher

_ENDPOINT = "/v1/chat/completions"


class Postponed(NotYet):
    """The question waits for its batch."""


class BatchWriter:
    """Answers from the cache; what is not there is written, when the context ends, to a file for each teacher."""

    def __init__(self, cache: Path, folder: Path) -> None:
        self._cache, self._folder, self._lock = Cache(cache), folder, threading.Lock()
        self._lines: dict[str, dict[str, str]] = {}  # teacher -> id -> line

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply | Exception]:
        return [self._ask(ask) for ask in asks]

    def _ask(self, ask: Ask) -> Reply | Exception:
        body = body_of(ask.teacher, ask.messages)
        request = request_of(ask.teacher, body)
        if (known := self._cache.get(request, ask.sample)) is not None:
            return known
        id = f"{ask.teacher.name}:{request}:{ask.sample}"
        line = {"custom_id": id, "method": "POST", "url": _ENDPOINT, "body": body}
        with self._lock:
            self._lines.setdefault(ask.teacher.name, {})[id] = json.dumps(line)
        return Postponed("waits for its batch")

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cache.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        for teacher, lines in self._lines.items():
            with replace_file(self._folder / f"{teacher}.jsonl") as stream:
                stream.write("".join(f"{line}\n" for _, line in sorted(lines.items())).encode())


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file of answers held."""

    answers: int
    refused: int
    failed: int  # errors of the batch, to be asked again by the next


def import_batch(file: Path, teaching: DistillConfig, cache: Path) -> Imported:
    """Put the answers of a finished batch into the cache, at the batch's price. Doing so twice changes nothing.

    Raises: UserError: the file is no such file, or of a teacher who is not in the table.
    """
    teachers = {teacher.name: teacher for teacher in teaching.teachers}
    known, answers, refused, failed = Cache(cache), 0, 0, 0
    try:
        for number, line in _lines(file):
            if "body" in line and "response" not in line:
                raise UserError(f"{file}: these are the questions; give the file of answers that the endpoint made")
            teacher, request, sample = _id(line, teachers, f"{file}:{number}")
            reply = _reply(line, teacher, request, sample)
            if reply is None:
                failed += 1
                continue
            known.put(reply)
            refused += reply.finish == "refused"
            answers += reply.finish != "refused"
    finally:
        known.close()
    return Imported(answers, refused, failed)


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    line = json.loads(text)
                    if not isinstance(line, dict):
                        raise ValueError("no object")
                    yield number, line
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(f"{file}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not the output of a batch, which is JSON in lines: {error}") from None


def _id(line: dict[str, Any], teachers: dict[str, Teacher], place: str) -> tuple[Teacher, str, int]:
    name, _, rest = str(line.get("custom_id", "")).partition(":")
    request, _, sample = rest.partition(":")
    if name not in teachers or not request or not sample.isdecimal():
        raise UserError(f"{place}: custom_id {line.get('custom_id')!r} is of no teacher in the table")
    return teachers[name], request, int(sample)


def _reply(line: dict[str, Any], teacher: Teacher, request: str, sample: int) -> Reply | None:
    """None if the batch failed to ask."""
    response = line.get("response")
    if not isinstance(response, dict):
        return None
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        permanent = (
            isinstance(status, int) and 400 <= status < 500 and status not in (401, 402, 403, 404, 408, 409, 429)
        )
        return refusal(teacher, request, sample, f"HTTP {status}: {str(body)[:300]}") if permanent else None
    price = {
        "usd_per_million_input": teacher.usd_per_million_input * teacher.batch_price,
        "usd_per_million_output": teacher.usd_per_million_output * teacher.batch_price,
    }
    try:
        return read_reply(json.dumps(body), teacher.model_copy(update=price), request, sample, 0)
    except Malformed:
        return None
