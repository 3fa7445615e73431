"""What goes wrong outside of the program: said in one line that tells what to do, with exit status 1."""


class UserError(Exception):
    """The message is the whole of what the user sees: what is wrong, and what to do about it."""


class NotYet(Exception):
    """One record has no result because of what is outside of the program; the next run may have one."""
