"""The language of candidates: the Python that a candidate may be written in, as data, and the check of a source.

The host side of a candidate is a small part of Python: it allocates, views, computes sizes and launches kernels. It
keeps nothing between calls, catches nothing, and looks nothing up by name, so most ways to deceive the verifier cannot
be written. `tables.py` is the definition; messages, documentation and prompts are made from it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .definitions import define
from .host_rules import check_host
from .kernel_rules import check_kernels
from .module_text import copied
from .parsed_source import Source, parsed

__all__ = ["Outside", "check", "findings"]


@dataclass(frozen=True, slots=True)
class Outside:
    """A construct of a source that is outside of the language."""

    line: int  # 0: the whole file, or the constructor's arguments
    what: str  # the construct
    instead: str  # what to write instead; empty if the construct fails in Python or Triton too

    @property
    def place(self) -> str:
        return f"line {self.line}: " if self.line else ""

    def __str__(self) -> str:
        return f"{self.place}{self.what}" + (f" is outside of the language: {self.instead}" if self.instead else "")


def check(code: str, arguments: str = "", module: str = "") -> Outside | None:
    """The first of `findings`; None if there is none."""
    return next(iter(findings(code, arguments, module)), None)


def findings(code: str, arguments: str = "", module: str = "") -> list[Outside]:
    """The constructs in `code` that fail in any case, and then those outside of the language.

    Args:
        arguments: source of the constructor's arguments, which may use what a constructor may.
        module: text of the module's file, whose own words are inside.
    """
    try:
        source = parsed(code, arguments)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        return [Outside(line, f"text that does not parse ({error})", "write one file of Python")]
    definitions = define(source)
    host = list(check_host(definitions))
    if host and module:
        host = list(check_host(definitions, copied(definitions, module)))
    every = {_outside(source, *each) for each in (*host, *check_kernels(definitions))}
    return sorted(every, key=lambda outside: (outside.instead != "", outside.line, outside.what))


def _outside(source: Source, node: ast.AST, what: str, instead: str) -> Outside:
    if node in source.arguments:
        return Outside(0, f"the constructor's arguments: {what}", instead)
    return Outside(getattr(node, "lineno", 0), what, instead)
