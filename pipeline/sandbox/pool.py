"""The sandbox: a bounded number of guests at once, forked from one warm process for each kind of job, and the GPUs."""

from __future__ import annotations

import copy
import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelquarry.pipeline.schema.closing import Closing

from .exchange import SandboxError, WarmProcessDied
from .executor.service import Gpus
from .job import Job, Report, Status
from .jobs import KINDS
from .jobs.kind import Reply, Request
from .kernel_cache import KernelCache
from .launcher import WarmProcess
from .settings import SandboxSettings

_ATTEMPTS = 2  # for one job, each on another warm process


class Sandbox(Closing):
    """Runs jobs in guests. Thread-safe; `run` blocks until a slot is free and its job has ended.

    A warm process starts with the first job of its kind. It ends with `close`, at the end of the interpreter, or when
    this process dies for any reason.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self._settings = settings or SandboxSettings()
        self._slots = threading.BoundedSemaphore(self._settings.workers)
        self._root = Path(tempfile.mkdtemp(prefix="kernelquarry-", dir=self._settings.scratch or None)).resolve()
        self.gpus = Gpus(self._settings.gpus) if self._settings.gpus else None
        self.kernels = KernelCache(Path(self._settings.kernels) if self._settings.kernels else None)
        self._closed = threading.Event()
        self._lock = threading.Lock()  # guards the three attributes below
        self._warm_processes: dict[str, WarmProcess] = {}
        self._starting: dict[str, threading.Lock] = {}  # by kind: a kind starts once, several kinds in parallel
        self._started = itertools.count(1)
        self._before: Callable[[Job[Any, Any]], Job[Any, Any]] | None = None  # of a view: called with each job
        self._owner: Sandbox | None = None  # of a view: the sandbox, which ends when it is collected
        self._finalizer = weakref.finalize(
            self, _end, self._closed, self._warm_processes, self.gpus, self._root, os.getpid()
        )

    @property
    def layers(self) -> Mapping[str, str]:
        """State of each layer of isolation, by name."""
        with self._lock:
            kind = next(iter(self._warm_processes), "script")
        return MappingProxyType(self._warm_process(kind).layers)

    def start(self, kinds: Iterable[str]) -> None:
        """Start the warm processes of these kinds, as many at once as there are cores, those of the first kinds first.

        Raises:
            SandboxError: a process did not start, or the sandbox is closed.
        """
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(self._warm_process, dict.fromkeys(KINDS[kind].process for kind in kinds)))

    def view(self, before: Callable[[Job[Any, Any]], Job[Any, Any]]) -> Sandbox:
        """This sandbox for one caller, who watches or limits its own jobs: `before` returns the job to run instead."""
        view = copy.copy(self)
        view._before, view._owner = before, self
        return view

    def run(self, job: Job[Request, Reply]) -> Report[Reply]:
        """Run one job in a fresh guest and report how it ended.

        If the warm process dies, the job is retried once on a new one; if that dies too, the job counts as the cause.

        Raises:
            SandboxError: no guest could be started, or the sandbox is closed.
            ProtocolError: the request is not strict JSON, or a tensor has no plain memory.
        """
        with self._slots:
            job = self._before(job) if self._before else job
            for _ in range(_ATTEMPTS):
                process = self._warm_process(job.kind.process)
                try:
                    return process.run(job)
                except WarmProcessDied as error:
                    death = str(error)
                    self._discard(process)
        return Report(Status.CRASHED, None, {}, f"{death}, {_ATTEMPTS} times", "", "", 0.0, 0.0, 0.0)

    def _warm_process(self, kind: str) -> WarmProcess:
        with self._lock:
            starting = self._starting.setdefault(kind, threading.Lock())
        with starting:
            with self._lock:
                self._check_open()
                if kind in self._warm_processes:
                    return self._warm_processes[kind]
                folder = self._root / f"{kind}-{next(self._started)}"
            process = WarmProcess(KINDS[kind], folder, self._settings)
            with self._lock:
                if self._closed.is_set():
                    process.close()
                self._check_open()
                self._warm_processes[kind] = process
            return process

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise SandboxError("the sandbox is closed")

    def _discard(self, process: WarmProcess) -> None:
        with self._lock:
            if self._warm_processes.get(process.kind.name) is process:
                del self._warm_processes[process.kind.name]
                process.close()

    def close(self) -> None:
        """Kill all guests and warm processes, and remove their files. Running jobs raise."""
        self._closed.set()
        with self._lock:
            self._finalizer()


def _end(
    closed: threading.Event, warm_processes: dict[str, WarmProcess], gpus: Gpus | None, root: Path, owner: int
) -> None:
    """End everything, without the lock: at the interpreter's end a thread that never runs again may hold it."""
    if os.getpid() != owner:
        return  # a fork of the process that the sandbox belongs to
    closed.set()
    for process in list(warm_processes.values()):
        process.close()
    if gpus is not None:
        gpus.close()
    shutil.rmtree(root, ignore_errors=True)
