"""The boundary at which an exception in a stage's work becomes an `Errored` outcome."""

from __future__ import annotations

import errno
import logging
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from kernelquarry.pipeline.schema.errors import NotYet, UserError
from kernelquarry.pipeline.schema.outcome import Errored, Outcome

log = logging.getLogger(__name__)

_MESSAGE = 2000  # characters
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Record(Protocol):
    @property
    def id(self) -> str: ...


def run_guarded(work: Callable[..., Outcome[Any]], record: Record, *services: Any) -> Outcome[Any]:
    """Call `work(record, *services)`; an exception becomes `Errored`, with the line that raised it.

    Raises: UserError, or OSError of a full disk, which no other record would escape: the machine lacks what the
    stage needs.
    """
    try:
        return work(record, *services)
    except UserError:
        raise
    except NotYet as error:
        return Errored(record.id, type(error).__name__, str(error)[:_MESSAGE])
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        log.debug("%s", record.id, exc_info=error)
        where = traceback.format_tb(error.__traceback__)[-1].strip().splitlines()[0]
        return Errored(record.id, type(error).__name__, f"{error} ({where})"[:_MESSAGE])
