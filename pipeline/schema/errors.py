"""What goes wrong outside of the program: said in one line that tells what to do, with exit status 1."""


class UserError(Exception):
    """The message is the whole of what the user sees: what is wrong, and what to do about it."""
