"""The client against an endpoint over real HTTP: faults, rate limits, budget, and paying once."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distill_factories import make_distill_config, make_teacher
from scripted_endpoint import Said, ScriptedEndpoint, completion

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.distill.budget import BudgetSpent
from kernelquarry.transforms.distill.cache import Cache, Reply
from kernelquarry.transforms.distill.client import ChatRequest, Client, Unanswered
from kernelquarry.transforms.distill.endpoint import rate_limit_reset_s, retry_after_s
from kernelquarry.transforms.distill.teachers import Limits, Teacher


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


def requests(teacher: Teacher, number: int = 1, text: str = "a kernel, please") -> list[ChatRequest]:
    return [ChatRequest(teacher, (Message(role="user", content=text),), sample) for sample in range(number)]


def fetch(endpoint: ScriptedEndpoint, folder: Path, number: int = 1, teacher: Any = None, **config: Any) -> list[Any]:
    teacher = make_teacher(endpoint.url, **(teacher or {}))
    with Client(make_distill_config(teacher, **config), folder / "answers.sqlite") as client:
        return client.fetch_all(requests(teacher, number))


def test_a_reply_is_parsed_and_priced(endpoint, tmp_path) -> None:
    (reply,) = fetch(endpoint, tmp_path)
    assert (reply.content, reply.finish, reply.model) == ("hello", "stop", "scripted-1")
    assert (reply.prompt_tokens, reply.completion_tokens) == (100, 10)
    assert reply.cost_usd == pytest.approx(120e-6)
    assert endpoint.requests[0]["stream"] is False and "n" not in endpoint.requests[0]
    assert endpoint.requests[0]["temperature"] == 0.5


def test_cached_replies_are_not_requested_again(endpoint, tmp_path) -> None:
    first, second = fetch(endpoint, tmp_path, 3), fetch(endpoint, tmp_path, 4)
    assert second[:3] == first
    assert len(endpoint.requests) == 4
    assert set(endpoint.sent.values()) == {1}


def test_equal_requests_in_flight_share_one_http_request(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(wait_s=0.05)
    teacher = make_teacher(endpoint.url)
    with Client(make_distill_config(teacher), tmp_path / "answers.sqlite") as client:
        a, b = client.fetch_all([*requests(teacher), *requests(teacher)])
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
def test_a_request_is_retried_after_a_fault(endpoint, tmp_path, fault) -> None:
    endpoint.script = lambda request, number: fault if number == 0 else Said("at last")
    (reply,) = fetch(endpoint, tmp_path, teacher={"timeout_s": 0.5})
    assert reply.content == "at last"
    assert len(endpoint.requests) == 2


def test_throttling_is_no_failure_and_pauses_all_requests_of_the_teacher(endpoint, tmp_path) -> None:
    throttled = Said(status=429, headers={"Retry-After": "0.1"})
    endpoint.script = lambda request, number: throttled if number < 5 else Said()
    began = time.monotonic()
    (reply,) = fetch(endpoint, tmp_path)
    assert reply.content == "hello"
    assert time.monotonic() - began > 0.5
    assert len(endpoint.requests) == 6  # more than `tries`


def test_a_request_fails_after_all_tries_and_the_next_run_retries(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(status=500) if request["messages"][0]["content"] else Said()
    (reply,) = fetch(endpoint, tmp_path)
    assert isinstance(reply, Unanswered)
    assert "HTTP 500" in str(reply)
    assert len(endpoint.requests) == 3
    endpoint.script = lambda request, number: Said()
    assert fetch(endpoint, tmp_path)[0].content == "hello"  # the next run tries again


def test_throttling_beyond_patience_s_fails(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(status=429, headers={"Retry-After": "0.05"})
    retries = make_distill_config().retries.model_copy(update={"patience_s": 0.12})
    assert isinstance(fetch(endpoint, tmp_path, retries=retries)[0], Unanswered)


def test_an_unreachable_endpoint_fails(tmp_path) -> None:
    with Client(make_distill_config(), tmp_path / "answers.sqlite") as client:
        (reply,) = client.fetch_all(requests(make_teacher()))
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
def test_a_refused_request_is_cached(endpoint, tmp_path, said) -> None:
    endpoint.script = lambda request, number: said
    first, second = fetch(endpoint, tmp_path), fetch(endpoint, tmp_path)
    assert first[0].finish == "refused" and first == second
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [(401, b"no", "does not take the key"), (404, b"no", "no such address"), (429, b"insufficient_quota", "used up")],
)
def test_a_fatal_status_raises_a_user_error(endpoint, tmp_path, status, body, says) -> None:
    endpoint.script = lambda request, number: Said(status=status, body=body)
    with pytest.raises(UserError, match=says):
        fetch(endpoint, tmp_path)


@pytest.mark.parametrize("content", ["", None, [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]])
def test_empty_and_split_contents_are_read(endpoint, tmp_path, content) -> None:
    endpoint.script = lambda request, number: Said(body=completion(content, usage=False, reasoning_content="thought"))
    (reply,) = fetch(endpoint, tmp_path)
    assert reply.content == ("in parts" if content else "")
    assert reply.thinking == "thought"
    assert reply.prompt_tokens > 0  # estimated


def test_requests_in_flight_are_limited(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(wait_s=0.05)
    fetch(endpoint, tmp_path, 12, teacher={"in_flight": 4})
    assert endpoint.most_in_flight == 4


def test_throttling_by_one_endpoint_does_not_delay_another(endpoint, tmp_path) -> None:
    throttled = Said(status=429, headers={"Retry-After": "3600"})
    with ScriptedEndpoint(lambda request, number: throttled) as busy:
        teachers = make_teacher(busy.url, name="busy"), make_teacher(endpoint.url, name="free", in_flight=2)
        with Client(make_distill_config(*teachers), tmp_path / "answers.sqlite") as client:
            waiting = [client.submit(request) for request in requests(teachers[0], 3)]
            answered = client.fetch_all(requests(teachers[1], 9))
            assert [reply.teacher for reply in answered if isinstance(reply, Reply)] == ["free"] * 9
            assert not any(future.done() for future in waiting)
    assert len(endpoint.requests) == 9


def test_a_used_up_rate_limit_pauses_requests(endpoint, tmp_path) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    endpoint.script = lambda request, number: Said(headers=headers if number == 0 else {})
    began = time.monotonic()
    fetch(endpoint, tmp_path, 2, teacher={"in_flight": 1})
    assert time.monotonic() - began > 0.3


def test_the_token_budget_is_never_overdrawn(endpoint, tmp_path) -> None:
    # each request may take 6 + 100 tokens, and takes 110
    replies = fetch(endpoint, tmp_path, 20, limits=Limits(usd=1.0, tokens=1000))
    answered = [reply for reply in replies if isinstance(reply, Reply)]
    assert 5 <= len(answered) <= 9
    assert all(isinstance(reply, BudgetSpent) for reply in replies if reply not in answered)
    again = fetch(endpoint, tmp_path, 20, limits=Limits(usd=1.0, tokens=1000))
    assert [r for r in again if isinstance(r, Reply)] == answered  # what was spent before counts
    assert len(endpoint.requests) == len(answered)


def test_the_dollar_budget_is_never_overdrawn(endpoint, tmp_path) -> None:
    replies = fetch(endpoint, tmp_path, 20, limits=Limits(usd=500e-6, tokens=10**6))
    assert sum(reply.cost_usd for reply in replies if isinstance(reply, Reply)) <= 500e-6
    assert isinstance(replies[-1], BudgetSpent)


def test_a_key_comes_from_the_environment(endpoint, tmp_path, monkeypatch) -> None:
    with pytest.raises(UserError, match="OUR_KEY is empty"):
        fetch(endpoint, tmp_path, teacher={"key_env": "OUR_KEY"})
    monkeypatch.setenv("OUR_KEY", "abc")
    fetch(endpoint, tmp_path, teacher={"key_env": "OUR_KEY"})
    assert endpoint.headers[0]["Authorization"] == "Bearer abc"


def test_the_cache_is_shared_and_keeps_the_first_reply(tmp_path) -> None:
    reply = Reply("r", 0, "t", "m", "one", "", "stop", 1, 2, 0.5)
    a, b = Cache(tmp_path / "c.sqlite"), Cache(tmp_path / "c.sqlite")
    a.put(reply)
    b.put(Reply("r", 0, "t", "m", "two", "", "stop", 1, 2, 0.5))
    assert b.get("r", 0) == reply
    assert b.get("r", 1) is None
    assert (a.spent().tokens, a.spent().usd) == (3, 0.5)


def test_wait_headers_are_parsed() -> None:
    assert retry_after_s({"Retry-After": "20"}) == 20
    assert retry_after_s({"Retry-After": "0"}) == 0
    assert retry_after_s({"Retry-After": "soon"}) is None
    assert retry_after_s({}) is None
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert retry_after_s({"Retry-After": date}) == pytest.approx(100, abs=2)
    assert rate_limit_reset_s({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"}) == 90
    assert rate_limit_reset_s({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "1m30s"}) == 0


def streamed(*parts: str) -> bytes:
    lines = [json.dumps({"choices": [{"delta": {"content": part}}]}) for part in parts]
    return "".join(f"data: {line}\n\n" for line in [*lines, '{"choices": []}', "[DONE]"]).encode()


def test_an_answer_is_streamed_in_parts(endpoint, tmp_path) -> None:
    endpoint.script = lambda request, number: Said(body=streamed("a ", "kernel"))
    teacher = make_teacher(endpoint.url)
    with Client(make_distill_config(teacher), None) as client:
        assert "".join(client.stream(requests(teacher)[0])) == "a kernel"
        unfinished = client.stream(requests(teacher)[0])
        assert next(unfinished) == "a "
        unfinished.close()
    assert [request["stream"] for request in endpoint.requests] == [True, True]


@pytest.mark.parametrize("said", [Said(status=500), Said(status=400), Said(body=b"data: {}\n"), Said(cut_at=3)])
def test_a_failing_stream_raises_unanswered(endpoint, said: Said) -> None:
    endpoint.script = lambda request, number: said
    teacher = make_teacher(endpoint.url)
    with Client(make_distill_config(teacher), None) as client, pytest.raises(Unanswered):
        list(client.stream(requests(teacher)[0]))


def test_closing_the_client_cancels_requests_in_flight(endpoint) -> None:
    endpoint.script = lambda request, number: Said(wait_s=60.0)
    teacher = make_teacher(endpoint.url, timeout_s=60.0)
    started = time.monotonic()
    with Client(make_distill_config(teacher), None) as client:
        future = client.submit(requests(teacher)[0])
    assert time.monotonic() - started < 30 and future.cancelled()
