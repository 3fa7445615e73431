"""A client for chat endpoints: concurrent requests, a budget, retries, rate limits, and a cache of paid replies.

    client.fetch_all([ChatRequest(teacher, messages, sample), ...])
    client.submit(ChatRequest(teacher, messages, sample)).result()
    for part in client.stream(ChatRequest(teacher, messages, sample)): ...

The client runs its own event loop in a thread, and any number of threads may call it. Equal requests in flight share
one HTTP request. Each HTTP request carries its cache key as `Idempotency-Key`, so that an endpoint that supports the
header does not charge twice for a request that was in flight when a run was killed.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import aiohttp

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.closing import Closing
from kernelquarry.pipeline.schema.errors import NotYet, UserError

from .budget import Budget
from .cache import Cache, Reply
from .endpoint import (
    Malformed,
    build_body,
    hash_request,
    rate_limit_reset_s,
    read_part,
    read_reply,
    refused_reply,
    retry_after_s,
)
from .teachers import DistillConfig, Teacher

_LONGEST_WAIT_S = 60.0  # between two tries, where the endpoint does not say how long to wait
_FATAL = {
    401: "the endpoint does not take the key",
    402: "the endpoint wants to be paid first",
    403: "the endpoint does not take the key",
    404: "the endpoint has no such address or model",
}
_RETRYABLE = frozenset((408, 409, 425))
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")


class Unanswered(NotYet):
    """The endpoint gave no reply within the configured retries."""


class _Failed(Exception):
    """One try failed. `wait_s`: how long the endpoint says to wait; `throttled`: the try counts as no failure."""

    def __init__(self, why: str, wait_s: float | None = None, throttled: bool = False) -> None:
        super().__init__(why)
        self.wait_s, self.throttled = wait_s, throttled


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request. Equal messages with different samples are different requests."""

    teacher: Teacher
    messages: tuple[Message, ...]
    sample: int


class ReplySource(Protocol):
    """A source of replies: a client of endpoints, or a writer of batch files."""

    def fetch_all(self, requests: Sequence[ChatRequest]) -> list[Reply | Exception]: ...


class _TeacherQueue:
    """Limits one teacher's requests in flight, and pauses them on request. For use from one event loop."""

    def __init__(self, in_flight: int) -> None:
        self.slots = asyncio.Semaphore(in_flight)
        self._resume_at = 0.0

    def pause(self, seconds: float) -> None:
        self._resume_at = max(self._resume_at, time.monotonic() + seconds)

    async def ready(self) -> None:
        while (left := self._resume_at - time.monotonic()) > 0:
            await asyncio.sleep(left)


