"""Detection of exceptions that a candidate catches: they can hide a path that other machines take and no check sees."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

# No machine decides these: a missing module is missing in all guests, and Python loops and looks up with the others.
_USUAL = (ImportError, LookupError, StopIteration, GeneratorExit)
_MESSAGE = 100  # characters


class ExceptionWatch:
    """Records, while entered, the first exception that reaches code of the file `path`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.first = ""  # type and message

    def __enter__(self) -> ExceptionWatch:
        sys.settrace(self._called)
        return self

    def __exit__(self, *exception: Any) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != self._path:
            return None
        frame.f_trace_lines = False
        return self._noticed

    def _noticed(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "exception" and not issubclass(argument[0], _USUAL) and not self.first:
            self.first = f"{argument[0].__name__}: {argument[1]}"[:_MESSAGE]
        return self._noticed
