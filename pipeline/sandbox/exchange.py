"""The host's exchange with a warm process about one job: request, reply, output, and the wait for its end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import select
import socket
import time
from dataclasses import asdict
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError

from . import protocol
from .ending import Ending
from .job import Job
from .jobs.kind import to_json

_KILL_S = 10.0  # for the warm process to kill a guest
_LONGEST_POLL_S = 3600.0
_MESSAGE = 1 << 16  # bytes
_MAX_OUTPUT = 1 << 16  # bytes of stdout and stderr that are kept; the rest is read and dropped
_MAX_REQUEST = 1 << 40  # bytes: no limit, since the host is trusted
_MEBIBYTE = 1 << 20


class SandboxError(UserError):
    """The sandbox itself failed; the job is not the cause."""


class WarmProcessDied(SandboxError):
    """The warm process ended, or had to be killed, during a job."""


class Exchange:
    """The file descriptors of one job: request and reply in sealed memory, a channel, the guest's output.

    The warm process kills the guest when the host closes its side of the channel or exits.
    """

    def __init__(self, job: Job[Any, Any]) -> None:
        """Raises ProtocolError if the request is not strict JSON, or a tensor has no plain memory."""
        self._job = job
        self.nonce = secrets.token_bytes(protocol.NONCE_BYTES)
        with contextlib.ExitStack() as stack:
            self._request = memfd(stack, "request")
            protocol.write(self._request, self.nonce, to_json(job.request), job.tensors, _MAX_REQUEST)
            protocol.seal(self._request)
            self.reply = memfd(stack, "reply")
            os.ftruncate(self.reply, job.limits.output_mb * _MEBIBYTE)
            fcntl.fcntl(self.reply, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            self._channel, self._their_channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(self._channel)
            stack.enter_context(self._their_channel)
            self._output, self._their_output = os.pipe()
            stack.callback(os.close, self._output)
            self._their_end = stack.enter_context(open(self._their_output, "wb"))
            os.set_blocking(self._output, False)
            self._stack = stack.pop_all()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def run(self, control: socket.socket, scratch: str) -> tuple[Ending, bytes, float]:
        """Send the job and wait until its guest is dead. Returns how it ended, its output, and the wall-clock seconds.

        Raises:
            WarmProcessDied: the job's outcome is unknown.
            SandboxError: no guest could be started.
        """
        started = time.monotonic()
        job = self._job
        message = {
            "kind": job.kind.name,
            "nonce": self.nonce.hex(),
            "scratch": scratch,
            "limits": asdict(job.limits),
        }
        fds = [self._their_channel.fileno(), self._request, self.reply, self._their_output]
        try:
            socket.send_fds(control, [json.dumps(message).encode()], fds)
        except OSError as error:
            raise WarmProcessDied(f"the warm process is gone: {error}") from error
        self._their_channel.close()
        self._their_end.close()
        ending, output = self._wait(started + self._job.limits.wall_s)
        return ending, output, time.monotonic() - started

    def _wait(self, deadline: float) -> tuple[Ending, bytes]:
        """Wait for the guest's end; kill it at the deadline. Raises WarmProcessDied if that takes too long."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._output, select.POLLIN)
        kept = b""
        late = False
        while True:
            left = deadline - time.monotonic()
            if left <= 0 and late:
                raise WarmProcessDied("the warm process did not kill a guest")
            if left <= 0:
                late, deadline = True, time.monotonic() + _KILL_S
                self._channel.shutdown(socket.SHUT_WR)
                continue
            ready = {fd for fd, _ in poll.poll(min(left, _LONGEST_POLL_S) * 1000)}
            if self._output in ready:
                data = self._read_output()
                kept += data[: _MAX_OUTPUT - len(kept)]
                if not data:
                    poll.unregister(self._output)
            if self._channel.fileno() in ready:
                ending = self._receive()
                kept += self._read_output()[: _MAX_OUTPUT - len(kept)]
                return ending, kept

    def _receive(self) -> Ending:
        message = self._channel.recv(_MESSAGE)
        if not message:
            raise WarmProcessDied("the warm process died")
        answer = json.loads(message)
        if "failed" in answer:
            raise SandboxError(f"no guest could be started: {answer['failed']}")
        return Ending(**answer)

    def _read_output(self) -> bytes:
        """Read without blocking: a process that outlived the guest could hold the other end open."""
        try:
            return os.read(self._output, _MAX_OUTPUT)
        except BlockingIOError:
            return b""


def memfd(stack: contextlib.ExitStack, name: str) -> int:
    """A sealable memory file for one message; `stack` closes it."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, fd)
    return fd