class Client(Closing):
    """A thread-safe context manager that sends requests to the teachers' endpoints."""

    def __init__(self, config: DistillConfig, cache: Path | None) -> None:
        """`cache`: file of the reply cache; None keeps replies only as long as the client lives.

        Raises:
            UserError: the environment lacks a teacher's API key.
        """
        self._config, self._cache = config, Cache(cache)
        self._keys = {teacher.name: teacher.key for teacher in config.teachers}  # all read before anything is paid for
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="distill", daemon=True)
        self._thread.start()
        self._call(self._open())

    def fetch_all(self, requests: Sequence[ChatRequest]) -> list[Reply | Exception]:
        """The reply to each request; `Unanswered` or `BudgetSpent` where there is none.

        Raises:
            UserError: an endpoint rejects every request: wrong key, used-up quota, unknown model.
        """
        replies: list[Reply | Exception] = self._call(self._fetch_all(requests))
        for reply in replies:
            if isinstance(reply, UserError):
                raise reply
        return replies

    def submit(self, request: ChatRequest) -> Future[Reply]:
        """Send a request. The future's `result()` raises Unanswered, BudgetSpent or UserError."""
        return asyncio.run_coroutine_threadsafe(self._fetch(request), self._loop)

    def stream(self, request: ChatRequest) -> Iterator[str]:
        """The parts of an answer as the endpoint writes them, for interactive use: no retry, no cache, no budget.

        Raises: Unanswered, UserError.
        """
        parts = self._stream(request)
        try:
            while (part := self._call(_next(parts))) is not None:
                yield part
        finally:
            self._call(_close(parts))

    def close(self) -> None:
        if not self._loop.is_closed():
            self._call(self._cancel_requests())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._cache.close()

    def _call(self, coroutine):  # type: ignore[no-untyped-def]  # the coroutine's result
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._queues = {teacher.name: _TeacherQueue(teacher.in_flight) for teacher in self._config.teachers}
        self._budget = Budget(self._config.limits, self._cache.spent())
        self._in_flight: dict[tuple[str, int], asyncio.Task[Reply]] = {}

    async def _cancel_requests(self) -> None:
        for task in self._in_flight.values():
            task.cancel()
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)
        await self._session.close()

    async def _fetch_all(self, requests: Sequence[ChatRequest]) -> list[Reply | BaseException]:
        return await asyncio.gather(*map(self._fetch, requests), return_exceptions=True)

    async def _fetch(self, request: ChatRequest) -> Reply:
        body = build_body(request.teacher, request.messages)
        key = hash_request(request.teacher, body), request.sample
        if (cached := self._cache.get(*key)) is not None:
            return cached
        if key not in self._in_flight:
            task = asyncio.ensure_future(self._pay(request, json.dumps(body).encode(), key[0]))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key))
        return await self._in_flight[key]

    async def _pay(self, request: ChatRequest, payload: bytes, key: str) -> Reply:
        characters = sum(len(message["content"]) for message in request.messages)
        queue = self._queues[request.teacher.name]
        async with queue.slots, self._budget.reserve(request.teacher, characters) as paid:
            reply = await self._retry(request, payload, key, characters, queue)
            paid.append(reply)
            self._cache.put(reply)
            return reply

    async def _retry(
        self, request: ChatRequest, payload: bytes, key: str, characters: int, queue: _TeacherQueue
    ) -> Reply:
        """Send until there is a reply. Raises: Unanswered, UserError."""
        retries, failures, started = self._config.retries, 0, time.monotonic()
        while True:
            await queue.ready()
            try:
                return await self._post(request, payload, key, characters, queue)
            except (_Failed, Malformed, aiohttp.ClientError, TimeoutError) as error:
                wait_s, throttled = (error.wait_s, error.throttled) if isinstance(error, _Failed) else (None, False)
                failures += not throttled
                if failures >= retries.tries or time.monotonic() - started > retries.patience_s:
                    raise Unanswered(f"{_describe(request.teacher, error)} ({failures} failures)") from error
                if wait_s is None:
                    backoff_s = retries.first_wait_s * 2 ** max(0, failures - 1)
                    wait_s = min(_LONGEST_WAIT_S, backoff_s) * random.uniform(0.5, 1.5)
                if throttled:
                    queue.pause(wait_s)
                else:
                    await asyncio.sleep(wait_s)

    async def _stream(self, request: ChatRequest) -> AsyncGenerator[str, None]:
        body = build_body(request.teacher, request.messages) | {"stream": True}
        try:
            async with self._session.post(json=body, **self._arguments(request.teacher)) as response:
                if response.status != 200:
                    raise Unanswered(_read_error(response, await response.read(), request, "").content)
                async for line in response.content:
                    yield read_part(line)
        except (_Failed, Malformed, aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(_describe(request.teacher, error)) from error

    async def _post(
        self, request: ChatRequest, payload: bytes, key: str, characters: int, queue: _TeacherQueue
    ) -> Reply:
        arguments = self._arguments(request.teacher, {"Idempotency-Key": f"{key}-{request.sample}"})
        most = self._config.retries.most_bytes
        async with self._session.post(data=payload, **arguments) as response:
            raw = await _read_body(response, most)
            if pause_s := rate_limit_reset_s(response.headers):
                queue.pause(pause_s)
            if response.status != 200:
                return _read_error(response, raw or b"", request, key)
        if raw is None:
            return refused_reply(request.teacher, key, request.sample, f"the reply is longer than {most:,} bytes")
        return read_reply(raw, request.teacher, key, request.sample, characters)

    def _arguments(self, teacher: Teacher, headers: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
        """Arguments of aiohttp's `post`, without the body."""
        key = self._keys[teacher.name]
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        return {
            "url": f"{teacher.url.rstrip('/')}/chat/completions",
            "headers": {"Content-Type": "application/json", **authorization, **headers},
            "timeout": aiohttp.ClientTimeout(total=teacher.timeout_s, sock_connect=min(30.0, teacher.timeout_s)),
        }


def _describe(teacher: Teacher, error: Exception) -> str:
    return f"{teacher.name}: {type(error).__name__.lstrip('_')}: {error}"[:500]


async def _next(parts: AsyncGenerator[str, None]) -> str | None:
    return await anext(parts, None)


async def _close(parts: AsyncGenerator[str, None]) -> None:
    await parts.aclose()


async def _read_body(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """The whole body; None if it is longer than `most` bytes."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > most:
            return None
    return bytes(body)


def _read_error(response: aiohttp.ClientResponse, raw: bytes, request: ChatRequest, key: str) -> Reply:
    """A refused reply, for an HTTP error that a retry would not change.

    Raises:
        _Failed: a retry may succeed.
        UserError: no request to this endpoint can succeed.
    """
    status, text = response.status, " ".join(raw[:2000].decode(errors="replace").split())[:300]
    if status in _FATAL or (status == 429 and any(word in text for word in _QUOTA)):
        why = _FATAL.get(status, "its quota is used up")
        raise UserError(f"teacher {request.teacher.name}: {why} (HTTP {status}): {text}")
    if status in (429, 503):
        wait_s = retry_after_s(response.headers)
        raise _Failed(f"HTTP {status}: {text}", wait_s, throttled=wait_s is not None or status == 429)
    if status >= 500 or status in _RETRYABLE:
        raise _Failed(f"HTTP {status}: {text}", retry_after_s(response.headers))
    return refused_reply(request.teacher, key, request.sample, f"HTTP {status}: {text}")
