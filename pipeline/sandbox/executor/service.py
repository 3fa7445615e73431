"""Executors for the host: one process a GPU, started when it is needed, ended when it hangs or its GPU failed."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, TypeVar

from kernelquarry.pipeline.sandbox import protocol
from kernelquarry.pipeline.sandbox.exchange import SandboxError, memfd
from kernelquarry.pipeline.sandbox.protocol import Tensors

T = TypeVar("T")
log = logging.getLogger(__name__)

_START_S = 120.0  # for importing torch and making a context
_END_S = 10.0
_ATTEMPTS = 2
_MESSAGE = 1 << 16
_CAPACITY = 1 << 40  # bytes of a message; both sides are ours
_GUESTS = 4  # on one GPU at once, beside the executor
_COMMAND = (sys.executable, "-P", "-m", "kernelquarry.pipeline.sandbox.executor.process")


class How(StrEnum):
    """How an execution ended. Only DONE has results."""

    DONE = "done"
    FAULT = "fault"  # a launch failed, or a kernel wrote outside of its buffers
    MEMORY = "memory"  # the GPU has too little for the programs
    MALFORMED = "malformed"  # the programs are not as a guest of ours writes them
    TIMED_OUT = "timed_out"
    DIED = "died"  # the executor, under this job


@dataclass(frozen=True, slots=True)
class Described:
    """A GPU as its executor finds it."""

    name: str
    target: str  # "sm_90"
    driver: str  # version
    # Its limits, 0 where they are not known.
    bandwidth: float = 0.0  # of its memory, bytes a second
    peak: float = 0.0  # of its fastest arithmetic, operations a second
    cache: int = 0  # bytes of its last level


@dataclass(frozen=True, slots=True)
class Execution:
    how: How
    reply: Mapping[str, Any]  # empty if it is not done
    tensors: Tensors
    why: str  # it is not done
    seconds: float  # that a GPU was busy with it


class NotStarted(SandboxError):
    """An executor did not start: its GPU is not there, or not any more."""


class Executor:
    """One process with one GPU. Not thread-safe."""

    described: Described | None = None  # None until it is ready

    def __init__(self, ordinal: int, command: Sequence[str] = _COMMAND) -> None:
        """It starts; `wait` says when it is ready."""
        self.usable, self.ordinal = True, ordinal
        self._log = os.memfd_create("log")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(ordinal)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )

    def wait(self) -> Described:
        """What it is, when it is ready for its first job. Raises: NotStarted."""
        if self.described:
            return self.described
        try:
            message = self._receive(_START_S)
        except (TimeoutError, OSError):
            message = b""
        if not message:
            raise NotStarted(f"no executor for GPU {self.ordinal}: {self._said()}")
        self.described = Described(**json.loads(message)["ready"])
        return self.described

    def run(self, request: Mapping[str, Any], tensors: Tensors, wall_s: float) -> Execution:
        """See `process.execute`. `usable` says whether it can run another job."""
        nonce = secrets.token_bytes(protocol.NONCE_BYTES)
        with contextlib.ExitStack() as stack:
            asked, answered = (memfd(stack, name) for name in ("request", "reply"))
            protocol.write(asked, nonce, request, tensors, _CAPACITY)
            job = {"nonce": nonce.hex(), "capacity": _CAPACITY}
            started = time.monotonic()
            try:
                socket.send_fds(self._control, [json.dumps(job).encode()], [asked, answered])
                message = self._receive(wall_s)
            except TimeoutError:
                return self._lost(How.TIMED_OUT, f"no answer within {wall_s:g} s", wall_s)
            except OSError as error:
                return self._lost(How.DIED, str(error))
            if not message:
                return self._lost(How.DIED, self._said())
            body, results = protocol.read(answered, nonce)
        self.usable = not body["ends"]
        return Execution(How(body["how"]), body["reply"], results, body["why"], time.monotonic() - started)

    def _lost(self, how: How, why: str, seconds: float = 0.0) -> Execution:
        self.usable = False
        return Execution(how, {}, {}, why, seconds)

    def _receive(self, within_s: float) -> bytes:
        """Raises TimeoutError."""
        if not select.select([self._control], [], [], within_s)[0]:
            raise TimeoutError
        return self._control.recv(_MESSAGE)

    def _said(self) -> str:
        lines = os.pread(self._log, _MESSAGE, 0).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def close(self) -> None:
        """It has nothing to finish: what it was asked for is known or lost."""
        self.kill()
        self._control.close()
        self._process.wait(_END_S)
        os.close(self._log)

    def kill(self) -> None:
        """A job that runs on it ends as DIED. Any thread may call this."""
        self._process.kill()


class Gpus:
    """Executors for several GPUs of one kind behind one call. Thread-safe; `run` waits until a GPU is free.

    A GPU is lent to its executor's job and to guests at the same time, or to one holder alone. Who holds one asks for
    no other, so that none waits for ever.
    """

    def __init__(self, ordinals: Sequence[int], command: Sequence[str] = _COMMAND) -> None:
        self._command = tuple(command)
        self._closed = threading.Event()
        self._changed = threading.Condition()  # of all below
        self._idle: dict[int, Executor | None] = dict.fromkeys(ordinals)  # without a job; the longest first
        self._guests = dict.fromkeys(ordinals, 0)  # guests on each
        self._reserved: set[int] = set()  # for one holder alone, who may still wait for the others to leave
        self._started: set[Executor] = set()
        # Of GPUs on which one has failed: the next, which starts beside the one that works. It takes seconds, and where
        # one candidate makes a GPU fail, as a model's answers do, others follow.
        self._spare: dict[int, Executor] = {}
        self._lost: set[int] = set()  # whose executors do not start any more, while another's does
        self._described: Described | None = None
        self._busy_s = dict.fromkeys(ordinals, 0.0)
        self._told_s = dict(self._busy_s)  # of it, by `spent`
        self._began: float | None = None  # when the first job did

    def usage(self) -> dict[int, float]:
        """Ordinal -> share of the time since the first job that its executor was busy. Guests' work is not seen."""
        with self._changed:
            elapsed = time.monotonic() - self._began if self._began is not None else 0.0
            return {ordinal: busy_s / elapsed if elapsed else 0.0 for ordinal, busy_s in self._busy_s.items()}

    def spent(self) -> dict[int, float]:
        """Ordinal -> seconds that its executor was busy since this was asked before."""
        with self._changed:
            spent = {ordinal: busy_s - self._told_s[ordinal] for ordinal, busy_s in self._busy_s.items()}
            self._told_s = dict(self._busy_s)
            return spent

    @property
    def described(self) -> Described:
        """What they are; starts an executor if none has been. Raises: SandboxError."""
        if self._described is None:
            with self._lease():
                pass
        assert self._described is not None
        return self._described

    def run(self, request: Mapping[str, Any], tensors: Tensors, wall_s: float) -> Execution:
        """Execute on the next GPU that is free; a new executor takes the place of one that ended.

        A job whose executor died under it runs once more on a new one; if that dies too, the job is the cause. A GPU
        whose executor does not start again is left out from then on, while there is another.

        Raises:
            SandboxError: no executor can be started, or this is closed.
        """
        for _ in range(_ATTEMPTS):
            with self._lease() as executor:
                self._began = self._began or time.monotonic()
                execution = executor.run(request, tensors, wall_s)
                with self._changed:
                    self._busy_s[executor.ordinal] += execution.seconds
            if execution.how != How.DIED:
                break
        return execution

    @contextlib.contextmanager
    def share(self) -> Iterator[int]:
        """The ordinal of a GPU for one guest, when there is a place on one. Raises: SandboxError: this is closed."""
        with self._changed:
            ordinal = self._wait_for(self._with_place)
            self._guests[ordinal] += 1
        try:
            yield ordinal
        finally:
            with self._changed:
                self._guests[ordinal] -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[int]:
        """The ordinal of a GPU, when the jobs and guests on it have ended; none comes until it is given back.

        Raises SandboxError: this is closed.
        """
        with self._changed:
            ordinal = self._wait_for(lambda: next(filter(self._is_open, self._guests), None))
            self._reserved.add(ordinal)
        try:
            with self._changed:
                self._wait_for(lambda: True if ordinal in self._idle and not self._guests[ordinal] else None)
            self._settle(ordinal)
            yield ordinal
        finally:
            with self._changed:
                self._reserved.discard(ordinal)
                self._changed.notify_all()

    @contextlib.contextmanager
    def _lease(self) -> Iterator[Executor]:
        while True:
            with self._changed:
                ordinal = self._wait_for(lambda: next(filter(self._is_open, self._idle), None))
                executor = self._idle.pop(ordinal)
            try:
                executor = executor or self._start(ordinal)
                break
            except NotStarted as error:
                if not self._give_up(ordinal):
                    raise
                log.error("%s: this GPU is left out from now on", error)
            finally:
                if executor is None:
                    self._give_back(ordinal, None)
        try:
            yield executor
        finally:
            used, executor = executor, None
            try:
                if used.usable and not self._closed.is_set():
                    executor = used
                else:
                    self._end(used)
                    self._prepare(ordinal)
            finally:
                self._give_back(ordinal, executor)

    def _give_up(self, ordinal: int) -> bool:
        """Leave a GPU out, if it is not the last."""
        with self._changed:
            if not set(self._guests) - self._lost - {ordinal}:
                return False
            self._lost.add(ordinal)
            return True

    def _give_back(self, ordinal: int, executor: Executor | None) -> None:
        with self._changed:
            self._idle[ordinal] = executor
            self._changed.notify_all()

    def _is_open(self, ordinal: int) -> bool:
        return ordinal not in self._reserved and ordinal not in self._lost

    def _wait_for(self, find: Callable[[], T | None]) -> T:
        """What `find` finds, when it does. Raises: SandboxError: this is closed."""
        while True:
            if self._closed.is_set():
                raise SandboxError("the GPUs are closed")
            if (found := find()) is not None:
                return found
            self._changed.wait()

    def _with_place(self) -> int | None:
        open_ones = [n for n, guests in self._guests.items() if self._is_open(n) and guests < _GUESTS]
        return min(open_ones, key=self._guests.__getitem__, default=None)

    def _start(self, ordinal: int) -> Executor:
        with self._changed:
            spare = self._spare.pop(ordinal, None)
        executor = spare or self._begin(ordinal)
        try:
            described = executor.wait()
        except BaseException:
            self._end(executor)
            raise
        with self._changed:
            first = self._described = self._described or described
        if described != first:
            self._end(executor)
            raise SandboxError(f"GPU {ordinal} is no {first.name}, as another is: name GPUs of one kind")
        if spare:
            self._prepare(ordinal)
        return executor

    def _begin(self, ordinal: int) -> Executor:
        executor = Executor(ordinal, self._command)
        with self._changed:
            self._started.add(executor)
        return executor

    def _prepare(self, ordinal: int) -> None:
        """Begin the next executor. Only who holds the GPU calls this."""
        if not self._closed.is_set():
            self._keep(ordinal, self._begin(ordinal))

    def _settle(self, ordinal: int) -> None:
        """Wait for the next executor, which uses the GPU while it starts. Only who is alone there calls this."""
        with self._changed:
            spare = self._spare.pop(ordinal, None)
        if spare is None:
            return
        try:
            spare.wait()
        except NotStarted:
            self._end(spare)
        else:
            self._keep(ordinal, spare)

    def _keep(self, ordinal: int, spare: Executor) -> None:
        with self._changed:
            if not self._closed.is_set():
                self._spare[ordinal] = spare
                return
        self._end(spare)

    def _end(self, executor: Executor) -> None:
        with self._changed:
            self._started.discard(executor)
        executor.close()

    def close(self) -> None:
        """End all executors. Jobs that are running raise, or end as DIED."""
        self._closed.set()
        with self._changed:
            for executor in self._started:
                executor.kill()
            idle = [executor for executor in self._idle.values() if executor is not None]
            idle += self._spare.values()
            self._idle, self._spare = dict.fromkeys(self._idle), {}
            self._changed.notify_all()
        for executor in idle:
            self._end(executor)

    def __enter__(self) -> Gpus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
