"""Call untrusted code, and describe its failure by the names and sizes involved."""

from __future__ import annotations

import linecache
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import torch
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from .failed_check import explain_check

T = TypeVar("T")
_MESSAGE = 600
_NAME = re.compile(r"[A-Za-z_]\w*")


class TooBig(BaseException):
    """The module exceeds a limit. Derives from `BaseException` to pass an `except Exception` of the module."""

    def __init__(self, message: str, depth: int = 0, call: Any = None) -> None:
        """Initialise.

        Args:
            depth: number of contractions, where these are too many.
            call: the (`Caller`, `Guess`) that exceeded the limit.
        """
        super().__init__(message)
        self.depth, self.call = depth, call


class TooSlow(TooBig):
    """A call takes too much CPU time."""


class Unfit(Exception):
    """The module must be dropped, with a reason code and evidence."""

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(reason, evidence)
        self.reason, self.evidence = reason, evidence


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of untrusted code, reduced to data."""

    kind: str  # exception type
    message: str  # with the explanation of a failed check of the module's own
    line: int  # of the outermost frame in the module's file: a measure of progress
    names: tuple[str, ...]  # identifiers in the expression that failed there, in source order
    inner_names: tuple[str, ...]  # the same for the innermost frame in the module's file

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"[:_MESSAGE]


def attempt(call: Callable[[], T], file: str) -> tuple[T | None, Failure | None]:
    """(result of `call()`, None), or (None, its failure). `file` is the path of the module's source."""
    try:
        return call(), None
    except TooBig:
        raise
    except BaseException as error:  # noqa: BLE001  untrusted code raises anything, SystemExit included
        return None, failure_of(error, file)


def result_or_none(call: Callable[[], T]) -> T | None:
    """`call()`, or None if the call raises. Cheaper than `attempt`, which describes the failure."""
    try:
        return call()
    except TooBig:
        raise
    except BaseException:  # noqa: BLE001  as in `attempt`
        return None


def failure_of(error: BaseException, file: str) -> Failure:
    """Describe the exception. The line is 0 if no frame of it belongs to `file`."""
    frames = [tb for tb in _frames(error.__traceback__) if tb.tb_frame.f_code.co_filename == file]
    line = frames[0].tb_lineno if frames else 0
    outer = _names(frames[0]) if frames else ()
    inner = _names(frames[-1]) if frames else ()
    text = _text(error)
    if frames and (explanation := explain_check(frames[-1].tb_frame, frames[-1].tb_lineno)):
        text = f"{text}; {explanation}" if text else explanation
    return Failure(type(error).__name__, text, line, outer, inner)


def _text(error: BaseException) -> str:
    try:
        return str(error)[: 4 * _MESSAGE]
    except Exception as broken:  # noqa: BLE001  `__str__` may be untrusted code
        return type(broken).__name__


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _names(frame: TracebackType) -> tuple[str, ...]:
    """Identifiers in the expression that raised, in source order."""
    code = frame.tb_frame.f_code
    first, last, start, end = next(islice(code.co_positions(), frame.tb_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return ()
    lines = [linecache.getline(code.co_filename, n).rstrip("\n") for n in range(first, last + 1)]
    if lines:
        lines[-1] = lines[-1].encode()[:end].decode(errors="ignore")
        lines[0] = lines[0].encode()[start:].decode(errors="ignore")
    return tuple(dict.fromkeys(_NAME.findall("\n".join(lines))))


def seed(value: int) -> None:
    """Seed every random generator that a module may use."""
    torch.default_generator.manual_seed(value)  # `torch.manual_seed` is slow
    random.seed(value)
    np.random.seed(value)


@contextmanager
def cpu_time_cap(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` once this process has used so much CPU time in this context."""

    def stop(*_: Any) -> None:
        raise TooSlow(f"takes more than {seconds:g} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextmanager
def parameter_cap(limit: int) -> Iterator[None]:
    """Raise `TooBig` once modules constructed in this context register more than `limit` elements in total."""
    total = 0

    def count(module: torch.nn.Module, name: str, tensor: torch.Tensor | None) -> None:
        nonlocal total
        if tensor is not None and not isinstance(tensor, UninitializedTensorMixin):
            total += tensor.numel()
            if total > limit:
                raise TooBig(f"more than {limit} elements in parameters and buffers")

    handles = [register_module_parameter_registration_hook(count), register_module_buffer_registration_hook(count)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
