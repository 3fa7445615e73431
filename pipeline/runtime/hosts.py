"""Hosts: processes that give records to guests, wait, and judge the replies.

A host spends about a tenth of a core-second on a verdict, under its interpreter's lock. One process therefore judges
six to ten candidates a second, however many cores its guests have. A worker with many guests has several hosts.
"""

from __future__ import annotations

import math
import multiprocessing
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

from kernelquarry.pipeline.sandbox import Sandbox, SandboxError, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Outcome

from . import events
from .boundary import Record, run_guarded
from .processes import end_with_parent

_GUESTS = 6  # of one host, where there are several

Function = Callable[..., Outcome[Any]]
Service = Callable[[], AbstractContextManager[Any]]


class Host(Protocol):
    """Applies a function to records, called by several threads at once."""

    def start(self) -> None:
        """Start what the first record needs. Raises SandboxError."""

    def run(self, record: Record) -> Outcome[Any]:
        """The record's outcome. Raises what `run_guarded` raises."""

    def busy_seconds(self) -> Mapping[int, float]:
        """Seconds that each GPU was busy since the previous call, by ordinal."""


@contextmanager
def open_host(
    function: Function, jobs: Sequence[str], settings: SandboxSettings, service: Service | None = None
) -> Iterator[Host]:
    """A host in this process: a sandbox, and a service such as a client of models, which `function` gets too."""
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(settings))
        if sandbox.gpus is not None:
            stack.enter_context(events.showing(partial(_usage, sandbox.gpus.usage)))
        yield _Local(function, jobs, sandbox, () if service is None else (stack.enter_context(service()),))


@contextmanager
def open_hosts(function: Function, jobs: Sequence[str], settings: SandboxSettings) -> Iterator[Host]:
    """Host processes for the guests of `settings`; this process alone if one keeps them busy."""
    number = math.ceil(settings.workers / _GUESTS)
    if number == 1:
        with open_host(function, jobs, settings) as host:
            yield host
        return
    hosts = _Processes(function, jobs, settings, number)
    with closing(hosts), events.showing(partial(_usage, hosts.usage)):
        yield hosts


class _Local:
    def __init__(self, function: Function, jobs: Sequence[str], sandbox: Sandbox, services: Sequence[Any]) -> None:
        self._function, self._jobs, self._sandbox, self._services = function, jobs, sandbox, services

    def start(self) -> None:
        self._sandbox.start(self._jobs)

    def run(self, record: Record) -> Outcome[Any]:
        return run_guarded(self._function, record, self._sandbox, *self._services)

    def busy_seconds(self) -> Mapping[int, float]:
        return self._sandbox.gpus.busy_seconds() if self._sandbox.gpus is not None else {}


class _Processes:
    """Hosts in processes of their own. A connection carries one record at a time, and each guest has one."""

    def __init__(self, function: Function, jobs: Sequence[str], settings: SandboxSettings, number: int) -> None:
        self._arguments, self._settings, self._number = (function, jobs), settings, number
        self._free = queue.LifoQueue[Connection]()  # few records stay with few hosts
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._connections: list[Connection] = []
        self._lock = threading.Lock()  # guards the attributes above, and the two below
        self._busy_s = dict.fromkeys(settings.gpus, 0.0)
        self._reported_s = dict(self._busy_s)  # the part that `busy_seconds` has returned
        self._began = 0.0

    def start(self) -> None:
        self._began = time.monotonic()
        self._start_host()

    def _start_host(self) -> None:
        """Start the next host, if one is left. Hosts start when the guests of the others are all at work."""
        spawn = multiprocessing.get_context("spawn")
        with self._lock:
            n = len(self._processes)
            if n == self._number:
                return
            guests = len(range(n, self._settings.workers, self._number))
            ours, theirs = zip(*(spawn.Pipe() for _ in range(guests)), strict=True)
            settings = replace(self._settings, workers=guests)
            process = spawn.Process(target=_serve, args=(*self._arguments, settings, theirs), daemon=True)
            process.start()
            self._processes.append(process)
            self._connections += ours
        for connection in theirs:
            connection.close()  # so that the end of the process ends the connection
        for connection in ours:
            self._free.put(connection)

    def run(self, record: Record) -> Outcome[Any]:
        if self._free.empty():
            self._start_host()
        connection = self._free.get()
        try:
            connection.send(record)
            outcome, busy_s = connection.recv()
        except (EOFError, ConnectionError):
            raise UserError(
                f"a host process ended while it worked on {record.id}: the machine may lack memory: run the command "
                "again with fewer --workers, and it goes on where it stopped"
            ) from None
        finally:
            self._free.put(connection)
        with self._lock:
            for ordinal, seconds in busy_s.items():
                self._busy_s[ordinal] += seconds
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def busy_seconds(self) -> Mapping[int, float]:
        with self._lock:
            busy_s = {ordinal: total_s - self._reported_s[ordinal] for ordinal, total_s in self._busy_s.items()}
            self._reported_s = dict(self._busy_s)
        return busy_s

    def usage(self) -> Mapping[int, float]:
        """Share of the time since the start that each GPU was busy, at most 1 though hosts may use it at once."""
        elapsed_s = time.monotonic() - self._began
        with self._lock:
            return {ordinal: min(1.0, busy_s / elapsed_s) for ordinal, busy_s in self._busy_s.items()}

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join()


def _serve(
    function: Function, jobs: Sequence[str], settings: SandboxSettings, connections: Sequence[Connection]
) -> None:
    """The main function of a host process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C too, and ends its hosts
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that the sandbox removes its files
    end_with_parent()
    with open_host(function, jobs, settings) as host:
        failure = None
        try:
            host.start()
        except SandboxError as error:
            failure = error
        arguments = [(host, connection, failure) for connection in connections]
        threads = [threading.Thread(target=_answer, args=each, daemon=True) for each in arguments]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _answer(host: Host, connection: Connection, failure: SandboxError | None) -> None:
    """Receive records and send outcomes, with the seconds that GPUs were busy, until the connection is closed."""
    while True:
        try:
            record = connection.recv()
        except EOFError:
            return
        outcome: Any = failure
        if failure is None:
            try:
                outcome = host.run(record)
            except (UserError, OSError) as error:  # the machine lacks what the stage needs: the parent raises it
                outcome = error
        connection.send((outcome, host.busy_seconds()))


def _usage(usage: Callable[[], Mapping[int, float]]) -> str:
    return "  ".join(f"GPU {ordinal} {share:.0%} busy" for ordinal, share in usage().items())
