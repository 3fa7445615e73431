"""Triton's tuner where nothing is timed: what is tried in one trial is another configuration than in the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from triton.runtime.autotuner import Autotuner

from ..candidate.launch_log import session

_benchmark = Autotuner._bench
_tuners: set[Autotuner] = set()  # that have chosen


def install(unseen: Callable[[], AbstractContextManager[None]]) -> None:
    """Keys that are new in a trial get the configuration of its number: a GPU may like any best.

    As timing would, this runs the kernel before it is launched: one that adds to what is there must be told to reset.
    A configuration that the target has no room for is not taken. `unseen`: what is launched within is not recorded.
    """

    def bench(self: Autotuner, *args: Any, config: Any, **meta: Any) -> list[float]:
        _tuners.add(self)
        session.configurations = max(session.configurations, len(self.configs))
        if config is not self.configs[session.trial % len(self.configs)]:
            return [1.0] * 3
        self.do_bench = lambda call, quantiles: [call() or 0.0] * len(quantiles)
        failed, logged = len(session.failed), len(session.log)
        with unseen():
            times: list[float] = _benchmark(self, *args, config=config, **meta)
        session.without_room |= times[0] == math.inf
        del session.failed[failed:], session.log[logged:]  # the former for want of room
        return times

    Autotuner._bench = bench
    Autotuner.check_disk_cache = _without_disk


def _without_disk(self: Autotuner, key: Any, configs: Any, choose: Callable[[], None]) -> bool:
    """What is kept on a disk from one process to the next is none here."""
    choose()
    return False


def forget() -> None:
    """Tuners choose anew: what one target has room for, another may not, and Triton's key of a choice names neither."""
    for tuner in _tuners:
        tuner.cache.clear()
    _tuners.clear()
