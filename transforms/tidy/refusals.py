"""Exceptions that say why a module has no tidy candidate."""


class NotTidied(Exception):
    """The source has a form that tidy does not know; the message names it."""


class NeedsImport(Exception):
    """The constructor needs packages that a candidate may not import; the message names them."""
