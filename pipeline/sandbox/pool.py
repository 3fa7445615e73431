"""The sandbox: a bounded number of guests at once, each from the warm process of its kind; beside them, the GPUs."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, TracebackType

from .exchange import SandboxError, WarmProcessDied
from .executor.service import Gpus
from .job import Job, Report, Status
from .jobs import KINDS
from .jobs.kind import Reply, Request
from .launcher import WarmProcess
from .settings import SandboxSettings

_ATTEMPTS = 2  # on a warm process each


class Sandbox:
    """Runs jobs in guests. Thread-safe; `run` blocks until a slot is free and its job has ended.

    Warm processes start when the first job of their kind comes, and end with `close`, at the end of
    the interpreter, or when this process dies, however it dies.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self._settings = settings or SandboxSettings()
        self._slots = threading.BoundedSemaphore(self._settings.workers)
        self._root = Path(tempfile.mkdtemp(prefix="kernelquarry-", dir=self._settings.scratch or None)).resolve()
        self.gpus = Gpus(self._settings.gpus) if self._settings.gpus else None
        self._closed = threading.Event()
        self._lock = threading.Lock()  # of the three below
        self._warm: dict[str, WarmProcess] = {}
        self._starting: dict[str, threading.Lock] = {}  # one kind is started once, several at the same time
        self._started = 0
        self._finalizer = weakref.finalize(self, _end, self._closed, self._warm, self.gpus, self._root, os.getpid())

    @property
    def layers(self) -> Mapping[str, str]:
        """What is active between a guest and this machine, by the name of the layer."""
        with self._lock:
            kind = next(iter(self._warm), "script")
        return MappingProxyType(self._warm_process(kind).layers)

    def start(self, kinds: Iterable[str]) -> None:
        """Start the warm processes of these kinds at the same time; `run` starts those that it misses one by one.

        Raises:
            SandboxError: one cannot be had, or the sandbox is closed.
        """
        with ThreadPoolExecutor() as threads:
            list(threads.map(self._warm_process, kinds))

    def run(self, job: Job[Request, Reply]) -> Report[Reply]:
        """Run one job in a fresh guest and report how it ended, whatever it did.

        A job whose warm process died under it is run once more on a new one; if that dies too, the job
        is taken for the cause.

        Raises:
            SandboxError: no guest can be had, or the sandbox is closed.
            ProtocolError: the request is no strict JSON, or a tensor has no plain memory.
        """
        with self._slots:
            for _ in range(_ATTEMPTS):
                process = self._warm_process(job.kind.name)
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
                if kind in self._warm:
                    return self._warm[kind]
                self._started += 1
                folder = self._root / f"{kind}-{self._started}"
            process = WarmProcess(KINDS[kind], folder, self._settings)
            with self._lock:
                if self._closed.is_set():
                    process.close()
                self._check_open()
                self._warm[kind] = process
            return process

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise SandboxError("the sandbox is closed")

    def _discard(self, process: WarmProcess) -> None:
        with self._lock:
            if self._warm.get(process.kind.name) is process:
                del self._warm[process.kind.name]
                process.close()

    def close(self) -> None:
        """Kill all guests and warm processes and remove their files. Jobs that are running raise."""
        self._closed.set()
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end(closed: threading.Event, warm: dict[str, WarmProcess], gpus: Gpus | None, root: Path, owner: int) -> None:
    """Without the lock: at the end of the interpreter a thread that will not run again may hold it."""
    if os.getpid() != owner:
        return  # a fork of the process that the sandbox belongs to
    closed.set()
    for process in list(warm.values()):
        process.close()
    if gpus is not None:
        gpus.close()
    shutil.rmtree(root, ignore_errors=True)
