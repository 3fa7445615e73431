"""Why a module is not lowered."""

from __future__ import annotations


class Refused(Exception):
    """The module is not lowered; `args` are the name of a member of `Reason`, and its evidence."""
