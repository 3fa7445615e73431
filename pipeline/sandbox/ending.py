"""The report of a job, from how its guest ended and what it replied. Only a complete reply counts as success."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic

from pydantic import TypeAdapter, ValidationError

from . import protocol
from .job import Job, Report, Status
from .jobs import KINDS
from .jobs.kind import GuestKind, Reply
from .protocol import Tensors

_SURROGATE = re.compile("[\ud800-\udfff]")  # no UTF-8: written as its escape
_KILLED = {
    "host": (Status.TIMED_OUT, "no reply within {limits.wall_s:g} s"),
    "memory": (Status.OUT_OF_MEMORY, "more than {limits.memory_mb} MiB"),
    "processes": (Status.CRASHED, "more than {limits.processes} processes"),
}
_SIGNALS = {number.value: number.name for number in signal.Signals}  # not all have a name
_CLAIMED = {
    "raised": Status.RAISED,
    "memory": Status.OUT_OF_MEMORY,
    "exit": Status.CRASHED,
    "reply": Status.CRASHED,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a guest as its parent observed it."""

    status: int  # as from wait(2)
    killed_by: str  # a key of `_KILLED`; "" if the parent did not kill it
    cpu_s: float
    peak_kb: int


@dataclass(frozen=True, slots=True)
class _Claim(Generic[Reply]):
    """The outcome of a job as its guest claims it."""

    status: Status
    reply: Reply | None
    tensors: Tensors
    error: str
    traceback: str


def report(
    job: Job[Any, Reply], ending: Ending, reply_fd: int, nonce: bytes, scratch: str, output: bytes, wall_s: float
) -> Report[Reply]:
    """Build the report. The reply is read only if the guest exited by itself with status 0.

    In all texts `/scratch` replaces the scratch folder, whose name differs from job to job.
    """
    status, error = _status_of_process(job, ending)
    dead: _Claim[Reply] = _Claim(status, None, {}, error, "")
    claim = dead if error else _read_message(job.kind, reply_fd, nonce)
    return Report(
        status=claim.status,
        reply=claim.reply,
        tensors=claim.tensors,
        error=claim.error.replace(scratch, "/scratch"),
        traceback=claim.traceback.replace(scratch, "/scratch"),
        stderr=output.decode(errors="replace").replace(scratch, "/scratch"),
        wall_s=wall_s,
        cpu_s=ending.cpu_s,
        peak_mb=ending.peak_kb / 1024,
    )


def _status_of_process(job: Job[Any, Any], ending: Ending) -> tuple[Status, str]:
    """Status and error that follow from the process's end alone; the error is "" if it exited with status 0."""
    if ending.killed_by:
        status, error = _KILLED[ending.killed_by]
        return status, error.format(limits=job.limits)
    code = os.waitstatus_to_exitcode(ending.status)
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and ending.cpu_s >= job.limits.cpu_s):
        return Status.TIMED_OUT, f"more than {job.limits.cpu_s} s of CPU time"
    if code < 0:
        return Status.CRASHED, f"killed by {_SIGNALS.get(-code, f'signal {-code}')}"
    return Status.CRASHED, f"exited with {code}" if code else ""


def _read_message(kind: GuestKind[Any, Reply], fd: int, nonce: bytes) -> _Claim[Reply]:
    try:
        protocol.seal(fd)
        body, tensors = protocol.read(fd, nonce)
        return _read_body(kind, body, tensors)
    except protocol.ProtocolError as error:
        return _Claim(Status.CRASHED, None, {}, str(error), "")


def _read_body(kind: GuestKind[Any, Reply], body: dict[str, Any], tensors: Tensors) -> _Claim[Reply]:
    reply = body.get("reply")
    if body.keys() == {"reply"} and isinstance(reply, dict):
        return _Claim(Status.OK, _read_reply(kind, reply), tensors, "", "")
    if body.keys() != {"ended", "error", "traceback"} or not all(isinstance(text, str) for text in body.values()):
        raise protocol.ProtocolError("a reply of another form")
    if tensors or not body["error"] or body["ended"] not in _CLAIMED:
        raise protocol.ProtocolError("a reply of another form")
    return _Claim(_CLAIMED[body["ended"]], None, {}, body["error"], body["traceback"])


def _read_reply(kind: GuestKind[Any, Reply], message: dict[str, Any]) -> Reply:
    """The reply, with every type checked. Raises `ProtocolError` if it does not have the form of its kind."""
    try:
        text = _SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):04x}", json.dumps(message, ensure_ascii=False))
        found: Reply = _adapter(kind.name).validate_json(text, strict=True)
        return found
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise protocol.ProtocolError(f"a malformed reply: {place}: {first['msg']}") from error
    except RecursionError as error:
        raise protocol.ProtocolError("a malformed reply: nested too deeply") from error


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[kind].reply)
