"""The exception that ends a lowering."""


class NotLowered(Exception):
    """The module cannot be lowered; `args` are the name of a member of `Reason` and the evidence."""
