"""Batch files in OpenAI's format: write the open requests, and import the replies into the cache.

A run with a batch folder sends no request. It writes requests that the cache cannot answer to
`<folder>/<teacher>.jsonl` and postpones their modules. After the replies are imported, the same command continues;
repair turns become the next batch.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import NotYet, UserError
from kernelquarry.pipeline.schema.files import write_text

from .cache import Cache, Reply
from .client import ChatRequest
from .endpoint import Malformed, build_body, hash_request, read_reply, refused_reply
from .teachers import DistillConfig, Teacher

_ENDPOINT = "/v1/chat/completions"
_RETRYABLE = (401, 402, 403, 404, 408, 409, 429)  # 4xx statuses that another batch may not have


class Postponed(NotYet):
    """The request is in a batch file and has no reply yet."""


class BatchWriter:
    """A context manager that replies from the cache, and on exit writes one file of open requests for each teacher."""

    def __init__(self, cache: Path, folder: Path) -> None:
        self._cache, self._folder, self._lock = Cache(cache), folder, threading.Lock()
        self._lines: dict[str, dict[str, str]] = {}  # teacher -> id -> line

    def fetch_all(self, requests: Sequence[ChatRequest]) -> list[Reply | Exception]:
        """The cached reply to each request; `Postponed` where the cache has none."""
        return [self._fetch(request) for request in requests]

    def _fetch(self, request: ChatRequest) -> Reply | Exception:
        teacher, body = request.teacher, build_body(request.teacher, request.messages)
        key = hash_request(teacher, body)
        if (cached := self._cache.get(key, request.sample)) is not None:
            return cached
        id = f"{teacher.name}:{key}:{request.sample}"
        line = {"custom_id": id, "method": "POST", "url": _ENDPOINT, "body": body}
        with self._lock:
            self._lines.setdefault(teacher.name, {})[id] = json.dumps(line)
        return Postponed("waits for its batch")

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._cache.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        for teacher, lines in self._lines.items():
            text = "".join(f"{line}\n" for _, line in sorted(lines.items()))
            write_text(self._folder / f"{teacher}.jsonl", text)


@dataclass(frozen=True, slots=True)
class BatchImport:
    """Number of replies in a batch's output file, by kind."""

    answers: int
    refused: int
    failed: int  # errors of the batch itself; the next run writes these requests again


def import_batch(file: Path, config: DistillConfig, cache: Path) -> BatchImport:
    """Put the replies of a finished batch into the cache, at the batch's price. Importing twice changes nothing.

    Raises:
        UserError: `file` is no batch output, or has replies of a teacher who is not in `config`.
    """
    teachers = {teacher.name: teacher for teacher in config.teachers}
    replies, answers, refused, failed = Cache(cache), 0, 0, 0
    try:
        for number, line in _read_lines(file):
            if "body" in line and "response" not in line:
                raise UserError(f"{file}: these are the questions; give the file of answers that the endpoint made")
            reply = _parse_reply(line, *_parse_id(line, teachers, f"{file}:{number}"))
            if reply is None:
                failed += 1
                continue
            replies.put(reply)
            refused += reply.finish == "refused"
            answers += reply.finish != "refused"
    finally:
        replies.close()
    return BatchImport(answers, refused, failed)


def _read_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    line = json.loads(text)
                    if not isinstance(line, dict):
                        raise ValueError("no object")
                    yield number, line
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(f"{file}: no such file: give the output file of a batch") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not the output of a batch, which is JSON in lines: {error}") from None


def _parse_id(line: dict[str, Any], teachers: dict[str, Teacher], place: str) -> tuple[Teacher, str, int]:
    name, _, rest = str(line.get("custom_id", "")).partition(":")
    request, _, sample = rest.partition(":")
    if name not in teachers or not request or not sample.isdecimal():
        raise UserError(
            f"{place}: custom_id {line.get('custom_id')!r} names no teacher in the table: "
            "give the table that the questions were written with"
        )
    return teachers[name], request, int(sample)


def _parse_reply(line: dict[str, Any], teacher: Teacher, request: str, sample: int) -> Reply | None:
    """The reply in one line of a batch's output; None if the request failed and is worth another batch."""
    response = line.get("response")
    if not isinstance(response, dict):
        return None
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        is_permanent = isinstance(status, int) and 400 <= status < 500 and status not in _RETRYABLE
        return refused_reply(teacher, request, sample, f"HTTP {status}: {str(body)[:300]}") if is_permanent else None
    price = {
        "usd_per_million_input": teacher.usd_per_million_input * teacher.batch_price,
        "usd_per_million_output": teacher.usd_per_million_output * teacher.batch_price,
    }
    try:
        return read_reply(json.dumps(body), teacher.model_copy(update=price), request, sample, 0)
    except Malformed:
        return None
