"""Requests and replies in the subset of OpenAI's chat completions that every server supports.

Neither `n` nor JSON mode is used: each sample is a request of its own. Only interactive use streams.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.ids import canonical, sha256

from .budget import CHARACTERS_PER_TOKEN
from .cache import Reply
from .teachers import Teacher

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_RESETS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)


class Malformed(Exception):
    """The response body is not a chat completion."""


def build_body(teacher: Teacher, messages: Sequence[Message]) -> dict[str, Any]:
    """The JSON body of a request."""
    return {
        "model": teacher.model,
        "messages": list(messages),
        teacher.max_tokens_name: teacher.max_tokens,
        **teacher.sampling,
        "stream": False,
    }


def hash_request(teacher: Teacher, body: Mapping[str, Any]) -> str:
    """Hash of the teacher's name and version and the body. The endpoint's address is not part of it."""
    return sha256(canonical([teacher.name, teacher.version, body]))[:32]


def read_reply(raw: bytes | str, teacher: Teacher, request: str, sample: int, prompt_characters: int) -> Reply:
    """Parse the body of a response. Token counts that it lacks are estimated from characters.

    Raises: Malformed.
    """
    try:
        data = json.loads(raw)
        choice = data["choices"][0]
        message = choice["message"]
        content = _text(message.get("content"))
        thinking = _text(message.get("reasoning_content") or message.get("reasoning"))
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise Malformed(f"{type(error).__name__}: {raw[:200]!r}") from error
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    prompt = _count(usage.get("prompt_tokens"), prompt_characters)
    completion = _count(usage.get("completion_tokens"), len(content) + len(thinking))
    return Reply(
        request=request,
        sample=sample,
        teacher=teacher.name,
        model=str(data.get("model") or teacher.model)[:200],
        content=content,
        thinking=thinking,
        finish=str(choice.get("finish_reason") or "")[:40],
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_usd=teacher.price(prompt, completion),
    )


def read_part(line: bytes) -> str:
    """Text that one line of an event stream adds to the answer; "" if it adds none. Raises: Malformed."""
    data = line.removeprefix(b"data:").strip()
    if not line.startswith(b"data:") or data == b"[DONE]":
        return ""
    try:
        choices = json.loads(data)["choices"]
        return _text(choices[0]["delta"].get("content")) if choices else ""
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise Malformed(f"{type(error).__name__}: {data[:200]!r}") from error


def refused_reply(teacher: Teacher, request: str, sample: int, why: str) -> Reply:
    """A reply without cost that records a permanent refusal, so that no run sends the request again."""
    return Reply(request, sample, teacher.name, teacher.model, why, "", "refused", 0, 0, 0.0)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the header `Retry-After`; None without a valid one."""
    value = headers.get("Retry-After-Ms")
    if value is not None and value.strip().isdigit():
        return int(value) / 1000
    value = (headers.get("Retry-After") or "").strip()
    if seconds := _seconds(value):
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, IndexError):
        return 0.0 if value == "0" else None


def rate_limit_reset_s(headers: Mapping[str, str]) -> float:
    """Seconds until a used-up rate limit of requests or tokens resets; 0 if none is used up."""
    waits = [0.0]
    for remaining, reset in _RESETS:
        if headers.get(remaining, "").strip() in ("0", "0.0"):
            waits.append(_seconds(headers.get(reset, "")) or 0.0)
    return max(waits)


def _seconds(value: str) -> float | None:
    """Seconds of `20`, `1.5`, `6m0s`, `20ms`, or of a future time in seconds since 1970."""
    if re.fullmatch(r"\d+(\.\d+)?", value):
        number = float(value)
        return max(0.0, number - time.time()) if number > 1e9 else number
    parts = _DURATION.findall(value)
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):  # a message in parts
        return "".join(part["text"] for part in value if part.get("type") in ("text", "output_text"))
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # lone surrogates cannot be encoded
    raise TypeError(f"{type(value).__name__} in place of text")


def _count(reported: object, characters: int) -> int:
    return reported if isinstance(reported, int) and reported >= 0 else characters // CHARACTERS_PER_TOKEN + 1
