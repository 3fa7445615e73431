"""Exceptions for failures that the user, not the program, has to fix."""


class UserError(Exception):
    """A failure whose message, one line on the cause and the remedy, is all that the command line prints."""

    status = 1  # exit status of the command


class NotYet(Exception):
    """A record has no result yet, for an external reason. The next run tries it again."""
