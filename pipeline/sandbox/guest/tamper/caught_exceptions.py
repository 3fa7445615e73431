"""Exceptions that a candidate catches: what raises on one machine need not on another, and nobody sees the way that it
goes there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# What no machine decides: a missing module is missing in all guests, and the others are how Python loops and looks up.
_USUAL = (ImportError, LookupError, StopIteration, GeneratorExit)
_MESSAGE = 100  # characters


class Handled:
    """While entered, notices exceptions that reach code of the file `path`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.first = ""  # of them

    def __enter__(self) -> Handled:
        sys.settrace(self._called)
        return self

    def __exit__(self, *exception: Any) -> None:
        sys.settrace(None)

    def by(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `call`, a tuple; where the first of it is None an exception went on to the end, and none that
        was noticed there counts."""
        before = self.first
        with self:
            result = call(*arguments)
        if result[0] is None:
            self.first = before
        return result

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != self._path:
            return None
        frame.f_trace_lines = False
        return self._noticed

    def _noticed(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "exception" and not issubclass(argument[0], _USUAL) and not self.first:
            self.first = f"{argument[0].__name__}: {argument[1]}"[:_MESSAGE]
        return self._noticed
