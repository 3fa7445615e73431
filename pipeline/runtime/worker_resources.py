"""What a worker process opens once, however many threads of it do a stage's work.

Flink, Spark and Dataflow run a DoFn in several threads of one process. A sandbox for each would ask for as many warm
processes, and for the GPUs of the host, again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_open: dict[Hashable, list[Any]] = {}  # key -> how many use it, what was opened, and what closes it


@contextmanager
def share(key: Hashable, make: Callable[[], AbstractContextManager[T]]) -> Iterator[T]:
    """What the first of those who ask for `key` made, closed when the last of them leaves."""
    with _lock:
        if key not in _open:
            manager = make()
            _open[key] = [0, manager.__enter__(), manager]
        held = _open[key]
        held[0] += 1
    try:
        yield held[1]
    finally:
        with _lock:
            held[0] -= 1
            if not held[0]:
                del _open[key]
                held[2].__exit__(None, None, None)
