"""Resources that the threads of one worker process share.

Flink, Spark and Dataflow run a DoFn in several threads of one process. A sandbox for each thread would start its own
warm processes and claim the GPUs of the host once more.
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
    """The resource of `key`, made for the first user and closed when the last one leaves."""
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
