"""Triton's autotuner without timing: each trial takes another configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from triton.runtime.autotuner import Autotuner

from ..candidate.launch_log import session

_benchmark = Autotuner._bench
_tuners: set[Autotuner] = set()  # that have selected a configuration


def install(unseen: Callable[[], AbstractContextManager[None]]) -> None:
    """Make autotuners select configuration `trial % number of configurations`, since any may be the fastest on a GPU.

    Like timing, the selection runs the kernel before its launch: a kernel that adds to its output must have a reset
    hook. A configuration that does not fit the target is not selected.

    Args:
        unseen: context in which launches are not recorded.
    """

    def measure(self: Autotuner, *args: Any, config: Any, **meta: Any) -> list[float]:
        _tuners.add(self)
        session.configurations = max(session.configurations, len(self.configs))
        if config is not self.configs[session.trial % len(self.configs)]:
            return [1.0] * 3
        failed, logged = len(session.failed), len(session.log)
        vars(self)["do_bench"] = _call_once
        with unseen():
            times: list[float] = _benchmark(self, *args, config=config, **meta)
        session.without_room |= times[0] == math.inf
        del session.failed[failed:], session.log[logged:]  # failures for lack of shared memory
        return times

    for name, method in {"_bench": measure, "check_disk_cache": _without_disk}.items():
        setattr(Autotuner, name, method)


def _call_once(call: Callable[[], Any], quantiles: Sequence[float]) -> list[float]:
    return [call() or 0.0] * len(quantiles)


def _without_disk(self: Autotuner, key: Any, configs: Any, choose: Callable[[], None]) -> bool:
    """Skip the cache on disk, and report a cache miss."""
    choose()
    return False


def forget() -> None:
    """Let tuners select again: another target may have less shared memory, and Triton's keys do not name the target."""
    for tuner in _tuners:
        tuner.cache.clear()
    _tuners.clear()
