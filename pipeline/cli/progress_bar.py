"""Shows the progress of a run: one line per stage, with its rate, the time left, and counts of the outcomes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Any

import rich.progress as bars
from rich.console import Console
from rich.text import Text

from kernelquarry.pipeline.runtime.events import gauges, watching
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome

_LINE_INTERVAL_S = 30.0


class Progress:
    """A context manager that draws bars on a terminal, and else prints a line every 30 s."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = bars.Progress(
            bars.TextColumn("{task.description:12}"),
            bars.BarColumn(bar_width=30),
            bars.MofNCompleteColumn(),
            _RateColumn(),
            bars.TimeRemainingColumn(compact=True),
            bars.TextColumn("{task.fields[ends]}"),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    @contextmanager
    def watch(self, totals: Mapping[str, int | None]) -> Iterator[None]:
        """Show the outcomes of these lines of the funnel, or of other work on records, until the block ends."""
        lines = {name: _Line(name, total) for name, total in totals.items()}
        tasks = {name: self._bars.add_task(name, total=line.total, ends="") for name, line in lines.items()}
        lock = Lock()

        def on_outcome(name: str, outcome: Outcome[Any]) -> None:
            if name not in lines:
                return
            with lock:
                line = lines[name]
                line.add(outcome)
                self._bars.update(tasks[name], advance=1, ends="  ".join(filter(None, (line.ends, gauges()))))
                if not self._console.is_terminal and line.is_due():
                    self._print("  ".join(filter(None, (line.text(), gauges()))))

        with watching(on_outcome):
            yield
        if not self._console.is_terminal:
            for line in lines.values():
                self._print(line.text())

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _RateColumn(bars.ProgressColumn):
    def render(self, task: bars.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.1f}/s" if speed else "")


def _end(outcome: Outcome[Any]) -> str:
    return "kept" if isinstance(outcome, Kept) else "errored" if isinstance(outcome, Errored) else "dropped"


class _Line:
    """Counts of one line of the funnel. The time left counts from the first outcome on: processes start before."""

    def __init__(self, name: str, total: int | None) -> None:
        self._name, self.total = name, total
        self._counts: Counter[str] = Counter()
        self._started = self._printed = time.monotonic()
        self._first: float | None = None

    def add(self, outcome: Outcome[Any]) -> None:
        self._first = self._first or time.monotonic()
        self._counts[_end(outcome)] += 1

    @property
    def ends(self) -> str:
        return "  ".join(f"{n:,} {end}" for end in ("kept", "dropped", "errored") if (n := self._counts[end]))

    def is_due(self) -> bool:
        """True once every 30 s."""
        now = time.monotonic()
        if now - self._printed <= _LINE_INTERVAL_S:
            return False
        self._printed = now
        return True

    def text(self) -> str:
        done, now = self._counts.total(), time.monotonic()
        of = f" of {self.total:,}" if self.total else ""
        seconds = now - self._started
        text = f"{self._name:12} {done:,}{of} in {seconds:.0f} s, {done / seconds if seconds else 0.0:,.1f}/s"
        if self.total and 1 < done < self.total and self._first is not None:
            text += f", {(self.total - done) * (now - self._first) / (done - 1) / 60:.1f} min left"
        return f"{text}: {self.ends}"
