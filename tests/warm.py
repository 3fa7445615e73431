"""Warm processes that all sandboxes of a test process share.

A warm process takes 2 to 6 CPU seconds to start, and the tests open a hundred sandboxes. Each guest is still a fork of
a warm process that has run no job itself.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from kernelquarry.pipeline.sandbox.exchange import WarmProcessDied
from kernelquarry.pipeline.sandbox.job import Job, Report
from kernelquarry.pipeline.sandbox.jobs import KINDS
from kernelquarry.pipeline.sandbox.jobs.kind import GuestKind, Reply, Request
from kernelquarry.pipeline.sandbox.launcher import WarmProcess
from kernelquarry.pipeline.sandbox.settings import SandboxSettings

SHARED: Warm | None = None  # the pool of this test process


@dataclass(frozen=True)
class Loan:
    """A warm process that a fork of the test process may send jobs to."""

    kind: str
    folder: Path
    layers: dict[str, str]
    control: Any  # DupFd of the socket: each job is one message, with a channel of its own for the replies


class Lasting(WarmProcess):
    """A warm process that outlives the sandboxes that use it, unless it dies."""

    over = False  # dead, or no longer needed

    def run(self, job: Job[Request, Reply]) -> Report[Reply]:
        try:
            return super().run(job)
        except WarmProcessDied:
            self.over = True
            raise

    def close(self) -> None:
        if self.over or not hasattr(self, "layers"):  # it did not start
            super().close()


class Borrowed(Lasting):
    """A warm process that another process has started and will end."""

    def __init__(self, loan: Loan) -> None:
        self.kind, self.layers, self._folder = KINDS[loan.kind], loan.layers, loan.folder
        self._control = socket.socket(fileno=loan.control.detach())

    def close(self) -> None:
        if self.over:
            self._control.close()


class Warm:
    """A pool of warm processes. Tests make sandboxes call `lend` in place of `WarmProcess`."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="kernelquarry-")).resolve()
        self._started: dict[str, Lasting] = {}  # by kind
        self._starting: dict[str, threading.Lock] = {}  # one kind is started once, several at the same time
        self._lock = threading.Lock()  # of these

    def lend(self, kind: GuestKind, folder: Path, settings: SandboxSettings) -> WarmProcess:
        """Return the shared warm process of this kind, or a new one if the sandbox has settings that concern it.

        The number of workers and the cache of compiled kernels concern the host alone.

        Raises:
            SandboxError: as `WarmProcess` does.
        """
        if _concern_warm_processes(settings):
            return WarmProcess(kind, folder, settings)
        with self._lock:
            starting = self._starting.setdefault(kind.name, threading.Lock())
        with starting:
            found = self._started.get(kind.name)
            if found is None or found.over:
                place = self._root / folder.parent.name / folder.name
                found = self._started[kind.name] = Lasting(kind, place, settings)
        return found

    def loans(self) -> list[Loan]:
        """The processes that have started, for a process that is about to be forked."""
        with self._lock:
            started = [process for process in self._started.values() if not process.over]
        return [Loan(each.kind.name, each._folder, each.layers, DupFd(each._control.fileno())) for each in started]

    def __enter__(self) -> Warm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started.values():
            process.over = True
            process.close()
        shutil.rmtree(self._root, ignore_errors=True)


def borrow(loans: Sequence[Loan], patch: pytest.MonkeyPatch) -> None:
    """Make the sandboxes of this process use the warm processes lent to it, and start those that are not."""
    borrowed = {loan.kind: Borrowed(loan) for loan in loans}

    def lend(kind: GuestKind, folder: Path, settings: SandboxSettings) -> WarmProcess:
        found = borrowed.get(kind.name)
        if found is None or found.over or _concern_warm_processes(settings):
            return WarmProcess(kind, folder, settings)
        return found

    patch.setattr("kernelquarry.pipeline.sandbox.pool.WarmProcess", lend)


def _concern_warm_processes(settings: SandboxSettings) -> bool:
    """True if a setting of a warm process is not the default one."""
    return settings != SandboxSettings(workers=settings.workers, kernels=settings.kernels)
