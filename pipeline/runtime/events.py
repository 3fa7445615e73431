"""Events of a running stage: each outcome becomes a log line and a call of every watcher (the CLI's progress bar).

Beam's metrics can be read only after a local run has ended, so the process that did the work calls the watchers.
A remote runner has no watchers: its counts are in the stage's manifest.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome

log = logging.getLogger(__name__)

interrupted = threading.Event()  # by Ctrl-C

Watcher = Callable[[str, Outcome[Any]], None]
_watchers: list[Watcher] = []
_gauges: list[Callable[[], str]] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with each outcome and its line of the funnel until the block ends. Any thread may call it."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextmanager
def showing(gauge: Callable[[], str]) -> Iterator[None]:
    """Show the text that `gauge` returns next to the counts until the block ends, such as the load of a GPU."""
    _gauges.append(gauge)
    try:
        yield
    finally:
        _gauges.remove(gauge)


def gauges() -> str:
    return "  ".join(filter(None, (gauge() for gauge in _gauges)))


def interrupt(*_: Any) -> NoReturn:
    """Handle SIGINT as Python does, and remember it.

    A KeyboardInterrupt that is raised inside compiled code or a `__del__` is lost, and the work would go on.
    """
    interrupted.set()
    raise KeyboardInterrupt


def advance(stage: str, record_id: str, outcome: Outcome[Any]) -> None:
    """Log an outcome and call the watchers. Raises: KeyboardInterrupt: an earlier one was lost."""
    if interrupted.is_set():
        raise KeyboardInterrupt
    match outcome:
        case Kept():
            log.info("%s %s kept", stage, record_id)
        case Dropped(reason=reason, evidence=evidence):
            log.info("%s %s dropped %s: %s", stage, record_id, reason.value, evidence.partition("\n")[0])
        case Errored(_, error, message):
            log.error("%s %s errored %s: %s", stage, record_id, error, message)
    for watcher in _watchers:
        watcher(stage, outcome)
