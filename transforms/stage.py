"""What a stage is, and the one Beam transform that applies a stage to records.

A stage that treats its records one by one is a function `(record, Context) -> Outcome`; this module gives
it concurrency, the store and the boundary at which an exception becomes `Errored`. Stages that look at
several records at once (mine, deduplicate) bring a transform of their own.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Errored, Outcome
from kernelquarry.pipeline.store import Store, result_key

from . import progress

log = logging.getLogger(__name__)


class Record(Protocol):
    @property
    def id(self) -> str: ...


Work = Callable[[Any, Sandbox], Outcome[Any]]


@dataclass(frozen=True, slots=True)
class Workplace:
    """What every stage of a run shares: where results are stored, and how guests are run."""

    store: Path
    sandbox: SandboxSettings
    workers: int


def run_guarded(stage: str, record: Record, work: Callable[[Any], Outcome[Any]]) -> Outcome[Any]:
    """`work(record)`, or `Errored`: the boundary at which our own failures become countable."""
    try:
        return work(record)
    except Exception as error:
        where = traceback.format_tb(error.__traceback__)[-1].strip().splitlines()[0]
        log.debug("%s %s", stage, record.id, exc_info=error)
        return Errored(record.id, type(error).__name__, f"{error} ({where})"[:2000])


class ApplyStage(beam.PTransform):
    """PCollection of records -> PCollection of outcomes, each computed once whatever is retried."""

    def __init__(self, stage: str, work: Work, gives: type, fingerprint: str, workplace: Workplace) -> None:
        super().__init__(label=f"Apply {stage}")
        self._doer = _Apply(stage, work, gives, fingerprint, workplace)

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        return records | "Spread" >> beam.Reshuffle() | "Work" >> beam.ParDo(self._doer)


class _Apply(beam.DoFn):
    """Keeps `workers` records in flight: bundles are static, and a slow record must not hold its bundle up."""

    def __init__(self, stage: str, work: Work, gives: type, fingerprint: str, workplace: Workplace) -> None:
        self._stage, self._work, self._gives = stage, work, gives
        self._fingerprint, self._workplace = fingerprint, workplace

    def setup(self) -> None:
        self._store = Store(self._workplace.store)
        self._sandbox = Sandbox(self._workplace.sandbox)
        self._threads = ThreadPoolExecutor(self._workplace.workers, thread_name_prefix=self._stage)
        self._pending: set[Future[Outcome[Any]]] = set()

    def teardown(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._sandbox.close()

    def process(self, record: Record) -> Iterator[Outcome[Any]]:
        key = result_key(self._fingerprint, record)
        stored = self._store.get(self._stage, key, self._gives)
        if stored is not None:
            yield self._done(record, stored)
            return
        self._pending.add(self._threads.submit(self._compute, key, record))
        if len(self._pending) >= 2 * self._workplace.workers:
            yield from self._finished(FIRST_COMPLETED)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for outcome in self._finished("ALL_COMPLETED"):
            yield WindowedValue(outcome, MIN_TIMESTAMP, [GlobalWindow()])

    def _compute(self, key: str, record: Record) -> Outcome[Any]:
        outcome = run_guarded(self._stage, record, lambda r: self._work(r, self._sandbox))
        self._store.put(self._stage, key, outcome)
        return self._done(record, outcome)

    def _finished(self, when: str) -> Iterator[Outcome[Any]]:
        done, self._pending = wait(self._pending, return_when=when)
        for future in done:
            yield future.result()

    def _done(self, record: Record, outcome: Outcome[Any]) -> Outcome[Any]:
        progress.advance(self._stage, record.id, outcome)
        return outcome
