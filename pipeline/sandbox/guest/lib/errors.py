"""Exceptions that several rooms raise or catch."""


class OutOfBounds(Exception):
    """A kernel read or wrote outside of the tensors that it was given."""


def describe(error: BaseException, limit: int = 500) -> str:
    """Type and message of an exception, cut to `limit` characters."""
    return f"{type(error).__name__}: {error}"[:limit]
