"""Shows the progress of a run: one line per stage, with its rate, the time left, and counts of the outcomes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
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
    def watch(self, name: str, total: int | None) -> Iterator[None]:
        """Show the outcomes of one line of the funnel, or of other work on records, until the block ends."""
        task = self._bars.add_task(name, total=total, ends="")
        ends: Counter[str] = Counter()
        lock = Lock()
        started = printed = time.monotonic()

        def on_outcome(line: str, outcome: Outcome[Any]) -> None:
            nonlocal printed
            if line != name:
                return
            with lock:
                ends[_end(outcome)] += 1
                self._bars.update(task, advance=1, ends="  ".join(filter(None, (_text(ends), gauges()))))
                now = time.monotonic()
                if not self._console.is_terminal and now - printed > _LINE_INTERVAL_S:
                    printed = now
                    self._print("  ".join(filter(None, (_line(name, ends, total, now - started), gauges()))))

        with watching(on_outcome):
            yield
        if not self._console.is_terminal:
            self._print(_line(name, ends, total, time.monotonic() - started))

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _RateColumn(bars.ProgressColumn):
    def render(self, task: bars.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.1f}/s" if speed else "")


def _end(outcome: Outcome[Any]) -> str:
    return "kept" if isinstance(outcome, Kept) else "errored" if isinstance(outcome, Errored) else "dropped"


def _text(ends: Counter[str]) -> str:
    return "  ".join(f"{ends[end]:,} {end}" for end in ("kept", "dropped", "errored") if ends[end])


def _line(stage: str, ends: Counter[str], total: int | None, seconds: float) -> str:
    done = sum(ends.values())
    rate = done / seconds if seconds else 0.0
    of = f" of {total:,}" if total else ""
    left = f", {(total - done) / rate / 60:.1f} min left" if total and rate and done < total else ""
    return f"{stage:12} {done:,}{of} in {seconds:.0f} s, {rate:,.1f}/s{left}: {_text(ends)}"
