"""Asks endpoints: many requests in flight, each paid for once, through rate limits, faults and nights.

    client.ask_all([Ask(teacher, messages, sample), ...])
    client.submit(Ask(teacher, messages, sample)).result()
    for part in client.stream(Ask(teacher, messages, sample)): ...

run in an event loop of its own, so that any number of threads may ask. A reply comes from the cache, or is written
there before it is handed out. Two that ask the same at the same time share one request. Each request carries its key as
`Idempotency-Key`, so that an endpoint that heeds it does not charge for one that was in flight when a run was killed.
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
from types import MappingProxyType, TracebackType
from typing import Any, Protocol

import aiohttp

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import NotYet, UserError

from .budget import Budget
from .cache import Cache, Reply
from .endpoint import Malformed, body_of, read_part, read_reply, refusal, request_of, told_wait, used_up
from .teachers import DistillConfig, Teacher

_LONGEST_WAIT = 60.0  # seconds between two tries that nobody told to wait
_STOPS = {
    401: "the endpoint does not take the key",
    402: "the endpoint wants to be paid first",
    403: "the endpoint does not take the key",
    404: "the endpoint has no such address or model",
}
_AGAIN = frozenset((408, 409, 425))
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")


class Unanswered(NotYet):
    """An endpoint did not answer, however often it was asked."""


class _Failed(Exception):
    """One try failed; `wait_s` is what the endpoint told to wait."""

    def __init__(self, why: str, wait_s: float | None = None, told: bool = False) -> None:
        super().__init__(why)
        self.wait_s, self.told = wait_s, told


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; equal ones with other samples are other requests."""

    teacher: Teacher
    messages: tuple[Message, ...]
    sample: int


class Asks(Protocol):
    """What answers requests: endpoints, or files of batches."""

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply | Exception]: ...


class _Lane:
    """One teacher's requests: so many at once, and none while it told to wait. Used from one event loop."""

    def __init__(self, in_flight: int) -> None:
        self.slots = asyncio.Semaphore(in_flight)
        self._resume_at = 0.0

    def pause(self, seconds: float) -> None:
        self._resume_at = max(self._resume_at, time.monotonic() + seconds)

    async def ready(self) -> None:
        while (left := self._resume_at - time.monotonic()) > 0:
            await asyncio.sleep(left)


