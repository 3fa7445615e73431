"""Output, error and log streams of the command line."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

out, err = Console(), Console(stderr=True)

_STYLES = {logging.DEBUG: "dim", logging.INFO: "", logging.WARNING: "yellow", logging.ERROR: "red"}


def titled_table(title: str, rows: Iterable[tuple[str, ...]], numbers: bool = False) -> Table:
    """A table with a title and without a header. `numbers`: align the first column to the right."""
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, show_header=False)
    if numbers:
        table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table


class LineHandler(logging.Handler):
    """Writes each message as one line, however narrow the terminal, above any progress bars of `err`."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(Text(self.format(record), _STYLES.get(record.levelno, "red")), soft_wrap=True)


def set_up_logging(verbose: int = 0) -> None:
    """Log our messages at the level that `-v` selects, and warnings of other packages."""
    root, ours = logging.getLogger(), logging.getLogger("kernelquarry")
    root.handlers = [LineHandler()]
    root.setLevel(logging.WARNING)
    ours.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
    root.addFilter(_is_relevant)
    # Beam logs a traceback per step for exceptions that it raises anyway.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL if verbose < 2 else logging.WARNING)


def _is_relevant(record: logging.LogRecord) -> bool:
    """False for Beam's import-time warning about cloud clients that no command uses."""
    return "apitools not found" not in str(record.msg)
