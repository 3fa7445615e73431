"""Warm processes that all sandboxes of a test process share.

A warm process takes 2 to 6 CPU seconds to start, and the tests open a hundred sandboxes. Each guest is still a fork of
a warm process that has run no job itself.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from types import TracebackType

from kernelquarry.pipeline.sandbox.exchange import WarmProcessDied
from kernelquarry.pipeline.sandbox.job import Job, Report
from kernelquarry.pipeline.sandbox.jobs.kind import GuestKind, Reply, Request
from kernelquarry.pipeline.sandbox.launcher import WarmProcess
from kernelquarry.pipeline.sandbox.settings import SandboxSettings


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
        if settings != SandboxSettings(workers=settings.workers, kernels=settings.kernels):
            return WarmProcess(kind, folder, settings)
        with self._lock:
            starting = self._starting.setdefault(kind.name, threading.Lock())
        with starting:
            found = self._started.get(kind.name)
            if found is None or found.over:
                place = self._root / folder.parent.name / folder.name
                found = self._started[kind.name] = Lasting(kind, place, settings)
        return found

    def __enter__(self) -> Warm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started.values():
            process.over = True
            process.close()
        shutil.rmtree(self._root, ignore_errors=True)
