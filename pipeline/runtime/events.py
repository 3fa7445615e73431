"""Who is told about each outcome as it happens: log lines, and whoever watches (the CLI's progress bar).

Beam's own metrics can be read only once a local run has ended, so the watcher is called in the process
that did the work. On a remote runner there is no watcher, and the counts stand in the stage's manifest.
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
    """Show what `gauge` says beside the counts until the block ends: how busy something is."""
    _gauges.append(gauge)
    try:
        yield
    finally:
        _gauges.remove(gauge)


def gauges() -> str:
    return "  ".join(filter(None, (gauge() for gauge in _gauges)))


def interrupt(*_: Any) -> NoReturn:
    """Handles SIGINT as Python does, and remembers it: an exception that meets compiled code, or an object that is
    being deleted, is lost, and the work would go on."""
    interrupted.set()
    raise KeyboardInterrupt


def advance(stage: str, record_id: str, outcome: Outcome[Any]) -> None:
    """Tell of an outcome. Raises: KeyboardInterrupt if one was lost."""
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
