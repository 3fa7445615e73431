"""Exceptions that several rooms raise or catch."""


class OutOfBounds(Exception):
    """A kernel read or wrote outside of the tensors that it was given."""


class Undefined(OutOfBounds):
    """A kernel or an operator read memory that holds no value of the call."""


def describe(error: BaseException, limit: int = 500) -> str:
    """Type and message of an exception, cut to `limit` characters."""
    return f"{type(error).__name__}: {error}"[:limit]
