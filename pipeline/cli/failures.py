"""The boundary of the command line: what is wrong outside of the program becomes one line that says what to do."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from kernelquarry.pipeline.runtime.events import interrupted
from kernelquarry.pipeline.schema.errors import UserError

from .console import err

_SPACE = "free some space, then run the same command: it goes on from here"
_PLACE = "give directories that can be written with --out and --cache"
_REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit on the size of files, then run the same command: it goes on from here",
    errno.EACCES: _PLACE,
    errno.EPERM: _PLACE,
    errno.EROFS: _PLACE,
    errno.EEXIST: _PLACE,
    errno.ENOTDIR: _PLACE,
}


class Commands(TyperGroup):
    """Commands that end with exit status 1 and one line on what is wrong outside of the program, 130 on Ctrl-C."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's own Context has no public name
        try:
            result = super().invoke(ctx)
            if interrupted.is_set():
                raise KeyboardInterrupt
            return result
        except KeyboardInterrupt:
            _fail("interrupted: nothing that was done is lost, the same command goes on from here", 130)
        except UserError as error:
            _fail(str(error))
        except OSError as error:
            if error.errno not in _REMEDIES:
                raise
            place = f" ({error.filename})" if error.filename else ""
            _fail(f"{error.strerror}{place}: {_REMEDIES[error.errno]}")


def _fail(message: str, status: int = 1) -> NoReturn:
    err.print(f"kernelquarry: {message}", style="red", markup=False, emoji=False, highlight=False, soft_wrap=True)
    sys.stdout.flush()
    os._exit(status)  # guests and threads may still run; their parent's death ends them
