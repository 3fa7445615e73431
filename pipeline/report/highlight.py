"""Syntax highlighting of Python source as HTML. One-letter classes keep pages with hundreds of sources small."""

from __future__ import annotations

from functools import cache
from html import escape
from itertools import groupby
from typing import Any

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

TokenType = Any  # pygments has no public name for it

# Tokens without a class get no element, which halves the size of a page.
_CLASSES: tuple[tuple[TokenType, str], ...] = (
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Name.Decorator, "d"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Builtin.Pseudo, "b"),
    (Name.Builtin, "b"),
    (Operator.Word, "k"),
    (Keyword, "k"),
)
_LEXER = PythonLexer(stripnl=False)


def highlight(code: str) -> str:
    """Escaped HTML of `code`, without a surrounding element. `templates/report.css` defines the colours."""
    parts: list[str] = []
    for name, tokens in groupby(_LEXER.get_tokens(code), key=lambda token: _class_of(token[0])):
        text = escape("".join(value for _, value in tokens), quote=False)
        parts.append(f"<b class={name}>{text}</b>" if name else text)
    return "".join(parts).rstrip("\n")


@cache
def _class_of(kind: TokenType) -> str:
    return next((name for family, name in _CLASSES if kind in family), "")
