"""A Beam DoFn that spreads pure-Python work over one process a core."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from .processes import start_processes

_AHEAD = 2  # batches for each process


class OnAllCores(beam.DoFn):
    """Batches of records -> the items of `function(batch)`, one by one.

    The first batch runs in this process, since small inputs have no second one.
    """

    def __init__(self, function: Callable[[list[Any]], list[Any]]) -> None:
        self._function = function

    def setup(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._first = True
        self._pending: deque[Future[list[Any]]] = deque()

    def teardown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def process(self, batch: list[Any]) -> Iterator[Any]:
        if self._first:
            self._first = False
            yield from self._function(batch)
            return
        cores = os.cpu_count() or 1
        self._pool = self._pool or start_processes(cores)
        self._pending.append(self._pool.submit(self._function, batch))
        while len(self._pending) > _AHEAD * cores:
            yield from self._pending.popleft().result()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        while self._pending:
            for found in self._pending.popleft().result():
                yield WindowedValue(found, MIN_TIMESTAMP, [GlobalWindow()])
