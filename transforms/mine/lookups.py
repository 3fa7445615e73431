"""Attribute names in strings, which `getattr` and registries may look up."""

from __future__ import annotations

import re
from typing import NamedTuple

_STRING = re.compile(rb"['\"]([A-Za-z_]\w*)['\"]")
_ALL = re.compile(rb"__dict__|\b(?:attrgetter|dir|getmembers|methodcaller|vars)\s*\(")
_ALL_WORDS = (b"__dict__", b"attrgetter", b"dir", b"getmembers", b"methodcaller", b"vars")  # much faster to find
_ONE = re.compile(rb"\bgetattr\s*\(")
_LITERAL_ONE = re.compile(rb"\bgetattr\s*\((?:[^,()]|\([^()]*\))*,\s*(?:'\w*'|\"\w*\")\s*[,)]")


class LookUps(NamedTuple):
    words: frozenset[str]  # every string that could be a name
    any: bool  # True if the code may look up any name: `getattr(x, name)` with a computed name, `vars(x)`


NO_LOOK_UPS = LookUps(frozenset(), False)


def look_ups(source: bytes) -> LookUps:
    """Find possible look-ups in the text. Strings in comments count too."""
    computed = b"getattr" in source and len(_ONE.findall(source)) > len(_LITERAL_ONE.findall(source))
    everything = any(word in source for word in _ALL_WORDS) and _ALL.search(source) is not None
    return LookUps(frozenset(map(bytes.decode, set(_STRING.findall(source)))), computed or everything)
