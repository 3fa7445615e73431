"""Worker processes for pure-Python work. They end with the process that started them, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def start_processes(number: int) -> ProcessPoolExecutor:
    """A pool of fresh interpreters: a fork of a process with threads may hang."""
    return ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), initializer=end_with_parent)


def end_with_parent() -> None:
    """Watch the parent: a pool's processes hold its queue open, so they would wait for work forever."""
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
