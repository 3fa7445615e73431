"""One guarded call of untrusted code, and what its failure tells about the names and sizes involved."""

from __future__ import annotations

import linecache
import random
import re
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

from .claims import claims

T = TypeVar("T")
_MESSAGE = 600
_NAME = re.compile(r"[A-Za-z_]\w*")


class TooBig(BaseException):
    """Raised through the module's code, past its `except Exception`."""

    def __init__(self, message: str, depth: int = 0, call: Any = None) -> None:
        """Args: `depth`: contractions, where these are too many; `call`: what calls the module, and the guess."""
        super().__init__(message)
        self.depth, self.call = depth, call


class Unfit(Exception):
    """The module is dropped: a reason code and what shows it."""

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(reason, evidence)
        self.reason, self.evidence = reason, evidence


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call raised."""

    kind: str  # exception type
    message: str  # with what a check of the module's own wanted
    line: int  # of the outermost frame in the module's file: how far it got
    names: tuple[str, ...]  # identifiers in the expression that failed there, in order
    inner_names: tuple[str, ...]  # the same for the innermost frame in the module's file

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"[:_MESSAGE]


def attempt(call: Callable[[], T], file: str) -> tuple[T | None, Failure | None]:
    """The result of `call()`, or what went wrong in it. `file`: where the module's source lies."""
    try:
        return call(), None
    except TooBig:
        raise
    except BaseException as error:  # noqa: BLE001  untrusted code raises what it likes, SystemExit included
        return None, failure_of(error, file)


def failure_of(error: BaseException, file: str) -> Failure:
    """What the exception tells; its line is 0 if none of the code in `file` was running."""
    frames = [tb for tb in _frames(error.__traceback__) if tb.tb_frame.f_code.co_filename == file]
    line = frames[0].tb_lineno if frames else 0
    outer = _names(frames[0]) if frames else ()
    inner = _names(frames[-1]) if frames else ()
    text = _text(error)
    if frames and (wanted := claims(frames[-1].tb_frame, frames[-1].tb_lineno)):
        text = f"{text}; {wanted}" if text else wanted
    return Failure(type(error).__name__, text, line, outer, inner)


def _text(error: BaseException) -> str:
    try:
        return str(error)[: 4 * _MESSAGE]
    except Exception as broken:  # noqa: BLE001  __str__ is the module's own
        return type(broken).__name__


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _names(frame: TracebackType) -> tuple[str, ...]:
    """Identifiers of the expression that was being evaluated."""
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
    """Seeds every generator that a module may draw from."""
    torch.default_generator.manual_seed(value)  # the public function takes a traceback for each kind of device
    random.seed(value)
    np.random.seed(value)


@contextmanager
def parameter_cap(limit: int) -> Iterator[None]:
    """Raises `TooBig` as soon as modules constructed inside hold more than `limit` elements in total."""
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
