"""The two streams of the command line, and the log lines between them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

out, err = Console(), Console(stderr=True)

_STYLES = {logging.DEBUG: "dim", logging.INFO: "", logging.WARNING: "yellow", logging.ERROR: "red"}


def titled_table(title: str, rows: Iterable[tuple[str, ...]], numbers: bool = False) -> Table:
    """Rows without a head under a title; `numbers` are what the first column holds."""
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, show_header=False)
    if numbers:
        table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table


class LineHandler(logging.Handler):
    """One line a message, however narrow the terminal, above the bars that `err` may be drawing."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(Text(self.format(record), _STYLES.get(record.levelno, "red")), soft_wrap=True)


def set_up_logging(verbose: int = 0) -> None:
    """Show our own messages from the level that `-v` asks for, and other packages' warnings."""
    root, ours = logging.getLogger(), logging.getLogger("kernelquarry")
    root.handlers = [LineHandler()]
    root.setLevel(logging.WARNING)
    ours.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
    # Beam warns of cloud clients that no command uses, when it is imported, ...
    root.addFilter(_is_of_use)
    # ... and logs, with a traceback for each step, what it raises anyway.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL if verbose < 2 else logging.WARNING)


def _is_of_use(record: logging.LogRecord) -> bool:
    return "apitools not found" not in str(record.msg)
