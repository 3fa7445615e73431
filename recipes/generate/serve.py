"""A model behind OpenAI's chat completions, so that our own can be asked as teachers are: `kernelquarry serve MODEL`.

POST /v1/chat/completions    an answer; one that is asked for as a stream comes in one part
GET  /v1/models              the model
GET  /health                 200 as soon as it answers

All that is asked at once is written at once, by slots (`decoder`). What a request asks for that is not done here is
refused, and not ignored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError

from .decoder import Decoder, Sampling
from .models import chat_tokenizer, packaged_chat, resolve

_logger = logging.getLogger(__name__)
NEW_TOKENS = 2048  # of an answer whose request does not say
_LARGEST = 16 << 20  # bytes of a request

_Waiting = deque[tuple["asyncio.Future[list[int]]", Sequence[int]]]


class _Turn(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class _Request(BaseModel):
    """What may be asked for."""

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


class SlotWriter:
    """A model of transformers whose layers are all full attention."""

    def __init__(self, model: str, name: str, chat: str, slots: int, context: int) -> None:
        """Raises: UserError: there is no such model, or it has other layers."""
        import torch
        from transformers import AutoModelForCausalLM

        path = resolve(model)
        self._tokenizer = chat_tokenizer(path, chat or packaged_chat(model))
        device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
        try:
            loaded: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
        except (OSError, ValueError) as error:
            raise UserError(f"{model}: no model: {str(error).strip().splitlines()[0]}") from None
        if not _attends_to_all(loaded.config):
            raise UserError(f"{model} has layers without full attention: serve it with vLLM or transformers")
        torch.seed()
        self.name = name or model
        self._model, self._slots = loaded.to(device).eval(), slots
        self._room = min(context, loaded.config.max_position_embeddings)
        ends = loaded.generation_config.eos_token_id
        self._ends: Collection[int] = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id}
        self._made: tuple[Sampling, Decoder] | None = None

    def read(self, messages: Sequence[Message], new_tokens: int) -> list[int]:
        """The tokens of a prompt. Raises: ValueError: they and the answer have no room."""
        text = self._tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(tokens) + new_tokens > self._room:
            told = f"{len(tokens)} tokens of the prompt and {new_tokens} of the answer"
            raise ValueError(f"{told} are more than this server's {self._room}")
        return tokens

    def decoder(self, sampling: Sampling) -> Decoder:
        if self._made is None or self._made[0] != sampling:
            self._made = None  # its cache first
            self._made = sampling, Decoder(self._model, self._ends, self._slots, self._room, sampling)
        return self._made[1]

    def told(self, tokens: Sequence[int]) -> tuple[str, str]:
        """The text of an answer, and why it ended: "stop" or "length"."""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text, "stop" if tokens[-1] in self._ends else "length"


class Server:
    """Answers requests in the order of their coming; those in a row that are sampled alike are written together."""

    def __init__(self, writer: SlotWriter) -> None:
        self._writer = writer
        self._rounds: deque[tuple[Sampling, _Waiting]] = deque()
        self._asked, self._stopped = asyncio.Event(), threading.Event()
        self._thread = ThreadPoolExecutor(1)  # a GPU's graphs stay with one

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        return app

    async def run(self) -> None:
        """Write until cancelled. What goes wrong in a model ends the server."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._asked.wait()
                while self._rounds:
                    sampling, waiting = self._rounds[0]
                    await loop.run_in_executor(self._thread, self._write, sampling, waiting, loop)
                    if not waiting:
                        self._rounds.popleft()
                self._asked.clear()
        finally:
            self._stopped.set()

    def _write(self, sampling: Sampling, waiting: _Waiting, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: all of a round, and what joins it meanwhile."""
        begun, answers, tokens = time.monotonic(), 0, 0
        for ended in self._writer.decoder(sampling).feed(waiting):
            if self._stopped.is_set():
                return
            for future, written in ended:
                answers, tokens = answers + 1, tokens + len(written)
                loop.call_soon_threadsafe(_give, future, written)
        seconds = time.monotonic() - begun
        _logger.info("%d answers of %d tokens in %.1f s, %.0f a second", answers, tokens, seconds, tokens / seconds)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = _Request.model_validate_json(await request.read())
        except ValidationError as error:
            first = error.errors()[0]
            return _refused(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        if asked.model != self._writer.name:
            return _refused(404, f"this server has the model {self._writer.name!r}, and not {asked.model!r}")
        try:
            messages = [Message(role=turn.role, content=turn.content) for turn in asked.messages]
            prompt = self._writer.read(messages, asked.max_tokens)
        except ValueError as error:
            return _refused(400, str(error))
        tokens = await self._answer(prompt, Sampling(asked.temperature, asked.top_p, asked.max_tokens))
        text, finish = self._writer.told(tokens)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)}
        usage["total_tokens"] = len(prompt) + len(tokens)
        body = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": asked.model, "usage": usage}
        choice = {"index": 0, "finish_reason": finish}
        message = {"role": "assistant", "content": text}
        if asked.stream:
            part = body | {"object": "chat.completion.chunk", "choices": [choice | {"delta": message}]}
            lines = f"data: {json.dumps(part)}\n\ndata: [DONE]\n\n"
            return web.Response(text=lines, content_type="text/event-stream")
        return web.json_response(body | {"object": "chat.completion", "choices": [choice | {"message": message}]})

    async def _answer(self, prompt: Sequence[int], sampling: Sampling) -> list[int]:
        future: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        if not self._rounds or self._rounds[-1][0] != sampling:
            self._rounds.append((sampling, deque()))
        self._rounds[-1][1].append((future, prompt))
        self._asked.set()
        return await future

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self._writer.name, "object": "model"}]})

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})


def _attends_to_all(config: Any) -> bool:
    kinds = getattr(config, "layer_types", None)
    return set(kinds) == {"full_attention"} if kinds else getattr(config, "sliding_window", None) is None


def _give(future: asyncio.Future[list[int]], tokens: list[int]) -> None:
    if not future.done():  # nobody waits any more
        future.set_result(tokens)


def _refused(status: int, why: str) -> web.Response:
    return web.json_response({"error": {"message": why, "type": "invalid_request_error"}}, status=status)


async def serve(writer: SlotWriter, host: str, port: int) -> None:
    """Until cancelled. Raises: UserError: the address is taken."""
    server = Server(writer)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        place = runner.addresses[0]
        _logger.warning("%s answers at http://%s:%d/v1", writer.name, place[0], place[1])
        await server.run()
    except OSError as error:
        raise UserError(f"{host}:{port}: {error.strerror or error}: give another --port") from None
    finally:
        await runner.cleanup()
