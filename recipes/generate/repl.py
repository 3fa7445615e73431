"""The interactive mode of `kernelquarry write`: paste a module, get a kernel, verify and time it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.judge.verify_task import row_of_source

from .writer import KernelWriter

HELP = """\
Paste a module that defines Model, get_inputs() and get_init_inputs(); a line /go, or the end of input, ends it.
/go      write a kernel for the typed module, or again for the last one
/verify  verify the last kernel     /time   verify and time it
/show    show the module    /clear  forget the typed lines    /help    /exit"""


class Repl:
    """Reads lines and prints text. It remembers the last module and the last answer."""

    def __init__(self, writer: KernelWriter, output: Callable[[str], None]) -> None:
        """`output` receives text as it is generated, newlines included."""
        self._writer, self._output = writer, output
        self._lines: list[str] = []
        self._module, self._answer = "", ""

    def run(self, lines: Iterable[str]) -> None:
        """Read until the lines end, or /exit. A `UserError` is printed and does not end the session."""
        self._output(HELP + "\n")
        for line in itertools.chain(lines, [None]):
            if line is not None and line.strip() == "/exit":
                return
            try:
                if line is not None:
                    self._handle(line)
                elif self._lines:
                    self._write()
            except UserError as error:
                self._output(f"{error}\n")

    def _handle(self, line: str) -> None:
        match line.strip():
            case "/go":
                self._write()
            case "/verify":
                self._judge(time=False)
            case "/time":
                self._judge(time=True)
            case "/show":
                self._output("\n".join(self._lines) + "\n" if self._lines else self._module or "nothing was typed\n")
            case "/clear":
                self._lines.clear()
            case "/help":
                self._output(HELP + "\n")
            case command if command.startswith("/"):
                self._output(f"{command}: no such command; /help lists them\n")
            case _:
                self._lines.append(line.rstrip("\n"))

    def _write(self) -> None:
        typed = "\n".join(self._lines).strip("\n")
        self._lines.clear()
        self._module = f"{typed}\n" if typed else self._module
        if not self._module:
            self._output("type a module first\n")
            return
        parts = []
        for part in self._writer.stream(self._module):
            self._output(part)
            parts.append(part)
        self._answer = "".join(parts)
        self._output("\n")

    def _judge(self, time: bool) -> None:
        if not self._answer:
            self._output("there is no kernel yet\n")
            return
        row = row_of_source("the module", self._module, self._writer.sandbox)
        (candidate,) = self._writer.judge(row, [self._answer], time)
        self._output(f"{candidate}\n")
