"""The server: replies equal those of transformers, and it works as a teacher of `distill`."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from aiohttp import web
from corpus import load_case
from factories import make_verdict
from transformers import AutoModelForCausalLM

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.provenance import TermsClass
from kernelquarry.pipeline.schema.records import Verified
from kernelquarry.recipes.config import EvaluationSection
from kernelquarry.recipes.generate.samplers import EndpointModel
from kernelquarry.recipes.generate.serve import Server, SlotModel, serve
from kernelquarry.transforms.distill import Client, TeacherSession, distill
from kernelquarry.transforms.distill.client import ChatRequest
from kernelquarry.transforms.distill.teachers import DistillConfig, Teacher, Terms

OWN = Terms(training=TermsClass.OWN, source="ours", read_on="2026-11-22")
CHATS = [[Message(role="user", content=text)] for text in ("one", "a longer one", "two", "three and more")]


class RunningServer:
    """A context manager that runs a server in a thread. `url` ends with /v1."""

    def __init__(self, model: SlotModel) -> None:
        self._model, self._ready = model, threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self._task = self._loop.create_task(self._serve())
        with pytest.raises(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    async def _serve(self) -> None:
        server = Server(self._model)
        runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._ready.set()
        try:
            await server.run()
        finally:
            await runner.cleanup()

    def __enter__(self) -> RunningServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def post(self, **body: Any) -> tuple[int, Any]:
        body = {"model": "ours", "messages": CHATS[0], "max_tokens": 4, "temperature": 0.0, **body}
        request = urllib.request.Request(f"{self.url}/chat/completions", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())["error"]["message"]


@pytest.fixture(scope="module")
def writer(tiny_model: Path) -> SlotModel:
    return SlotModel(str(tiny_model), "ours", "chatml.jinja", slots=2, context=400)


@pytest.fixture(scope="module")
def served(writer: SlotModel) -> Iterator[RunningServer]:
    with RunningServer(writer) as served:
        yield served


def alone(folder: Path, writer: SlotModel, chat: list[Message], new_tokens: int) -> str:
    """The answer of transformers' own generation."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = torch.tensor([writer.encode(chat, new_tokens)])
    written = model.generate(prompt, max_new_tokens=new_tokens, do_sample=False, pad_token_id=1)
    return writer.decode(written[0, prompt.shape[1] :].tolist())[0]


def test_concurrent_requests_get_the_answers_of_transformers(
    served: RunningServer, writer: SlotModel, tiny_model: Path
) -> None:
    teachers = [
        Teacher(
            name=f"t{limit}",
            model="ours",
            url=served.url,
            kind="own",
            terms="own",
            max_tokens=limit,
            sampling={"temperature": 0},
        )
        for limit in (20, 6)
    ]
    table = DistillConfig(teachers=tuple(teachers), terms={"own": OWN})
    requests = [ChatRequest(teacher, tuple(chat), 0) for chat in CHATS for teacher in teachers]
    with Client(table, None) as client:
        replies = client.fetch_all(requests)
    for request, reply in zip(requests, replies, strict=True):
        assert not isinstance(reply, Exception), reply
        assert reply.content == alone(tiny_model, writer, list(request.messages), request.teacher.max_tokens)
        assert reply.model == "ours" and reply.prompt_tokens == len(writer.encode(request.messages, 1))
        assert (reply.finish == "length") == (reply.completion_tokens == request.teacher.max_tokens)


def test_a_served_model_is_a_teacher_with_provenance(tiny_model: Path) -> None:
    """Random weights write no code, so all answers are dropped."""
    seed = Verified(load_case("honest", "softmax").candidate, make_verdict())
    roomy = SlotModel(str(tiny_model), "ours", "chatml.jinja", slots=4, context=4000)
    with RunningServer(roomy) as served, Sandbox(SandboxSettings(workers=1)) as sandbox:
        teacher = Teacher(
            name="round-0", model="ours", url=served.url, kind="own", terms="own", samples=2, max_tokens=30
        )
        table = DistillConfig(teachers=(teacher,), terms={"own": OWN}, repairs=1)
        with Client(table, None) as client:
            outcome = distill(seed, sandbox, TeacherSession(table, client))
    assert isinstance(outcome, Kept)
    attempts = outcome.record.attempts
    assert {attempt.lost[0].reason for attempt in attempts} <= {"no_answer", "no_code"}
    written = [attempt.candidate.distillation[0] for attempt in attempts]
    assert [(said.route, len(said.turns)) for said in written][:4] == [("write", 1)] * 2 + [("refine", 1)] * 2
    assert {(said.teacher, said.served, said.endpoint, said.terms.value) for said in written} == {
        ("round-0", "ours", "own", "own")
    }


def test_a_streamed_answer_comes_in_one_part(served: RunningServer) -> None:
    section = EvaluationSection(temperature=0.0, new_tokens=8)
    endpoint = EndpointModel("ours", served.url, section)
    (sampled,) = endpoint.sample([CHATS[0]])
    assert "".join(endpoint.stream(CHATS[0])) == sampled.text != ""


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"model": "theirs"}, 404, "has the model 'ours'"),
        ({"n": 2}, 400, "n: "),
        ({"temperature": -1}, 400, "temperature: "),
        ({"logit_bias": {}}, 400, "logit_bias: Extra inputs"),
        ({"messages": []}, 400, "messages: "),
        ({"messages": [{"role": "user", "content": "x" * 1000}]}, 400, "more than this server's 400"),
        ({"max_tokens": 500}, 400, "500 of the answer are more"),
    ],
)
def test_unsupported_requests_are_rejected(
    served: RunningServer, change: dict[str, Any], status: int, says: str
) -> None:
    actual, message = served.post(**change)
    assert actual == status and says in message


def test_models_and_health_are_reported(served: RunningServer) -> None:
    with urllib.request.urlopen(f"{served.url}/models") as response:
        assert json.load(response)["data"][0]["id"] == "ours"
    with urllib.request.urlopen(f"{served.url.removesuffix('/v1')}/health") as response:
        assert response.status == 200


def test_a_port_that_is_taken_raises_a_user_error(served: RunningServer, writer: SlotModel) -> None:
    with pytest.raises(UserError, match="give another --port"):
        asyncio.run(serve(writer, "127.0.0.1", served.port))


def test_a_model_that_fails_ends_the_server(writer: SlotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(sampling: object) -> None:
        raise RuntimeError("no memory")

    async def request() -> None:
        server = Server(writer)
        running = asyncio.ensure_future(server.run())
        answer = asyncio.ensure_future(server._answer([1], object()))  # type: ignore[arg-type]
        await running
        await answer

    monkeypatch.setattr(writer, "decoder", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        asyncio.run(request())


def test_layers_without_full_attention_are_rejected(tiny_model: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

    small = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1)
    model = MistralForCausalLM(MistralConfig(vocab_size=260, num_key_value_heads=1, sliding_window=8, **small))
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="serve it with vLLM"):
        SlotModel(str(tmp_path), "", "chatml.jinja", 2, 100)
