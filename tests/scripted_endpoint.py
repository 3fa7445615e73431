"""An endpoint over real HTTP that answers by a script, faults included, and counts the tokens that it bills."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Said:
    """One response: its parts and its faults."""

    content: str = "hello"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # in place of a completion
    wait_s: float = 0.0
    cut_at: int | None = None  # bytes of the body after which the connection is cut
    usage: bool = True


Script = Callable[[dict[str, Any], int], Said]  # (request, number of earlier requests) -> response


def completion(content: object, usage: bool = True, **extra: Any) -> bytes:
    counts = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}} if usage else {}
    message = {"role": "assistant", "content": content, **extra}
    return json.dumps(
        {"model": "scripted-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **counts}
    ).encode()


def streamed(content: str) -> Said:
    """A completion as a stream of server-sent events."""
    parts = ({"delta": {"role": "assistant", "content": content}}, {"delta": {}, "finish_reason": "stop"})
    chunk = {"id": "1", "created": 0, "object": "chat.completion.chunk", "model": "scripted-1"}
    events = [json.dumps({**chunk, "choices": [{"index": 0, "finish_reason": None, **part}]}) for part in parts]
    body = "".join(f"data: {event}\n\n" for event in (*events, "[DONE]"))
    return Said(body=body.encode(), headers={"Content-Type": "text/event-stream"})


class ScriptedEndpoint:
    """The endpoint, as a context manager. `url` ends with /v1."""

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or (lambda request, number: Said())
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.sent: Counter[str] = Counter()  # Idempotency-Key -> completions sent whole
        self.in_flight = self.most_in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> ScriptedEndpoint:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> int:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        sent = await request.json()
        number = len(self.requests)
        self.requests.append(sent)
        self.headers.append(request.headers)
        answer = self.script(sent, number)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(answer.wait_s)
        finally:
            self.in_flight -= 1
        body = completion(answer.content, answer.usage) if answer.body is None else answer.body
        if answer.cut_at is not None:
            response = web.StreamResponse(headers={"Content-Length": str(len(body))})
            await response.prepare(request)
            await response.write(body[: answer.cut_at])
            assert request.transport is not None
            request.transport.abort()
            return response
        if answer.status == 200:
            self.sent[request.headers.get("Idempotency-Key", "")] += 1
        return web.Response(status=answer.status, body=body, headers=dict(answer.headers))
