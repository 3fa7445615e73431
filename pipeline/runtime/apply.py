"""Apply a function to the records of a stage one by one, each computed once whatever is retried.

The function makes an `Outcome` of a record. This module adds concurrency, the result store, and the boundary at which
an exception becomes `Errored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Errored, Outcome

from . import events
from .boundary import Record, run_guarded
from .fingerprint import Fingerprint
from .hosts import Host, open_host, open_hosts
from .processes import start_processes
from .store import Store, result_key
from .worker_resources import share

GPUS_BUSY = "kernelquarry.gpus"  # namespace of counters: milliseconds that each GPU of a worker was busy


class ExecutionMode(Enum):
    """How a worker treats several records at once."""

    GUESTS = "guests"  # threads that wait for guest processes, in several hosts: `function(record, sandbox)`
    PROCESSES = "processes"  # a process for each core, for heavy Python of our own: `function(record)`
    INLINE = "inline"  # a loop, for work that is cheaper than a look into the store: `function(record)`


@dataclass(frozen=True, slots=True)
class Work:
    """A function of one record, and how to run it."""

    name: str  # line of the funnel, and folder of the store
    function: Callable[..., Outcome[Any]]
    output_type: type
    mode: ExecutionMode
    jobs: tuple[str, ...] = ()  # kinds of guest jobs whose warm processes start at the same time
    service: Callable[[], AbstractContextManager[Any]] | None = None  # opened once a worker, passed after the sandbox
    concurrency: int = 0  # records at once; 0: as many as the sandbox runs guests
    one_host: bool = False  # records reserve GPUs


class ApplyStage(beam.PTransform):
    """PCollection of records -> PCollection of outcomes.

    The records must be spread over workers already, as `read_shards` and `beam.Create` spread them.
    """

    def __init__(self, work: Work, fingerprint: Fingerprint, store: Path, sandbox: SandboxSettings) -> None:
        super().__init__(label=f"Apply {work.name}")
        self._apply = _Apply(work, fingerprint, store, sandbox)

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        return records | "Work" >> beam.ParDo(self._apply)


class _Apply(beam.DoFn):
    """Keep several records in flight: bundles are static, and a slow record must not hold up its bundle."""

    def __init__(self, work: Work, fingerprint: Fingerprint, store: Path, sandbox: SandboxSettings) -> None:
        self._work, self._fingerprint, self._settings = work, fingerprint, sandbox
        self._store = Store(store)
        self._key = fingerprint.key
        self._concurrency = work.concurrency or sandbox.workers

    def setup(self) -> None:
        if differences := list(self._fingerprint.differences(self._fingerprint.here())):
            raise UserError(f"this worker has other code than the run was started with: {'; '.join(differences)}")
        self._pending: dict[Future[Outcome[Any]], tuple[str, Record]] = {}
        self._host: Host | None = None
        self._closing = ExitStack()
        self._started = False
        match self._work.mode:
            case ExecutionMode.GUESTS:
                self._host = self._closing.enter_context(share((self._work.name, self._settings), self._open_host))
                self._executor: Executor = ThreadPoolExecutor(self._concurrency)
            case ExecutionMode.PROCESSES:
                self._executor = start_processes(self._concurrency)
            case ExecutionMode.INLINE:
                self._executor = ThreadPoolExecutor(1)  # never used: `process` runs the function itself

    def _open_host(self) -> AbstractContextManager[Host]:
        work = self._work
        if work.one_host or work.service is not None:
            return open_host(work.function, work.jobs, self._settings, work.service)
        return open_hosts(work.function, work.jobs, self._settings)

    def teardown(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._closing.close()

    def process(self, record: Record) -> Iterator[Outcome[Any]]:
        if self._work.mode is ExecutionMode.INLINE:
            outcome = run_guarded(self._work.function, record)
            events.advance(self._work.name, record.id, outcome)
            yield outcome
            return
        key = result_key(self._key, record)
        stored = self._store.get(self._work.name, key, self._work.output_type)
        if stored is not None:
            events.advance(self._work.name, record.id, stored)
            yield stored
            return
        if not self._started and self._host is not None:
            self._host.start()
        self._started = True
        self._pending[self._submit(record)] = key, record
        if len(self._pending) >= 2 * self._concurrency:
            yield from self._finished()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        while self._pending:
            for outcome in self._finished():
                yield WindowedValue(outcome, MIN_TIMESTAMP, [GlobalWindow()])
        for ordinal, busy_s in (self._host.busy_seconds() if self._host is not None else {}).items():
            Metrics.counter(GPUS_BUSY, str(ordinal)).inc(round(1000 * busy_s))

    def _finished(self) -> Iterator[Outcome[Any]]:
        done, _ = wait(self._pending, return_when=FIRST_COMPLETED)
        for future in done:
            key, record = self._pending.pop(future)
            outcome = self._outcome(future, record)
            self._store.put(self._work.name, key, outcome)
            events.advance(self._work.name, record.id, outcome)
            yield outcome

    def _submit(self, record: Record) -> Future[Outcome[Any]]:
        if self._host is not None:
            return self._executor.submit(self._host.run, record)
        try:
            return self._executor.submit(run_guarded, self._work.function, record)
        except BrokenProcessPool:
            self._executor = start_processes(self._concurrency)
            return self._submit(record)

    def _outcome(self, future: Future[Outcome[Any]], record: Record) -> Outcome[Any]:
        """The record's outcome. A dead process fails all records in flight: retry each in a process of its own."""
        try:
            return future.result()
        except BrokenProcessPool:
            return _apply_alone(self._work, record)


def _apply_alone(work: Work, record: Record) -> Outcome[Any]:
    with start_processes(1) as process:
        try:
            return process.submit(run_guarded, work.function, record).result()
        except BrokenProcessPool:
            return Errored(record.id, BrokenProcessPool.__name__, "its worker process died, also alone")
