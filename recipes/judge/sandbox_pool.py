"""A pool of sandboxes in processes of their own, since a host process is busy for half a second an answer."""

from __future__ import annotations

import math
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.managers import BaseManager
from threading import Thread
from typing import Any

from kernelquarry.pipeline.runtime.boundary import Record, run_guarded
from kernelquarry.pipeline.runtime.processes import end_with_parent
from kernelquarry.pipeline.sandbox import Sandbox, SandboxError, SandboxSettings
from kernelquarry.pipeline.schema.closing import Closing
from kernelquarry.pipeline.schema.outcome import Outcome

from .judge_answer import guest_kinds

_GUESTS_PER_PROCESS = 2  # that one host process keeps busy


class SandboxWorker:
    """One sandbox, in this process or behind a proxy of another process. Thread-safe."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._sandbox = Sandbox(settings)
        if settings.gpus:  # a GPU's executors take long to start, so start them before the first answer comes
            Thread(target=self._start_guests, daemon=True).start()

    def _start_guests(self) -> None:
        with suppress(SandboxError):  # the first job that needs the guests reports the error
            self._sandbox.start(guest_kinds(self._sandbox))

    def run(self, work: Callable[..., Outcome[Any]], record: Record) -> Outcome[Any]:
        """`work(record, sandbox)`, or `Errored`. Raises: UserError."""
        return run_guarded(work, record, self._sandbox)

    def close(self) -> None:
        self._sandbox.close()


class _Manager(BaseManager):
    """A process with a `SandboxWorker`. It serves each calling thread with a thread of its own."""


_Manager.register("SandboxWorker", SandboxWorker)


class SandboxPool(Closing):
    """A thread-safe context manager that runs `settings.workers` guests in as many processes as they need.

    Few guests run in this process, as do all with `exclusive`: timings need a GPU that no other process uses. Work and
    records are pickled, so work must be a function of a module.
    """

    def __init__(self, settings: SandboxSettings, exclusive: bool = False) -> None:
        self._stack = ExitStack()
        number = 1 if exclusive else math.ceil(settings.workers / _GUESTS_PER_PROCESS)
        shares = [settings.workers // number + (place < settings.workers % number) for place in range(number)]
        self._free: queue.SimpleQueue[SandboxWorker] = queue.SimpleQueue()
        with ThreadPoolExecutor(number) as threads:  # in parallel, since each process imports torch
            all_settings = [replace(settings, workers=share) for share in shares]
            workers = list(threads.map(self._start_worker, all_settings, [number > 1] * number))
        for turn in range(max(shares)):
            for worker, share in zip(workers, shares, strict=True):
                if turn < share:
                    self._free.put(worker)

    def _start_worker(self, settings: SandboxSettings, own_process: bool) -> SandboxWorker:
        if own_process:
            manager = _Manager(ctx=get_context("spawn"))
            manager.start(end_with_parent)  # also after a kill, so that no guest outlives this process
            self._stack.callback(manager.shutdown)
            worker: SandboxWorker = manager.SandboxWorker(settings)  # type: ignore[attr-defined]
        else:
            worker = SandboxWorker(settings)
        self._stack.callback(_close, worker)
        return worker

    def run(self, work: Callable[..., Outcome[Any]], record: Record) -> Outcome[Any]:
        """Run `work(record, sandbox)` on the next free worker. An exception or a dead process gives `Errored`.

        Raises: UserError: raised by `work`; it is passed on.
        """
        worker = self._free.get()
        try:
            return run_guarded(lambda record: worker.run(work, record), record)
        finally:
            self._free.put(worker)

    def close(self) -> None:
        self._stack.close()


def _close(worker: SandboxWorker) -> None:
    with suppress(EOFError, ConnectionError):  # its process has died, and its guests with it
        worker.close()
