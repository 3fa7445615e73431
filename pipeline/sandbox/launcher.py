"""The host's side of one warm process: start it, send it jobs, say how each ended, end it."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import protocol
from .job import Job, Report, Status
from .layers import OFF
from .settings import SandboxSettings

_BOOT = Path(__file__).resolve().parent / "guest" / "boot.py"
_START_S = 180.0  # for importing torch from a cold disk
_KILL_S = 10.0  # for a guest to be dead after its deadline
_MESSAGE = 1 << 16
_MAX_OUTPUT = 1 << 16  # bytes of stdout and stderr that are kept; the rest is read and dropped
_MEBIBYTE = 1 << 20

# What a warm process of a kind has in its environment beside what all have.
_ENVIRONMENTS: dict[str, dict[str, str]] = {"interpret": {"TRITON_INTERPRET": "1"}}
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "guest",
    "LOGNAME": "guest",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


class SandboxError(RuntimeError):
    """The sandbox failed, not the job."""


class ZygoteDied(SandboxError):
    """The warm process ended while a job was on its way."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a guest ended, as its parent saw it."""

    status: int  # as from wait(2)
    by: str  # "", or why the parent killed it
    cpu_s: float
    peak_kb: int


class Zygote:
    """One warm process, which serves any number of threads at once."""

    def __init__(self, kind: str, folder: Path, settings: SandboxSettings) -> None:
        """Start it and wait until it is warm.

        Raises:
            SandboxError: it did not start, or a layer that the settings require is missing.
        """
        self.kind = kind
        self._folder = folder
        folder.mkdir(parents=True)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log = os.memfd_create("zygote-stderr")
        home = {"HOME": str(folder), "TMPDIR": str(folder)}
        with theirs:
            self._process = subprocess.Popen(
                [settings.python, "-I", "-W", "ignore", str(_BOOT), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                env=_ENVIRONMENT | home | _ENVIRONMENTS.get(kind, {}),
                cwd=folder,
                start_new_session=True,  # Ctrl-C is for the host alone
            )
        self.layers = self._greet({"kind": kind, "folder": str(folder), "host_pid": os.getpid()})
        missing = [name for name in settings.require if self.layers[name].startswith(OFF)]
        if missing:
            self.close()
            raise SandboxError("; ".join(f"the layer {name!r} is required, and {self.layers[name]}" for name in missing))

    def _greet(self, config: dict[str, Any]) -> dict[str, str]:
        self._control.settimeout(_START_S)
        try:
            self._control.send(json.dumps(config).encode())
            message = self._control.recv(_MESSAGE)
        except OSError as error:
            message = b""
            reason = f" ({error})"
        else:
            reason = ""
        if not message:
            self.close()
            log = os.pread(self._log, _MESSAGE, max(0, os.fstat(self._log).st_size - 2000)).decode(errors="replace")
            raise SandboxError(f"the warm process for {self.kind!r} did not start{reason}: {log}")
        self._control.settimeout(None)
        return dict(json.loads(message)["ready"])

    def run(self, job: Job) -> Report:
        """Run one job in a fresh guest.

        Raises:
            ZygoteDied: the warm process is gone, so nothing is known about the job.
            ProtocolError: the request is no strict JSON or too large.
        """
        nonce = secrets.token_bytes(protocol.NONCE_BYTES)
        with contextlib.ExitStack() as stack:
            request = stack.enter_context(_memfd("request"))
            protocol.write(request, nonce, job.request, job.tensors, capacity=1 << 40)
            protocol.seal(request)
            reply = stack.enter_context(_memfd("reply"))
            os.ftruncate(reply, job.limits.output_mb * _MEBIBYTE)
            fcntl.fcntl(reply, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            scratch = self._folder / nonce.hex()
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            started = time.monotonic()
            ended, timed_out, output = self._exchange(job, nonce, str(scratch), request, reply)
            return _report(job, ended, timed_out, output, time.monotonic() - started, reply, nonce)

    def _exchange(
        self, job: Job, nonce: bytes, scratch: str, request: int, reply: int
    ) -> tuple[_Ended, bool, bytes]:
        """Send the job, wait until its guest is dead; whether it was late, and what it printed."""
        deadline = time.monotonic() + job.limits.wall_s
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(write_end, True)
        try:
            with channel:
                message = {"nonce": nonce.hex(), "scratch": scratch, "limits": asdict(job.limits)}
                fds = array.array("i", [theirs.fileno(), request, reply, write_end])
                try:
                    self._control.sendmsg(
                        [json.dumps(message).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
                    )
                except OSError as error:
                    raise ZygoteDied(f"the warm process for {self.kind!r} is gone: {error}") from error
                finally:
                    theirs.close()
                    os.close(write_end)
                return _await(channel, output, deadline, self.kind)
        finally:
            os.close(output)

    def close(self) -> None:
        """End the process with all its guests and files."""
        self._control.close()
        try:
            self._process.wait(_KILL_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(_KILL_S)
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def _memfd(name: str) -> Any:
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        yield fd
    finally:
        os.close(fd)


def _await(channel: socket.socket, output: int, deadline: float, kind: str) -> tuple[_Ended, bool, bytes]:
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(output, select.POLLIN)
    kept = b""
    timed_out = False
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            if timed_out:
                raise ZygoteDied(f"the warm process for {kind!r} did not kill a guest")
            timed_out, deadline = True, time.monotonic() + _KILL_S
            channel.shutdown(socket.SHUT_WR)
            continue
        ready = {fd for fd, _ in poll.poll(left * 1000)}
        if output in ready:
            data = _read_some(output)
            kept += data[: _MAX_OUTPUT - len(kept)]
            if not data:
                poll.unregister(output)
        if channel.fileno() in ready:
            message = channel.recv(_MESSAGE)
            if not message:
                raise ZygoteDied(f"the warm process for {kind!r} died")
            while (data := _read_some(output)) and len(kept) < _MAX_OUTPUT:
                kept += data[: _MAX_OUTPUT - len(kept)]
            return _Ended(**json.loads(message)), timed_out, kept


def _read_some(fd: int) -> bytes:
    try:
        return os.read(fd, _MAX_OUTPUT)
    except BlockingIOError:
        return b""


def _report(
    job: Job, ended: _Ended, timed_out: bool, output: bytes, wall_s: float, reply: int, nonce: bytes
) -> Report:
    status, error, traceback, body, tensors = Status.CRASHED, _cause(ended), "", None, {}
    if timed_out:
        status, error = Status.TIMED_OUT, f"no reply within {job.limits.wall_s:g} s"
    elif ended.by == "memory":
        status, error = Status.OUT_OF_MEMORY, f"more than {job.limits.memory_mb} MiB"
    elif ended.by == "processes":
        error = f"more than {job.limits.processes} processes"
    elif _out_of_cpu_time(ended, job.limits.cpu_s):
        status, error = Status.TIMED_OUT, f"more than {job.limits.cpu_s} s of CPU time"
    elif not error:
        try:
            protocol.seal(reply)
            claim, tensors = protocol.read(reply, nonce)
            status, body, error, traceback = _claim(claim)
        except protocol.ProtocolError as fault:
            error = str(fault)
    return Report(
        status=status,
        reply=body,
        tensors=tensors,
        error=error,
        traceback=traceback,
        stderr=output.decode(errors="replace"),
        wall_s=wall_s,
        cpu_s=ended.cpu_s,
        peak_mb=ended.peak_kb / 1024,
    )


def _cause(ended: _Ended) -> str:
    if os.WIFSIGNALED(ended.status):
        return f"killed by {signal.Signals(os.WTERMSIG(ended.status)).name}"
    code = os.WEXITSTATUS(ended.status)
    return f"exited with {code}" if code else ""


def _out_of_cpu_time(ended: _Ended, limit_s: int) -> bool:
    signalled = os.WTERMSIG(ended.status) if os.WIFSIGNALED(ended.status) else 0
    return signalled == signal.SIGXCPU or (signalled == signal.SIGKILL and ended.cpu_s >= limit_s)


_CLAIMS = {"raised": Status.RAISED, "memory": Status.OUT_OF_MEMORY, "reply": Status.CRASHED}


def _claim(body: dict[str, Any]) -> tuple[Status, dict[str, Any] | None, str, str]:
    if body.keys() == {"reply"} and isinstance(body["reply"], dict):
        return Status.OK, body["reply"], "", ""
    if body.keys() == {"ended", "error", "traceback"} and all(isinstance(value, str) for value in body.values()):
        if body["ended"] in _CLAIMS:
            return _CLAIMS[body["ended"]], None, body["error"], body["traceback"]
    raise protocol.ProtocolError("a reply of another form")
