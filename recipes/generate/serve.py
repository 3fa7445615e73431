"""The OpenAI-compatible server of `kernelquarry serve MODEL`, so that our own models can be teachers.

POST /v1/chat/completions    an answer; a streamed answer comes in one part
GET  /v1/models              the model
GET  /health                 200 once the server is ready

Concurrent requests share the decoder's slots. Unsupported settings of a request are rejected, not ignored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError

from .decoder import Decoder, Sampling
from .models import chat_tokenizer, end_tokens, load_model, resolve

_logger = logging.getLogger(__name__)
NEW_TOKENS = 2048  # limit of an answer if the request has none
_MOST_BYTES = 16 << 20  # of a request

_Queue = deque[tuple["asyncio.Future[list[int]]", Sequence[int]]]


class _Turn(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class _Request(BaseModel):
    """The supported part of a chat completion request."""

    model_config = ConfigDict(extra="forbid")
    model: str
    messages: Annotated[list[_Turn], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1, validation_alias=AliasChoices("max_tokens", "max_completion_tokens"))] = (
        NEW_TOKENS
    )
    temperature: Annotated[float, Field(ge=0, le=10)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    stream: bool = False
    n: Literal[1] = 1


class SlotModel:
    """A transformers model with full attention in all layers, with its tokenizer and decoder."""

    def __init__(self, model: str, name: str, chat: str, slots: int, context: int) -> None:
        """`context`: most tokens of a prompt and its answer.

        Raises: UserError: there is no such model, or a layer has another attention.
        """
        import torch

        path = resolve(model)
        self._tokenizer = chat_tokenizer(path, chat)
        device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
        loaded = load_model(path, dtype=dtype)
        if not _has_full_attention(loaded.config):
            raise UserError(f"{model} has layers without full attention: serve it with vLLM or transformers")
        torch.seed()
        self.name = name or model
        self._model, self._slots = loaded.to(device).eval(), slots
        self._room = min(context, loaded.config.max_position_embeddings)
        self._ends = {*end_tokens(loaded.generation_config), self._tokenizer.eos_token_id}
        self._decoder: tuple[Sampling, Decoder] | None = None

    def encode(self, messages: Sequence[Message], new_tokens: int) -> list[int]:
        """The tokens of a prompt. Raises: ValueError: prompt and answer exceed the context."""
        text = self._tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(tokens) + new_tokens > self._room:
            wanted = f"{len(tokens)} tokens of the prompt and {new_tokens} of the answer"
            raise ValueError(f"{wanted} are more than this server's {self._room}")
        return tokens

    def decoder(self, sampling: Sampling) -> Decoder:
        """A decoder with these sampling parameters; the last one is reused if they are the same."""
        if self._decoder is None or self._decoder[0] != sampling:
            self._decoder = None  # free its cache before the next is allocated
            self._decoder = sampling, Decoder(self._model, self._ends, self._slots, self._room, sampling)
        return self._decoder[1]

    def decode(self, tokens: Sequence[int]) -> tuple[str, str]:
        """The text of an answer, and its finish reason: "stop" or "length"."""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text, "stop" if tokens[-1] in self._ends else "length"


class Server:
    """Answers requests in order of arrival; consecutive requests with equal sampling parameters are batched."""

    def __init__(self, model: SlotModel) -> None:
        self._model = model
        self._batches: deque[tuple[Sampling, _Queue]] = deque()
        self._arrived, self._stopped = asyncio.Event(), threading.Event()
        self._thread = ThreadPoolExecutor(1)  # one thread, since CUDA graphs belong to the thread that captured them

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        return app

    async def run(self) -> None:
        """Answer requests until cancelled. An exception of the model ends the server."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._arrived.wait()
                while self._batches:
                    sampling, waiting = self._batches[0]
                    await loop.run_in_executor(self._thread, self._write, sampling, waiting, loop)
                    if not waiting:
                        self._batches.popleft()
                self._arrived.clear()
        finally:
            self._stopped.set()

    def _write(self, sampling: Sampling, waiting: _Queue, loop: asyncio.AbstractEventLoop) -> None:
        """Answer a batch, and requests that join it meanwhile. Runs in the decoder's thread."""
        started, answers, tokens = time.monotonic(), 0, 0
        for ended in self._model.decoder(sampling).feed(waiting):
            if self._stopped.is_set():
                return
            for future, written in ended:
                answers, tokens = answers + 1, tokens + len(written)
                loop.call_soon_threadsafe(_set_result, future, written)
        seconds = time.monotonic() - started
        _logger.info("%d answers of %d tokens in %.1f s, %.0f a second", answers, tokens, seconds, tokens / seconds)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            chat = _Request.model_validate_json(await request.read())
        except ValidationError as error:
            first = error.errors()[0]
            return _rejected(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        if chat.model != self._model.name:
            return _rejected(404, f"this server has the model {self._model.name!r}, and not {chat.model!r}")
        try:
            messages = [Message(role=turn.role, content=turn.content) for turn in chat.messages]
            prompt = self._model.encode(messages, chat.max_tokens)
        except ValueError as error:
            return _rejected(400, str(error))
        tokens = await self._answer(prompt, Sampling(chat.temperature, chat.top_p, chat.max_tokens))
        text, finish = self._model.decode(tokens)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)}
        usage["total_tokens"] = len(prompt) + len(tokens)
        body = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": chat.model, "usage": usage}
        choice = {"index": 0, "finish_reason": finish}
        message = {"role": "assistant", "content": text}
        if chat.stream:
            part = body | {"object": "chat.completion.chunk", "choices": [choice | {"delta": message}]}
            lines = f"data: {json.dumps(part)}\n\ndata: [DONE]\n\n"
            return web.Response(text=lines, content_type="text/event-stream")
        return web.json_response(body | {"object": "chat.completion", "choices": [choice | {"message": message}]})

    async def _answer(self, prompt: Sequence[int], sampling: Sampling) -> list[int]:
        future: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        if not self._batches or self._batches[-1][0] != sampling:
            self._batches.append((sampling, deque()))
        self._batches[-1][1].append((future, prompt))
        self._arrived.set()
        return await future

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self._model.name, "object": "model"}]})

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})


def _has_full_attention(config: Any) -> bool:
    kinds = getattr(config, "layer_types", None)
    return set(kinds) == {"full_attention"} if kinds else getattr(config, "sliding_window", None) is None


def _set_result(future: asyncio.Future[list[int]], tokens: list[int]) -> None:
    if not future.done():  # it is done if the client has disconnected
        future.set_result(tokens)


def _rejected(status: int, why: str) -> web.Response:
    return web.json_response({"error": {"message": why, "type": "invalid_request_error"}}, status=status)


async def serve(model: SlotModel, host: str, port: int) -> None:
    """Serve until cancelled. Raises: UserError: the address is taken."""
    server = Server(model)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        _logger.warning("%s answers at http://%s:%d/v1", model.name, *runner.addresses[0][:2])
        await server.run()
    except OSError as error:
        raise UserError(f"{host}:{port}: {error.strerror or error}: give another --port") from None
    finally:
        await runner.cleanup()
