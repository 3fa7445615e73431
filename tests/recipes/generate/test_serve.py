"""A model behind an endpoint is asked as any teacher is, and answers as it would without one."""

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
from kernelquarry.recipes.generate.serve import Server, SlotWriter, serve
from kernelquarry.transforms.distill import Client, TeacherSession, distill
from kernelquarry.transforms.distill.client import ChatRequest
from kernelquarry.transforms.distill.teachers import DistillConfig, Teacher, Terms

OWN = Terms(training=TermsClass.OWN, source="ours", read_on="2026-11-22")
CHATS = [[Message(role="user", content=text)] for text in ("one", "a longer one", "two", "three and more")]


class Served:
    """A server in a thread; `url` is what a table of teachers names."""

    def __init__(self, writer: SlotWriter) -> None:
        self._writer, self._ready = writer, threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self._task = self._loop.create_task(self._serve())
        with pytest.raises(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    async def _serve(self) -> None:
        server = Server(self._writer)
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

    def __enter__(self) -> Served:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def post(self, **body: Any) -> tuple[int, Any]:
        asked = {"model": "ours", "messages": CHATS[0], "max_tokens": 4, "temperature": 0.0, **body}
        request = urllib.request.Request(f"{self.url}/chat/completions", json.dumps(asked).encode())
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())["error"]["message"]


@pytest.fixture(scope="module")
def writer(tiny_model: Path) -> SlotWriter:
    return SlotWriter(str(tiny_model), "ours", "chatml.jinja", slots=2, context=400)


@pytest.fixture(scope="module")
def served(writer: SlotWriter) -> Iterator[Served]:
    with Served(writer) as served:
        yield served


def alone(folder: Path, writer: SlotWriter, chat: list[Message], new_tokens: int) -> str:
    """What transformers writes."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = torch.tensor([writer.read(chat, new_tokens)])
    written = model.generate(prompt, max_new_tokens=new_tokens, do_sample=False, pad_token_id=1)
    return writer.told(written[0, prompt.shape[1] :].tolist())[0]


def test_teachers_are_answered_all_at_once_and_each_by_its_own(
    served: Served, writer: SlotWriter, tiny_model: Path
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
    asks = [ChatRequest(teacher, tuple(chat), 0) for chat in CHATS for teacher in teachers]
    with Client(table, None) as client:
        replies = client.fetch_all(asks)
    for ask, reply in zip(asks, replies, strict=True):
        assert not isinstance(reply, Exception), reply
        assert reply.content == alone(tiny_model, writer, list(ask.messages), ask.teacher.max_tokens)
        assert reply.model == "ours" and reply.prompt_tokens == len(writer.read(ask.messages, 1))
        assert (reply.finish == "length") == (reply.completion_tokens == ask.teacher.max_tokens)


def test_what_it_writes_is_judged_and_says_who_wrote_it(tiny_model: Path) -> None:
    """Of random weights: an answer that is none."""
    seed = Verified(load_case("honest", "softmax").candidate, make_verdict())
    roomy = SlotWriter(str(tiny_model), "ours", "chatml.jinja", slots=4, context=4000)
    with Served(roomy) as served, Sandbox(SandboxSettings(workers=1)) as sandbox:
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


def test_what_waits_for_a_stream_gets_the_answer_in_one_part(served: Served) -> None:
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
def test_what_is_not_done_here_is_refused(served: Served, change: dict[str, Any], status: int, says: str) -> None:
    found, message = served.post(**change)
    assert found == status and says in message


def test_it_says_that_it_is_there(served: Served) -> None:
    with urllib.request.urlopen(f"{served.url}/models") as response:
        assert json.load(response)["data"][0]["id"] == "ours"
    with urllib.request.urlopen(f"{served.url.removesuffix('/v1')}/health") as response:
        assert response.status == 200


def test_a_port_that_is_taken_is_told(served: Served, writer: SlotWriter) -> None:
    with pytest.raises(UserError, match="give another --port"):
        asyncio.run(serve(writer, "127.0.0.1", served.port))


def test_a_model_that_fails_ends_the_server(writer: SlotWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(sampling: object) -> None:
        raise RuntimeError("no memory")

    async def ask() -> None:
        server = Server(writer)
        running = asyncio.ensure_future(server.run())
        asked = asyncio.ensure_future(server._answer([1], object()))  # type: ignore[arg-type]
        await running
        await asked

    monkeypatch.setattr(writer, "decoder", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        asyncio.run(ask())


def test_layers_that_have_no_slots_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

    small = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1)
    model = MistralForCausalLM(MistralConfig(vocab_size=260, num_key_value_heads=1, sliding_window=8, **small))
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="serve it with vLLM"):
        SlotWriter(str(tmp_path), "", "chatml.jinja", 2, 100)
