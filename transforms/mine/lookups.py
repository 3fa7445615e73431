"""Names of attributes that a text has in strings, as `getattr` and registries look them up."""

from __future__ import annotations

import re
from typing import NamedTuple

_STRING = re.compile(rb"['\"]([A-Za-z_]\w*)['\"]")
_ALL = re.compile(rb"__dict__|\b(?:attrgetter|dir|getmembers|methodcaller|vars)\s*\(")
_OF_ALL = (b"__dict__", b"attrgetter", b"dir", b"getmembers", b"methodcaller", b"vars")  # found a hundred times as fast
_ONE = re.compile(rb"\bgetattr\s*\(")
_LITERAL_ONE = re.compile(rb"\bgetattr\s*\((?:[^,()]|\([^()]*\))*,\s*(?:'\w*'|\"\w*\")\s*[,)]")


class LookUps(NamedTuple):
    words: frozenset[str]  # every string that could be a name
    any: bool  # whether it may look up others too: `getattr(x, name)` where the name is no literal, `vars(x)`


NO_LOOK_UPS = LookUps(frozenset(), False)


def look_ups(source: bytes) -> LookUps:
    """By the text alone: a string in a comment counts too."""
    computed = b"getattr" in source and len(_ONE.findall(source)) > len(_LITERAL_ONE.findall(source))
    everything = any(word in source for word in _OF_ALL) and _ALL.search(source) is not None
    return LookUps(frozenset(map(bytes.decode, set(_STRING.findall(source)))), computed or everything)
