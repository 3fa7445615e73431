"""Limit the CPU time of one call in a guest that makes several."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_S = 0.005  # between two attempts to raise
_MODES = (
    "contextlib.py",
    "torch/overrides.py",
    "torch/utils/_python_dispatch.py",
    "guest/lib/dispatch_mode.py",
    "guest/candidate/fake_cuda.py",
)


_USUAL_S = 0.0035  # CPU time of `_work` on a fast machine, for which limits of calls were chosen
_MOST = 8.0


def _work() -> float:
    """CPU seconds of a loop, as an interpreted kernel has them."""
    started, total = time.process_time(), 0
    for number in range(50_000):
        total += number * number % 7
    return time.process_time() - started


def slowness(measured_s: float) -> float:
    """How many times slower this machine is, between 1 and `_MOST`, where `_work` takes so long."""
    return min(max(measured_s / _USUAL_S, 1.0), _MOST)


# Limits of calls are multiplied by it, else a slow machine leaves out calls that reject a wrong candidate. A warm
# process measures it when it starts, before any candidate is read.
SLOWNESS = slowness(min(_work() for _ in range(3)))


class TooSlow(BaseException):
    """The call exceeded its CPU time. No `Exception`, so that code under test does not catch it by accident."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` inside once the process has used `seconds` of CPU time; 0: no limit.

    Python raises between bytecodes, so a single long operation ends first. Code that enters and leaves modes of PyTorch
    ends first, too, since an exception there would leave a mode behind.
    """
    if not seconds:
        yield
        return
    before = signal.signal(signal.SIGPROF, _raise)
    signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _raise(number: int, frame: FrameType | None) -> None:
    if frame is None or not frame.f_code.co_filename.endswith(_MODES):
        signal.setitimer(signal.ITIMER_PROF, 0)  # once: what handles it must not be interrupted, too
        raise TooSlow
