"""The one Beam transform that applies a stage to records one by one.

A stage that treats its records one by one is a function that makes an `Outcome` of a record; this module
gives it concurrency, the store, and the boundary at which an exception becomes `Errored`. Stages that look
at several records at once have a transform in `wiring`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.executor.service import Gpus
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Errored, Outcome
from kernelquarry.transforms.distill import BatchWriter, Client, DistillConfig, TeacherSession

from . import events
from .boundary import Record, run_guarded
from .fingerprint import Fingerprint
from .processes import start_processes
from .store import Store, result_key
from .worker_resources import share

GPUS_BUSY = "kernelquarry.gpus"  # namespace of counters: milliseconds that each GPU of a worker was busy


class Where(Enum):
    """Where a stage's work is done, which decides how several records are treated at once."""

    GUESTS = "guests"  # `work(record, sandbox)` in a thread that waits for guests
    PROCESSES = "processes"  # `work(record)`: our own Python, heavy enough to need all cores
    ENDPOINTS = "endpoints"  # `work(record, sandbox, session)` in a thread that waits for models and guests
    HERE = "here"  # `work(record)`: too light to be worth more than a loop


@dataclass(frozen=True, slots=True)
class Workplace:
    """What every stage of a run shares: where results are stored, and how guests are run."""

    store: Path
    sandbox: SandboxSettings
    teaching: DistillConfig | None = None  # None: no model is asked
    answers: Path = Path("out/cache/answers.sqlite")  # what models answered, shared by runs
    batch: Path | None = None  # a folder: questions are written there, and no model is asked


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage does to one record."""

    stage: str
    function: Callable[..., Outcome[Any]]
    gives: type
    where: Where
    guests: tuple[str, ...] = ()  # kinds that it asks, whose warm processes can start at the same time


class ApplyStage(beam.PTransform):
    """PCollection of records -> PCollection of outcomes, each computed once whatever is retried.

    The records are to be spread over workers already, as `read_shards` and `beam.Create` spread them.
    """

    def __init__(self, work: Work, fingerprint: Fingerprint, workplace: Workplace) -> None:
        super().__init__(label=f"Apply {work.stage}")
        self._doer = _Apply(work, fingerprint, workplace)

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        return records | "Work" >> beam.ParDo(self._doer)


class _Apply(beam.DoFn):
    """Keeps some records in flight: bundles are static, and a slow record must not hold its bundle up."""

    def __init__(self, work: Work, fingerprint: Fingerprint, workplace: Workplace) -> None:
        self._work, self._fingerprint, self._workplace = work, fingerprint, workplace
        self._key = fingerprint.key

    def setup(self) -> None:
        if others := list(self._fingerprint.differences(self._fingerprint.here())):
            raise UserError(f"this worker is not of the code that the run was started with: {'; '.join(others)}")
        self._store = Store(self._workplace.store)
        self._pending: dict[Future[Outcome[Any]], tuple[str, Record]] = {}
        self._services: tuple[Any, ...] = ()
        self._closing = ExitStack()
        self._ready = False
        workers = self._at_once = self._workplace.sandbox.workers
        match self._work.where:
            case Where.GUESTS:
                self._services = (self._closing.enter_context(self._sandbox()),)
                self._executor: Executor = ThreadPoolExecutor(workers)
            case Where.ENDPOINTS:
                assert self._workplace.teaching is not None
                self._at_once = self._workplace.teaching.modules
                session = self._closing.enter_context(open_teacher_session(self._workplace))
                self._services = (self._closing.enter_context(self._sandbox()), session)
                self._executor = ThreadPoolExecutor(self._at_once)
            case Where.PROCESSES:
                self._executor = start_processes(workers)
            case Where.HERE:
                self._executor = ThreadPoolExecutor(1)  # has nothing to do: see `process`

    def _sandbox(self) -> AbstractContextManager[Sandbox]:
        return share((self._work.stage, self._workplace.sandbox), self._open_sandbox)

    @contextmanager
    def _open_sandbox(self) -> Iterator[Sandbox]:
        with Sandbox(self._workplace.sandbox) as sandbox, events.showing(partial(_busy, sandbox.gpus)):
            yield sandbox

    def teardown(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._closing.close()

    def process(self, record: Record) -> Iterator[Outcome[Any]]:
        if self._work.where is Where.HERE:  # quicker done again than found
            outcome = run_guarded(self._work.function, record)
            events.advance(self._work.stage, record.id, outcome)
            yield outcome
            return
        key = result_key(self._key, record)
        stored = self._store.get(self._work.stage, key, self._work.gives)
        if stored is not None:
            events.advance(self._work.stage, record.id, stored)
            yield stored
            return
        self._start_guests()
        self._pending[self._submit(record)] = key, record
        if len(self._pending) >= 2 * self._at_once:
            yield from self._finished()

    def _start_guests(self) -> None:
        """Once there is a record that needs them."""
        if not self._ready:
            for sandbox in self._services[:1]:
                sandbox.start(self._work.guests)
            self._ready = True

    def finish_bundle(self) -> Iterator[WindowedValue]:
        while self._pending:
            for outcome in self._finished():
                yield WindowedValue(outcome, MIN_TIMESTAMP, [GlobalWindow()])
        for sandbox in self._services[:1]:
            for ordinal, busy_s in (sandbox.gpus.spent() if sandbox.gpus is not None else {}).items():
                Metrics.counter(GPUS_BUSY, str(ordinal)).inc(round(1000 * busy_s))

    def _finished(self) -> Iterator[Outcome[Any]]:
        done, _ = wait(self._pending, return_when=FIRST_COMPLETED)
        for future in done:
            key, record = self._pending.pop(future)
            outcome = self._outcome(future, record)
            self._store.put(self._work.stage, key, outcome)
            events.advance(self._work.stage, record.id, outcome)
            yield outcome

    def _submit(self, record: Record) -> Future[Outcome[Any]]:
        try:
            return self._executor.submit(run_guarded, self._work.function, record, *self._services)
        except BrokenProcessPool:
            self._executor = start_processes(self._workplace.sandbox.workers)
            return self._submit(record)

    def _outcome(self, future: Future[Outcome[Any]], record: Record) -> Outcome[Any]:
        """A process that dies takes all records in flight with it: each then gets a process of its own."""
        try:
            return future.result()
        except BrokenProcessPool:
            return _alone(self._work, record)


def _busy(gpus: Gpus | None) -> str:
    usage = gpus.usage() if gpus is not None else {}
    return "  ".join(f"GPU {ordinal} {share:.0%} busy" for ordinal, share in usage.items())


@contextmanager
def open_teacher_session(workplace: Workplace) -> Iterator[TeacherSession]:
    """What asks the run's teachers, until the block ends."""
    teaching = workplace.teaching
    assert teaching is not None
    if workplace.batch is not None:
        with BatchWriter(workplace.answers, workplace.batch) as writer:
            yield TeacherSession(teaching, writer)
    else:
        with Client(teaching, workplace.answers) as client:
            yield TeacherSession(teaching, client)


def _alone(work: Work, record: Record) -> Outcome[Any]:
    with start_processes(1) as process:
        try:
            return process.submit(run_guarded, work.function, record).result()
        except BrokenProcessPool:
            return Errored(record.id, BrokenProcessPool.__name__, "its worker process died, also alone")
