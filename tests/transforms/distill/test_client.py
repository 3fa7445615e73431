"""The client against an endpoint over real HTTP: faults, limits, budget, and paying once."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import Said, ScriptedEndpoint, completion
from teaching import make_teacher, make_teaching

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.distill.budget import BudgetSpent
from kernelquarry.transforms.distill.cache import Cache, Reply
from kernelquarry.transforms.distill.client import Ask, Client, Unanswered
from kernelquarry.transforms.distill.endpoint import told_wait, used_up
from kernelquarry.transforms.distill.teachers import Limits, Teacher


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


def asks(teacher: Teacher, number: int = 1, text: str = "a kernel, please") -> list[Ask]:
    return [Ask(teacher, (Message(role="user", content=text),), sample) for sample in range(number)]


def ask(endpoint: ScriptedEndpoint, folder: Path, number: int = 1, teacher: Any = None, **teaching: Any) -> list[Any]:
    teacher = make_teacher(endpoint.url, **(teacher or {}))
    with Client(make_teaching(teacher, **teaching), folder / "answers.sqlite") as client:
        return client.ask_all(asks(teacher, number))


def test_a_reply_is_taken_apart_and_paid_for(endpoint, tmp_path) -> None:
    (reply,) = ask(endpoint, tmp_path)
    assert (reply.content, reply.finish, reply.model) == ("hello", "stop", "scripted-1")
    assert (reply.prompt_tokens, reply.completion_tokens) == (100, 10)
    assert reply.cost_usd == pytest.approx(120e-6)
    assert endpoint.requests[0]["stream"] is False and "n" not in endpoint.requests[0]
    assert endpoint.requests[0]["temperature"] == 0.5


def test_nothing_is_asked_twice(endpoint, tmp_path) -> None:
    first, second = ask(endpoint, tmp_path, 3), ask(endpoint, tmp_path, 4)
    assert second[:3] == first
    assert len(endpoint.requests) == 4
    assert set(endpoint.sent.values()) == {1}


def test_two_that_ask_the_same_share_a_request(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(wait_s=0.05)
    teacher = make_teacher(endpoint.url)
    with Client(make_teaching(teacher), tmp_path / "answers.sqlite") as client:
        a, b = client.ask_all([*asks(teacher), *asks(teacher)])
    assert a == b
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Said(status=500),
        Said(status=429),
        Said(status=408),
        Said(status=503, headers={"Retry-After": "0.05"}),
        Said(status=429, headers={"Retry-After": "0.05"}),
        Said(status=429, headers={"Retry-After-Ms": "50"}),
        Said(cut_at=20),
        Said(cut_at=0),
        Said(body=b""),
        Said(body=b"<html>502 Bad Gateway</html>"),
        Said(body=b"\xff\xfe\x00garbage"),
        Said(body=b"[]"),
        Said(body=b'{"choices": []}'),
        Said(body=b'{"choices": [{"message": {"content": 7}}]}'),
        Said(body=b'{"choices": {"message": null}}'),
        Said(body=b"[" * 50_000),
        Said(body=b'{"error": {"message": "overloaded"}}'),
        Said(wait_s=1.5),
    ],
    ids=repr,
)
def test_a_fault_is_survived(endpoint, tmp_path, fault) -> None:
    endpoint.script = lambda request, number: fault if number == 0 else Said("at last")
    (reply,) = ask(endpoint, tmp_path, teacher={"timeout_s": 0.5})
    assert reply.content == "at last"
    assert len(endpoint.requests) == 2


def test_being_told_to_wait_is_no_failure_and_holds_for_all(endpoint, tmp_path) -> None:
    told = Said(status=429, headers={"Retry-After": "0.1"})
    endpoint.script = lambda request, number: told if number < 5 else Said()
    began = time.monotonic()
    (reply,) = ask(endpoint, tmp_path)
    assert reply.content == "hello"
    assert time.monotonic() - began > 0.5
    assert len(endpoint.requests) == 6  # more than there are tries


def test_one_that_never_answers_is_given_up(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(status=500) if request["messages"][0]["content"] else Said()
    (reply,) = ask(endpoint, tmp_path)
    assert isinstance(reply, Unanswered)
    assert "HTTP 500" in str(reply)
    assert len(endpoint.requests) == 3
    endpoint.script = lambda request, number: Said()
    assert ask(endpoint, tmp_path)[0].content == "hello"  # the next run tries again


def test_what_no_patience_waits_for(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(status=429, headers={"Retry-After": "0.05"})
    retries = make_teaching().retries.model_copy(update={"patience_s": 0.12})
    assert isinstance(ask(endpoint, tmp_path, retries=retries)[0], Unanswered)


def test_nobody_there(tmp_path) -> None:
    with Client(make_teaching(), tmp_path / "answers.sqlite") as client:
        (reply,) = client.ask_all(asks(make_teacher()))
    assert isinstance(reply, Unanswered)


@pytest.mark.parametrize(
    "said",
    [
        Said(status=400, body=b'{"error": "too many tokens"}'),
        Said(status=422, body=b"no"),
        Said(body=completion("x" * 200_000)),
    ],
    ids=["bad request", "unprocessable", "enormous"],
)
def test_a_refused_request_is_not_asked_again(endpoint, tmp_path, said) -> None:
    endpoint.script = lambda request, number: said
    first, second = ask(endpoint, tmp_path), ask(endpoint, tmp_path)
    assert first[0].finish == "refused" and first == second
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [(401, b"no", "does not take the key"), (404, b"no", "no such address"), (429, b"insufficient_quota", "used up")],
)
def test_what_no_request_escapes_stops_the_run(endpoint, tmp_path, status, body, says) -> None:
    endpoint.script = lambda request, number: Said(status=status, body=body)
    with pytest.raises(UserError, match=says):
        ask(endpoint, tmp_path)


@pytest.mark.parametrize("content", ["", None, [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]])
def test_odd_contents_are_answers(endpoint, tmp_path, content) -> None:
    endpoint.script = lambda request, number: Said(body=completion(content, usage=False, reasoning_content="thought"))
    (reply,) = ask(endpoint, tmp_path)
    assert reply.content == ("in parts" if content else "")
    assert reply.thinking == "thought"
    assert reply.prompt_tokens > 0  # estimated


def test_no_more_than_so_many_at_once(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(wait_s=0.05)
    ask(endpoint, tmp_path, 12, teacher={"in_flight": 4})
    assert endpoint.most_in_flight == 4


def test_an_endpoint_that_tells_to_wait_holds_no_other_up(endpoint, tmp_path) -> None:
    told = Said(status=429, headers={"Retry-After": "3600"})
    with ScriptedEndpoint(lambda request, number: told) as busy:
        teachers = make_teacher(busy.url, name="busy"), make_teacher(endpoint.url, name="free", in_flight=2)
        with Client(make_teaching(*teachers), tmp_path / "answers.sqlite") as client:
            waiting = [client.submit(ask) for ask in asks(teachers[0], 3)]
            answered = client.ask_all(asks(teachers[1], 9))
            assert [reply.teacher for reply in answered if isinstance(reply, Reply)] == ["free"] * 9
            assert not any(future.done() for future in waiting)
    assert len(endpoint.requests) == 9


def test_an_empty_bucket_is_waited_for(endpoint, tmp_path) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    endpoint.script = lambda request, number: Said(headers=headers if number == 0 else {})
    began = time.monotonic()
    ask(endpoint, tmp_path, 2, teacher={"in_flight": 1})
    assert time.monotonic() - began > 0.3


def test_the_budget_stops_before_it_is_overdrawn(endpoint, tmp_path) -> None:
    # each request may take 6 + 100 tokens, and takes 110
    replies = ask(endpoint, tmp_path, 20, limits=Limits(usd=1.0, tokens=1000))
    answered = [reply for reply in replies if isinstance(reply, Reply)]
    assert 5 <= len(answered) <= 9
    assert all(isinstance(reply, BudgetSpent) for reply in replies if reply not in answered)
    again = ask(endpoint, tmp_path, 20, limits=Limits(usd=1.0, tokens=1000))
    assert [r for r in again if isinstance(r, Reply)] == answered  # what was spent before counts
    assert len(endpoint.requests) == len(answered)


def test_money_is_a_budget_too(endpoint, tmp_path) -> None:
    replies = ask(endpoint, tmp_path, 20, limits=Limits(usd=500e-6, tokens=10**6))
    assert sum(reply.cost_usd for reply in replies if isinstance(reply, Reply)) <= 500e-6
    assert isinstance(replies[-1], BudgetSpent)


def test_a_key_comes_from_the_environment(endpoint, tmp_path, monkeypatch) -> None:
    with pytest.raises(UserError, match="OUR_KEY is empty"):
        ask(endpoint, tmp_path, teacher={"key_env": "OUR_KEY"})
    monkeypatch.setenv("OUR_KEY", "abc")
    ask(endpoint, tmp_path, teacher={"key_env": "OUR_KEY"})
    assert endpoint.headers[0]["Authorization"] == "Bearer abc"


def test_the_cache_is_shared_and_keeps_the_first(tmp_path) -> None:
    reply = Reply("r", 0, "t", "m", "one", "", "stop", 1, 2, 0.5)
    a, b = Cache(tmp_path / "c.sqlite"), Cache(tmp_path / "c.sqlite")
    a.put(reply)
    b.put(Reply("r", 0, "t", "m", "two", "", "stop", 1, 2, 0.5))
    assert b.get("r", 0) == reply
    assert b.get("r", 1) is None
    assert (a.spent().tokens, a.spent().usd) == (3, 0.5)


def test_headers_that_tell_to_wait() -> None:
    assert told_wait({"Retry-After": "20"}) == 20
    assert told_wait({"Retry-After": "0"}) == 0
    assert told_wait({"Retry-After": "soon"}) is None
    assert told_wait({}) is None
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert told_wait({"Retry-After": date}) == pytest.approx(100, abs=2)
    assert used_up({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"}) == 90
    assert used_up({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "1m30s"}) == 0


def streamed(*parts: str) -> bytes:
    lines = [json.dumps({"choices": [{"delta": {"content": part}}]}) for part in parts]
    return "".join(f"data: {line}\n\n" for line in [*lines, '{"choices": []}', "[DONE]"]).encode()


def test_a_person_who_waits_is_answered_in_parts(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(body=streamed("a ", "kernel"))
    teacher = make_teacher(endpoint.url)
    with Client(make_teaching(teacher), None) as client:
        assert "".join(client.stream(asks(teacher)[0])) == "a kernel"
        begun = client.stream(asks(teacher)[0])
        assert next(begun) == "a "
        begun.close()
    assert [request["stream"] for request in endpoint.requests] == [True, True]


@pytest.mark.parametrize("said", [Said(status=500), Said(status=400), Said(body=b"data: {}\n"), Said(cut_at=3)])
def test_a_stream_that_fails_is_no_answer(endpoint, said: Said) -> None:
    endpoint.script = lambda request, number: said
    teacher = make_teacher(endpoint.url)
    with Client(make_teaching(teacher), None) as client, pytest.raises(Unanswered):
        list(client.stream(asks(teacher)[0]))


def test_what_nobody_waits_for_ends_with_the_client(endpoint) -> None:
    endpoint.script = lambda request, number: Said(wait_s=60.0)
    teacher = make_teacher(endpoint.url, timeout_s=60.0)
    started = time.monotonic()
    with Client(make_teaching(teacher), None) as client:
        future = client.submit(asks(teacher)[0])
    assert time.monotonic() - started < 30 and future.cancelled()
