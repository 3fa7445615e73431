"""Processes of our own, for Python that needs every core. They end with the one that started them, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def start_processes(number: int) -> ProcessPoolExecutor:
    """A pool of fresh interpreters: a fork of a process with threads may hang."""
    return ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """The pool's own processes would wait for work for ever, since each of them holds its queue open."""
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
