"""Limit the CPU time of one call in a guest that makes several."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooSlow(BaseException):
    """The call exceeded its CPU time. No `Exception`, so that code under test does not catch it by accident."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` inside once the process has used `seconds` of CPU time; 0: no limit.

    Python raises between bytecodes, so a single long operation ends first.
    """
    if not seconds:
        yield
        return
    before = signal.signal(signal.SIGPROF, _raise)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _raise(*_: Any) -> None:
    raise TooSlow