class Client:
    """A context manager. Thread-safe."""

    def __init__(self, teaching: DistillConfig, cache: Path | None) -> None:
        """`cache` is the file of replies; None keeps them no longer than the client lives."""
        self._teaching, self._cache = teaching, Cache(cache)
        self._keys = {teacher.name: teacher.key for teacher in teaching.teachers}  # all before anything is paid for
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="distill", daemon=True)
        self._thread.start()
        self._call(self._open())

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply | Exception]:
        """The reply to each, or why there is none: `Unanswered`, `BudgetSpent`.

        Raises: UserError: an endpoint refuses to be asked at all.
        """
        replies: list[Reply | Exception] = self._call(self._ask_all(asks))
        for reply in replies:
            if isinstance(reply, UserError):
                raise reply
        return replies

    def submit(self, ask: Ask) -> Future[Reply]:
        """The reply to come. Raises, when it is asked for its result: Unanswered, BudgetSpent, UserError."""
        return asyncio.run_coroutine_threadsafe(self._ask(ask), self._loop)

    def stream(self, ask: Ask) -> Iterator[str]:
        """An answer in parts, as it is written: for a person who waits. It is neither tried again, nor cached, nor
        charged to the budget.

        Raises: Unanswered, UserError.
        """
        parts = self._streamed(ask)
        try:
            while (part := self._call(_next(parts))) is not None:
                yield part
        finally:
            self._call(_end(parts))

    def close(self) -> None:
        if not self._loop.is_closed():
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._cache.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, coroutine):  # type: ignore[no-untyped-def]  # what the coroutine returns
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._lanes = {teacher.name: _Lane(teacher.in_flight) for teacher in self._teaching.teachers}
        self._budget = Budget(self._teaching.limits, self._cache.spent())
        self._asked: dict[tuple[str, int], asyncio.Task[Reply]] = {}

    async def _close(self) -> None:
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        await self._session.close()

    async def _ask_all(self, asks: Sequence[Ask]) -> list[Reply | BaseException]:
        return await asyncio.gather(*map(self._ask, asks), return_exceptions=True)

    async def _ask(self, ask: Ask) -> Reply:
        body = body_of(ask.teacher, ask.messages)
        request = request_of(ask.teacher, body)
        if (known := self._cache.get(request, ask.sample)) is not None:
            return known
        key = (request, ask.sample)
        if key not in self._asked:
            task = asyncio.ensure_future(self._paid(ask, json.dumps(body).encode(), request))
            self._asked[key] = task
            task.add_done_callback(lambda _: self._asked.pop(key))
        return await self._asked[key]

    async def _paid(self, ask: Ask, payload: bytes, request: str) -> Reply:
        characters = sum(len(message["content"]) for message in ask.messages)
        lane = self._lanes[ask.teacher.name]
        async with lane.slots, self._budget.reserve(ask.teacher, characters) as paid:
            reply = await self._tried(ask, payload, request, characters, lane)
            paid.append(reply)
            self._cache.put(reply)
            return reply

    async def _tried(self, ask: Ask, payload: bytes, request: str, characters: int, lane: _Lane) -> Reply:
        """Raises: Unanswered, UserError."""
        retries, failures, begun = self._teaching.retries, 0, time.monotonic()
        while True:
            await lane.ready()
            try:
                return await self._post(ask, payload, request, characters, lane)
            except (_Failed, Malformed, aiohttp.ClientError, TimeoutError) as error:
                told = isinstance(error, _Failed) and error.told
                failures += not told
                if failures >= retries.tries or time.monotonic() - begun > retries.patience_s:
                    raise Unanswered(f"{_told(ask.teacher, error)} ({failures} failures)") from error
                wait = error.wait_s if isinstance(error, _Failed) else None
                if wait is None:
                    wait = min(_LONGEST_WAIT, retries.first_wait_s * 2 ** max(0, failures - 1)) * random.uniform(
                        0.5, 1.5
                    )
                if told:
                    lane.pause(wait)
                else:
                    await asyncio.sleep(wait)

    async def _streamed(self, ask: Ask) -> AsyncGenerator[str, None]:
        body = body_of(ask.teacher, ask.messages) | {"stream": True}
        try:
            async with self._session.post(json=body, **self._sent(ask.teacher)) as response:
                if response.status != 200:
                    raise Unanswered(_not_answered(response, await response.read(), ask, "").content)
                async for line in response.content:
                    yield read_part(line)
        except (_Failed, Malformed, aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(_told(ask.teacher, error)) from error

    async def _post(self, ask: Ask, payload: bytes, request: str, characters: int, lane: _Lane) -> Reply:
        sent = self._sent(ask.teacher, {"Idempotency-Key": f"{request}-{ask.sample}"})
        async with self._session.post(data=payload, **sent) as response:
            raw = await _read(response, self._teaching.retries.most_bytes)
            if pause := used_up(response.headers):
                lane.pause(pause)
            if response.status != 200:
                return _not_answered(response, raw or b"", ask, request)
        if raw is None:
            most = self._teaching.retries.most_bytes
            return refusal(ask.teacher, request, ask.sample, f"the reply is longer than {most:,} bytes")
        return read_reply(raw, ask.teacher, request, ask.sample, characters)

    def _sent(self, teacher: Teacher, headers: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
        """Where a request goes, and with what."""
        key = self._keys[teacher.name]
        return {
            "url": f"{teacher.url.rstrip('/')}/chat/completions",
            "headers": {
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {key}"} if key else {}),
                **headers,
            },
            "timeout": aiohttp.ClientTimeout(total=teacher.timeout_s, sock_connect=min(30.0, teacher.timeout_s)),
        }


def _told(teacher: Teacher, error: Exception) -> str:
    return f"{teacher.name}: {type(error).__name__.lstrip('_')}: {error}"[:500]


async def _next(parts: AsyncGenerator[str, None]) -> str | None:
    return await anext(parts, None)


async def _end(parts: AsyncGenerator[str, None]) -> None:
    await parts.aclose()


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """The whole body; None if it is longer than `most`."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            return None
    return b"".join(parts)


def _not_answered(response: aiohttp.ClientResponse, raw: bytes, ask: Ask, request: str) -> Reply:
    """A refusal, if asking again would not help.

    Raises: _Failed: it may. UserError: no request to this endpoint has a chance.
    """
    status, text = response.status, " ".join(raw[:2000].decode(errors="replace").split())[:300]
    if status in _STOPS or (status == 429 and any(word in text for word in _QUOTA)):
        said = _STOPS.get(status, "its quota is used up")
        raise UserError(f"teacher {ask.teacher.name}: {said} (HTTP {status}): {text}")
    if status == 429 or status == 503:
        wait = told_wait(response.headers)
        raise _Failed(f"HTTP {status}: {text}", wait, told=wait is not None or status == 429)
    if status >= 500 or status in _AGAIN:
        raise _Failed(f"HTTP {status}: {text}", told_wait(response.headers))
    return refusal(ask.teacher, request, ask.sample, f"HTTP {status}: {text}")
