"""Executors on the host's side: one process for each GPU, restarted after a hang or a failure of its GPU."""

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
from typing import Any, TypeVar

from kernelquarry.pipeline.sandbox import protocol
from kernelquarry.pipeline.sandbox.exchange import SandboxError, memfd
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.closing import Closing

T = TypeVar("T")
log = logging.getLogger(__name__)

_START_S = 120.0  # for importing torch and making a context
_END_S = 10.0
_ATTEMPTS = 2
_MESSAGE = 1 << 16
_CAPACITY = 1 << 40  # bytes of a message: no limit, since both sides are trusted
_GUESTS = 4  # that share one GPU, in addition to the executor
_COMMAND = (sys.executable, "-P", "-m", "kernelquarry.pipeline.sandbox.executor.process")


class ExecutionStatus(StrEnum):
    """How an execution ended. Only DONE has results."""

    DONE = "done"
    FAULT = "fault"  # a launch failed, or a kernel wrote outside of its buffers
    MEMORY = "memory"  # the GPU has too little for the programs
    MALFORMED = "malformed"  # the programs do not have the tracer's form
    TIMED_OUT = "timed_out"
    DIED = "died"  # the executor died during this job


@dataclass(frozen=True, slots=True)
class GpuDescription:
    """Model, driver and limits of a GPU; a limit of 0 is unknown."""

    name: str
    target: str  # "sm_90"
    driver: str  # version
    bandwidth: float = 0.0  # of its memory, bytes a second
    peak: float = 0.0  # of its fastest arithmetic, operations a second
    cache: int = 0  # bytes of its last level
    memory: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class Execution:
    status: ExecutionStatus
    reply: Mapping[str, Any]  # empty unless the status is DONE
    tensors: Tensors
    error: str  # "" if the status is DONE
    seconds: float  # that a GPU was busy


class NotStarted(SandboxError):
    """An executor did not start: its GPU is missing or has failed."""


class Executor:
    """One executor process with one GPU. Not thread-safe."""

    description: GpuDescription | None = None  # None until it is ready

    def __init__(self, ordinal: int, command: Sequence[str] = _COMMAND) -> None:
        """Start the process; `wait` blocks until it is ready."""
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

    def wait(self) -> GpuDescription:
        """Wait until the executor is ready for its first job. Raises NotStarted."""
        if self.description:
            return self.description
        try:
            message = self._receive(_START_S)
        except (TimeoutError, OSError):
            message = b""
        if not message:
            raise NotStarted(f"no executor for GPU {self.ordinal}: {self._last_log_line()}")
        self.description = GpuDescription(**json.loads(message)["ready"])
        return self.description

    def run(self, request: Mapping[str, Any], tensors: Tensors, wall_s: float) -> Execution:
        """Run one job, see `process.execute`. Afterwards `usable` is true if the executor can run another job."""
        nonce = secrets.token_bytes(protocol.NONCE_BYTES)
        with contextlib.ExitStack() as stack:
            sent, received = (memfd(stack, name) for name in ("request", "reply"))
            protocol.write(sent, nonce, request, tensors, _CAPACITY)
            job = {"nonce": nonce.hex(), "capacity": _CAPACITY}
            started = time.monotonic()
            try:
                socket.send_fds(self._control, [json.dumps(job).encode()], [sent, received])
                message = self._receive(wall_s)
            except TimeoutError:
                return self._failed(ExecutionStatus.TIMED_OUT, f"no answer within {wall_s:g} s", wall_s)
            except OSError as error:
                return self._failed(ExecutionStatus.DIED, str(error))
            if not message:
                return self._failed(ExecutionStatus.DIED, self._last_log_line())
            body, results = protocol.read(received, nonce)
        self.usable = not body["ends"]
        status, seconds = ExecutionStatus(body["status"]), time.monotonic() - started
        return Execution(status, body["reply"], results, body["error"], seconds)

    def _failed(self, status: ExecutionStatus, error: str, seconds: float = 0.0) -> Execution:
        self.usable = False
        return Execution(status, {}, {}, error, seconds)

    def _receive(self, within_s: float) -> bytes:
        """Raises TimeoutError."""
        if not select.select([self._control], [], [], within_s)[0]:
            raise TimeoutError
        return self._control.recv(_MESSAGE)

    def _last_log_line(self) -> str:
        lines = os.pread(self._log, _MESSAGE, 0).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"

    def close(self) -> None:
        """Kill the process: no job is left that it could finish."""
        self.kill()
        self._control.close()
        self._process.wait(_END_S)
        os.close(self._log)

    def kill(self) -> None:
        """Kill the process; its job ends as DIED. Thread-safe."""
        self._process.kill()


