"""A conversation at the terminal: paste a module, get a kernel, have it verified and timed.

> (lines of a module; an empty line twice, or /go, ends it)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.judge.verify_task import row_of_source

from .writer import KernelWriter

HELP = """\
Paste a module that defines Model, get_inputs() and get_init_inputs(); a line /go, or the end of input, ends it.
/go      write a kernel for what was typed, or again for the last module
/verify  verify the last kernel     /time   verify and time it
/show    the module that is asked for    /clear  forget what was typed    /help    /exit"""


class Repl:
    """Lines in, text out; knows the last module and the last answer."""

    def __init__(self, writer: KernelWriter, say: Callable[[str], None]) -> None:
        """`say` gets text as it comes, ends of lines included."""
        self._writer, self._say = writer, say
        self._lines: list[str] = []
        self._module, self._answer = "", ""

    def run(self, lines: Iterable[str]) -> None:
        """Until the lines end, or /exit. What goes wrong is said, and the conversation goes on."""
        self._say(HELP + "\n")
        for line in itertools.chain(lines, [None]):
            if line is not None and line.strip() == "/exit":
                return
            try:
                if line is not None:
                    self._take(line)
                elif self._lines:
                    self._write()
            except UserError as error:
                self._say(f"{error}\n")

    def _take(self, line: str) -> None:
        match line.strip():
            case "/go":
                self._write()
            case "/verify":
                self._judge(time=False)
            case "/time":
                self._judge(time=True)
            case "/show":
                self._say("\n".join(self._lines) + "\n" if self._lines else self._module or "nothing was typed\n")
            case "/clear":
                self._lines.clear()
            case "/help":
                self._say(HELP + "\n")
            case other if other.startswith("/"):
                self._say(f"{other}: no such command; /help lists them\n")
            case _:
                self._lines.append(line.rstrip("\n"))

    def _write(self) -> None:
        typed = "\n".join(self._lines).strip("\n")
        self._lines.clear()
        self._module = f"{typed}\n" if typed else self._module
        if not self._module:
            self._say("type a module first\n")
            return
        parts = []
        for part in self._writer.stream(self._module):
            self._say(part)
            parts.append(part)
        self._answer = "".join(parts)
        self._say("\n")

    def _judge(self, time: bool) -> None:
        if not self._answer:
            self._say("there is no kernel yet\n")
            return
        row = row_of_source("the module", self._module, self._writer.sandbox)
        (candidate,) = self._writer.judge(row, [self._answer], time)
        self._say(f"{candidate}\n")
