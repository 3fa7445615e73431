"""The sandbox: a bounded number of guests at once, each from the warm process of its kind."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from types import TracebackType

from .job import Job, Report, Status
from .launcher import SandboxError, Zygote, ZygoteDied
from .settings import SandboxSettings

_GUESTS = Path(__file__).resolve().parent / "guest"


class Sandbox:
    """Runs jobs in guests. Thread-safe; `run` blocks until a slot is free and its job has ended.

    Warm processes start when the first job of their kind comes, and end with `close`, at the end of
    the interpreter, or when this process dies, however it dies.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self._settings = settings or SandboxSettings()
        self._slots = threading.BoundedSemaphore(self._settings.workers)
        self._root = Path(tempfile.mkdtemp(prefix="kernelquarry-", dir=self._settings.scratch or None))
        self._starting = threading.Lock()
        self._zygotes: dict[str, Zygote] = {}
        self._started = 0
        self._closed = False
        self._finalizer = weakref.finalize(self, _end, self._zygotes, self._root, os.getpid())

    def run(self, job: Job) -> Report:
        """Run one job in a fresh guest and report how it ended, whatever it did.

        A job whose warm process died under it is run once more on a new one.

        Raises:
            SandboxError: no warm process can be had, or the sandbox was closed.
            ProtocolError: the request is no strict JSON or is too large.
        """
        if not job.kind.isidentifier() or not (_GUESTS / f"{job.kind}.py").is_file():
            raise SandboxError(f"no guest of kind {job.kind!r}")
        with self._slots:
            for _ in range(2):
                zygote = self._zygote(job.kind)
                try:
                    return zygote.run(job)
                except ZygoteDied as error:
                    death = error
                    self._discard(zygote)
        return Report(Status.CRASHED, None, {}, f"{death}, twice", "", "", 0.0, 0.0, 0.0)

    def _zygote(self, kind: str) -> Zygote:
        with self._starting:
            if self._closed:
                raise SandboxError("the sandbox is closed")
            if kind not in self._zygotes:
                self._started += 1
                self._zygotes[kind] = Zygote(kind, self._root / f"{kind}-{self._started}", self._settings)
            return self._zygotes[kind]

    def _discard(self, zygote: Zygote) -> None:
        with self._starting:
            if self._zygotes.get(zygote.kind) is zygote:
                del self._zygotes[zygote.kind]
                zygote.close()

    def close(self) -> None:
        """Kill all guests and warm processes and remove their files. Jobs that are running raise."""
        with self._starting:
            self._closed = True
        self._finalizer()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end(zygotes: dict[str, Zygote], root: Path, owner: int) -> None:
    if os.getpid() != owner:
        return  # a fork of the process that the sandbox belongs to
    for zygote in zygotes.values():
        zygote.close()
    shutil.rmtree(root, ignore_errors=True)