class Gpus(Closing):
    """Executors of several GPUs of one model. Thread-safe; `run` waits until a GPU is free.

    A GPU serves its executor's job and guests at the same time, or one holder exclusively. To avoid deadlock, a thread
    that holds a GPU must not request another.
    """

    def __init__(self, ordinals: Sequence[int], command: Sequence[str] = _COMMAND) -> None:
        self._command = tuple(command)
        self._closed = threading.Event()
        self._changed = threading.Condition()  # guards all attributes below
        self._idle: dict[int, Executor | None] = dict.fromkeys(ordinals)  # GPUs without a job, longest idle first
        self._guests = dict.fromkeys(ordinals, 0)  # number of guests on each GPU
        self._reserved: set[int] = set()  # for an exclusive holder, who may still wait for the others to leave
        self._started: set[Executor] = set()
        # Replacements for executors that may fail, on GPUs where one has failed before. A start takes seconds, and
        # where one candidate makes a GPU fail, as a model's answers do, others follow.
        self._spare: dict[int, Executor] = {}
        self._excluded: set[int] = set()  # GPUs whose executors no longer start
        self._description: GpuDescription | None = None
        self._busy_s = dict.fromkeys(ordinals, 0.0)
        self._reported_s = dict(self._busy_s)  # the part that `busy_seconds` has returned
        self._began: float | None = None  # start of the first job

    def usage(self) -> dict[int, float]:
        """Share of the time since the first job that each executor was busy, by ordinal. Excludes guests' work."""
        with self._changed:
            elapsed = time.monotonic() - self._began if self._began is not None else 0.0
            return {ordinal: busy_s / elapsed if elapsed else 0.0 for ordinal, busy_s in self._busy_s.items()}

    def busy_seconds(self) -> dict[int, float]:
        """Seconds that each executor was busy since the previous call, by ordinal."""
        with self._changed:
            busy_s = {ordinal: total_s - self._reported_s[ordinal] for ordinal, total_s in self._busy_s.items()}
            self._reported_s = dict(self._busy_s)
            return busy_s

    @property
    def description(self) -> GpuDescription:
        """The GPUs' model and limits; starts an executor if none has started yet. Raises SandboxError."""
        if self._description is None:
            with self._lease():
                pass
        assert self._description is not None
        return self._description

    def run(self, request: Mapping[str, Any], tensors: Tensors, wall_s: float) -> Execution:
        """Execute a job on the next free GPU; a new executor replaces one that ended.

        If the executor dies, the job is retried once on a new one; if that dies too, the job is the cause. A GPU whose
        executor does not start again is excluded from then on, unless it is the last.

        Raises:
            SandboxError: no executor can be started, or the GPUs are closed.
        """
        for _ in range(_ATTEMPTS):
            with self._lease() as executor:
                self._began = self._began or time.monotonic()
                execution = executor.run(request, tensors, wall_s)
                with self._changed:
                    self._busy_s[executor.ordinal] += execution.seconds
            if execution.status != ExecutionStatus.DIED:
                break
        return execution

    @contextlib.contextmanager
    def share(self) -> Iterator[int]:
        """Lend one guest a share of a GPU; yields the ordinal. Raises SandboxError if the GPUs are closed."""
        with self._changed:
            ordinal = self._wait_for(self._least_shared)
            self._guests[ordinal] += 1
        try:
            yield ordinal
        finally:
            with self._changed:
                self._guests[ordinal] -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def reserve(self) -> Iterator[int]:
        """Lend a GPU exclusively, once its jobs and guests have ended; yields the ordinal.

        Raises SandboxError if the GPUs are closed.
        """
        with self._changed:
            ordinal = self._wait_for(lambda: next(filter(self._is_available, self._guests), None))
            self._reserved.add(ordinal)
        try:
            with self._changed:
                self._wait_for(lambda: True if ordinal in self._idle and not self._guests[ordinal] else None)
            self._wait_for_spare(ordinal)
            yield ordinal
        finally:
            with self._changed:
                self._reserved.discard(ordinal)
                self._changed.notify_all()

    @contextlib.contextmanager
    def _lease(self) -> Iterator[Executor]:
        while True:
            with self._changed:
                ordinal = self._wait_for(lambda: next(filter(self._is_available, self._idle), None))
                executor = self._idle.pop(ordinal)
            try:
                executor = executor or self._start(ordinal)
                break
            except NotStarted as error:
                if not self._exclude(ordinal):
                    raise
                log.error("%s: this GPU is not used any more: run `nvidia-smi` to see its state", error)
            finally:
                if executor is None:
                    self._release(ordinal, None)
        try:
            yield executor
        finally:
            used, executor = executor, None
            try:
                if used.usable and not self._closed.is_set():
                    executor = used
                else:
                    self._end(used)
                    self._start_spare(ordinal)
            finally:
                self._release(ordinal, executor)

    def _exclude(self, ordinal: int) -> bool:
        """Stop using a GPU. Returns False, and changes nothing, if it is the last."""
        with self._changed:
            if not set(self._guests) - self._excluded - {ordinal}:
                return False
            self._excluded.add(ordinal)
            return True

    def _release(self, ordinal: int, executor: Executor | None) -> None:
        with self._changed:
            self._idle[ordinal] = executor
            self._changed.notify_all()

    def _is_available(self, ordinal: int) -> bool:
        return ordinal not in self._reserved and ordinal not in self._excluded

    def _wait_for(self, find: Callable[[], T | None]) -> T:
        """Wait until `find` returns a value. Raises SandboxError if the GPUs are closed."""
        while True:
            if self._closed.is_set():
                raise SandboxError("the GPUs are closed")
            if (found := find()) is not None:
                return found
            self._changed.wait()

    def _least_shared(self) -> int | None:
        """The available GPU with the fewest guests; None if all are full."""
        places = [n for n, guests in self._guests.items() if self._is_available(n) and guests < _GUESTS]
        return min(places, key=self._guests.__getitem__, default=None)

    def _start(self, ordinal: int) -> Executor:
        with self._changed:
            spare = self._spare.pop(ordinal, None)
        executor = spare or self._launch(ordinal)
        try:
            description = executor.wait()
        except BaseException:
            self._end(executor)
            raise
        with self._changed:
            first = self._description = self._description or description
        if description != first:
            self._end(executor)
            raise SandboxError(f"GPU {ordinal} is no {first.name}, as another is: name GPUs of one kind in --gpus")
        if spare:
            self._start_spare(ordinal)
        return executor

    def _launch(self, ordinal: int) -> Executor:
        executor = Executor(ordinal, self._command)
        with self._changed:
            self._started.add(executor)
        return executor

    def _start_spare(self, ordinal: int) -> None:
        """Start a replacement executor. Only the holder of the GPU may call this."""
        if not self._closed.is_set():
            self._store_spare(ordinal, self._launch(ordinal))

    def _wait_for_spare(self, ordinal: int) -> None:
        """Wait for a starting spare executor, which uses the GPU. Only its exclusive holder may call this."""
        with self._changed:
            spare = self._spare.pop(ordinal, None)
        if spare is None:
            return
        try:
            spare.wait()
        except NotStarted:
            self._end(spare)
        else:
            self._store_spare(ordinal, spare)

    def _store_spare(self, ordinal: int, spare: Executor) -> None:
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
        """End all executors. Running jobs raise, or end as DIED."""
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
