"""Checkers of this process, for interfaces that leave no place to open and close one."""

from __future__ import annotations

import atexit
from functools import cache

from kernelquarry.pipeline.check import Checker


@cache
def shared_checker(*, timed: bool = False, timeout_s: float | None = None, gpus: str = "all") -> Checker:
    """The checker with these settings, which closes when the process ends. Raises: UserError, as `Checker`."""
    checker = Checker(timed=timed, timeout_s=timeout_s, gpus=gpus)
    atexit.register(checker.close)
    return checker
