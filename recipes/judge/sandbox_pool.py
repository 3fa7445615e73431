"""Sandboxes side by side, each with a process of its own: one host process keeps up with some six answers a second."""

from __future__ import annotations

import math
import os
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing import get_context, parent_process
from multiprocessing.managers import BaseManager
from threading import Thread
from types import TracebackType
from typing import Any, Protocol

from kernelquarry.pipeline.runtime.boundary import Record, run_guarded
from kernelquarry.pipeline.sandbox import Sandbox, SandboxError, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Outcome

from .judge_answer import guests

_ABREAST = 6  # guests that one host process keeps busy


class _Runs(Protocol):
    def run(self, work: Callable[..., Outcome[Any]], record: Record) -> Outcome[Any]: ...

    def close(self) -> None: ...


class Bench:
    """One sandbox. Thread-safe; a context manager."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._sandbox = Sandbox(settings)
        if settings.gpus:  # answers will come fast, and nothing waits for this
            Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        with suppress(SandboxError):  # told by the first job that needs it
            self._sandbox.start(guests(self._sandbox))

    def run(self, work: Callable[..., Outcome[Any]], record: Record) -> Outcome[Any]:
        """`work(record, sandbox)`, or `Errored`. Raises: UserError."""
        return run_guarded(work, record, self._sandbox)

    def close(self) -> None:
        self._sandbox.close()


class _Process(BaseManager):
    """Serves each thread that asks for something with a thread of its own."""


_Process.register("Bench", Bench)


class Benches:
    """`settings.workers` guests at once, in as many processes as keep them busy; in this one if they are few.

    With `alone` in this one: what is timed needs a GPU that no other uses. Thread-safe; a context manager. Work and
    records cross between processes, so they are pickled: functions of modules, and records as the stages have them.
    """

    def __init__(self, settings: SandboxSettings, alone: bool = False) -> None:
        self._stack = ExitStack()
        number = 1 if alone else math.ceil(settings.workers / _ABREAST)
        shares = [settings.workers // number + (place < settings.workers % number) for place in range(number)]
        self._free: queue.SimpleQueue[_Runs] = queue.SimpleQueue()
        with ThreadPoolExecutor(number) as threads:  # each imports torch, which takes its time
            asked = [replace(settings, workers=share) for share in shares]
            benches = list(threads.map(self._bench, asked, [number > 1] * number))
        for turn in range(max(shares)):
            for bench, share in zip(benches, shares, strict=True):
                if turn < share:
                    self._free.put(bench)

    def _bench(self, settings: SandboxSettings, apart: bool) -> _Runs:
        if apart:
            process = _Process(ctx=get_context("spawn"))
            process.start(_end_with_parent)
            self._stack.callback(process.shutdown)
            bench: Bench = process.Bench(settings)  # type: ignore[attr-defined]
        else:
            bench = Bench(settings)
        self._stack.callback(_close, bench)
        return bench

    def run(self, work: Callable[..., Outcome[Any]], record: Record) -> Outcome[Any]:
        """`work(record, sandbox)` in the next place that is free, or `Errored`, also if its process died.

        Raises: UserError.
        """
        bench = self._free.get()
        try:
            return run_guarded(_run, record, bench, work)
        finally:
            self._free.put(bench)

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Benches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(record: Record, bench: _Runs, work: Callable[..., Outcome[Any]]) -> Outcome[Any]:
    return bench.run(work, record)


def _close(bench: _Runs) -> None:
    with suppress(EOFError, ConnectionError):  # its process died, and what it had with it
        bench.close()


def _end_with_parent() -> None:
    """In a process that serves: it ends when its parent does, however that ends, and its warm processes end with it."""
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()
