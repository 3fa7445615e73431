"""The names in an expression, found by a regular expression: most of the nodes of a tree are of expressions."""

from __future__ import annotations

import keyword
import re
from functools import lru_cache
from typing import NamedTuple

from . import facts

_CHAIN = rb"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*"
_TOKEN = re.compile(
    # A name. One that stands before `=` is that of an argument, before a quote the prefix of a string.
    rb"(%s)(\s*=(?!=)|['\"])?"
    rb"|\.\s*(%s)"  # attributes of something that is no name
    rb"|('''|\"\"\"|[\\#\x80-\xff]|:=)"
    rb"|'[^'\n\\]*'|\"[^\"\n\\]*\""
    rb"|\d\w*(?:\.(?:\d\w*|[eE]\d\w*|[jJ]\b)?)?" % (_CHAIN, _CHAIN)
)
_WORD = re.compile(rb"\w+")
_LONGEST = 20_000  # bytes: the parts of what is not plain are looked at again
WRAPPERS = (b"compile", b"script")  # functions whose calls may be nothing but their argument
_SCOPES = frozenset({"for", "lambda"})
_ALWAYS, _IF_CERTAIN = re.compile(b""), re.compile(b"True|False")


class Chain(NamedTuple):
    """`name.attribute. ...`, one object however often it is written."""

    name: str  # "" if it is a keyword
    attributes: tuple[str, ...]
    ends: tuple[int, ...]  # of the name and each attribute, from the chain's start
    odd_with: re.Pattern[bytes] | None = None  # what makes an expression odd that has this


class Names(NamedTuple):
    used: list[tuple[Chain, int]]  # each with its start
    attributes: list[str]  # all that stand after a dot


def plain_names(expression: bytes) -> Names | None:
    """The names in an expression without syntax errors, or in `a.b = expression`, in source order.

    None if that takes more than its text: it has scopes of its own, strings with more than text on a line, comments.
    """
    if len(expression) > _LONGEST:
        return None
    used: list[tuple[Chain, int]] = []
    attributes: list[str] = []
    for match in _TOKEN.finditer(expression):
        group = match.lastindex
        if group == 1 or group == 2:
            chain = _chain(match[1])
            if group == 2:
                if match[2] in (b"'", b'"'):
                    return None
                if not chain.attributes:
                    continue
            if chain.odd_with is not None and chain.odd_with.search(expression):
                return None
            if chain.attributes:
                attributes += chain.attributes
            if chain.name:
                used.append((chain, match.start()))
        elif group == 3:
            chain = _chain(match[3])
            attributes += (chain.name, *chain.attributes)
        elif group == 4:
            return None
    return Names(used, attributes)


@lru_cache(maxsize=65536)
def _chain(written: bytes) -> Chain:
    words = list(_WORD.finditer(written))
    name, *attributes = [word[0].decode() for word in words]
    if name in _SCOPES or words[-1][0] in WRAPPERS or any(word in written for word in facts.WORDS):
        odd_with: re.Pattern[bytes] | None = _ALWAYS
    else:
        odd_with = _IF_CERTAIN if name == "if" else None
    ends = tuple(word.end() for word in words)
    return Chain("" if keyword.iskeyword(name) else name, tuple(attributes), ends, odd_with)
