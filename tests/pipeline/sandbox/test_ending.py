"""The status of a job follows from its process's end; the guest's reply counts only after exit status 0."""

from __future__ import annotations

import json
import mmap
import os
import signal
from collections.abc import Iterator

import pytest

from kernelquarry.pipeline.sandbox import Job, Limits, Report, Status, ending, protocol
from kernelquarry.pipeline.sandbox.ending import Ending
from kernelquarry.pipeline.sandbox.jobs.kind import GuestKind, to_json
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET, TrialsReply
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, ScriptRequest
from kernelquarry.pipeline.sandbox.jobs.timing import TIMING

NONCE = bytes(range(16))
EXITED = 1 << 8  # wait status of exit(1)
GOOD = {"reply": {"x": 1}}
RAISED = {"ended": "raised", "error": "ValueError: /tmp/s/x", "traceback": "in /tmp/s/x"}


@pytest.fixture
def fd() -> Iterator[int]:
    fd = os.memfd_create("reply", os.MFD_ALLOW_SEALING)
    yield fd
    os.close(fd)


def report(fd: int, body: dict | None, status: int = 0, killed_by: str = "", cpu_s: float = 0.1) -> Report:
    if body is not None:
        protocol.write(fd, NONCE, body, {}, 1 << 16)
    job = Job(SCRIPT, ScriptRequest(""), limits=Limits(wall_s=3, cpu_s=5, memory_mb=7, processes=9))
    return ending.report(job, Ending(status, killed_by, cpu_s, 2048), fd, NONCE, "/tmp/s", b"at /tmp/s \xff", 1.5)


def test_a_complete_reply_is_success(fd: int) -> None:
    assert report(fd, GOOD) == Report(Status.OK, {"x": 1}, {}, "", "", "at /scratch \ufffd", 1.5, 0.1, 2.0)


def test_an_exception_is_reported_without_the_scratch_folders_name(fd: int) -> None:
    seen = report(fd, RAISED)
    assert (seen.status, seen.error, seen.traceback) == (Status.RAISED, "ValueError: /scratch/x", "in /scratch/x")


@pytest.mark.parametrize(
    ("status", "killed_by", "cpu_s", "expected", "error"),
    [
        (0, "host", 0, Status.TIMED_OUT, "no reply within 3 s"),
        (signal.SIGKILL, "memory", 0, Status.OUT_OF_MEMORY, "more than 7 MiB"),
        (signal.SIGKILL, "processes", 0, Status.CRASHED, "more than 9 processes"),
        (signal.SIGXCPU, "", 5.1, Status.TIMED_OUT, "more than 5 s of CPU time"),
        (signal.SIGKILL, "", 7.0, Status.TIMED_OUT, "more than 5 s of CPU time"),
        (signal.SIGKILL, "", 0.5, Status.CRASHED, "killed by SIGKILL"),
        (signal.SIGSEGV | 0x80, "", 0, Status.CRASHED, "killed by SIGSEGV"),
        (40, "", 0, Status.CRASHED, "killed by signal 40"),
        (EXITED, "", 0, Status.CRASHED, "exited with 1"),
    ],
)
def test_a_reply_does_not_help_a_guest_that_ended_badly(
    fd: int, status: int, killed_by: str, cpu_s: float, expected: Status, error: str
) -> None:
    seen = report(fd, GOOD, status, killed_by, cpu_s)
    assert (seen.status, seen.error, seen.reply) == (expected, error, None)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"reply": []},
        {"reply": {}, "more": 1},
        RAISED | {"ended": "ok"},
        RAISED | {"error": ""},
        RAISED | {"error": 3},
        RAISED | {"more": "x"},
    ],
    ids=repr,
)
def test_no_reply_of_the_right_form_is_a_crash(fd: int, body: dict | None) -> None:
    seen = report(fd, body)
    assert seen.status is Status.CRASHED and seen.reply is None and seen.error


TIMES = {"times": {"eager": [1.0]}, "left_out": {}, "written": 1, "flops": 0, "wrong": 0.0}
STATE = {"state": {"weight": {"shape": [2], "dtype": "float32", "sha256": "0", "norm": 1.0, "sums": [1.0]}}}


def read(fd: int, kind: GuestKind, reply: dict) -> Report:
    protocol.write(fd, NONCE, {"reply": reply}, {}, 1 << 16)
    return ending.report(Job(kind, None), Ending(0, "", 0.1, 2048), fd, NONCE, "/tmp/s", b"", 1.5)


@pytest.mark.parametrize(("kind", "reply"), [(TIMING, TIMES), (INTERPRET, STATE)], ids=["timing", "interpret"])
def test_a_reply_has_the_type_of_its_kind(fd: int, kind: GuestKind, reply: dict) -> None:
    seen = read(fd, kind, reply)
    assert type(seen.reply) is kind.reply and json.loads(json.dumps(to_json(seen.reply))).items() >= reply.items()


@pytest.mark.parametrize(
    ("kind", "reply", "error"),
    [
        (TIMING, TIMES | {"times": {"eager": ["1"]}}, "times.eager.0"),
        (TIMING, TIMES | {"left_out": None}, "left_out"),
        (TIMING, TIMES | {"written": 1.5}, "written"),
        (TIMING, TIMES | {"wrong": None}, "wrong"),
        (TIMING, {}, "times"),
        (INTERPRET, {"state": []}, "state"),
        (INTERPRET, {"state": {"value": "x"}}, "state.value"),
        (INTERPRET, {"state": {"value": {"sums": 3}}}, "state.value"),
        (INTERPRET, {"state": {"value": STATE["state"]["weight"] | {"sums": ["nothing"]}}}, "state.value.sums.0"),
        (INTERPRET, {"trials": [{"tree": 0}]}, "trials.0.strides"),
        (INTERPRET, {"load_error": ["deep"]}, "load_error"),
    ],
)
def test_a_reply_of_another_type_is_a_crash(fd: int, kind: GuestKind, reply: dict, error: str) -> None:
    seen = read(fd, kind, reply)
    assert seen.status is Status.CRASHED and seen.reply is None
    assert seen.error.startswith("a malformed reply: ") and error in seen.error


def test_lone_surrogates_are_kept_as_escapes(fd: int) -> None:
    seen = read(fd, INTERPRET, {"load_error": "\ud800"})
    assert seen.reply == TrialsReply(load_error="\\ud800")


def test_a_reply_that_can_still_change_is_a_crash(fd: int) -> None:
    os.ftruncate(fd, 1 << 16)
    with mmap.mmap(fd, 1 << 16):
        seen = report(fd, GOOD)
    assert seen.status is Status.CRASHED and "can still be written" in seen.error
