"""Which files of a tree can define a module at all, by the words of their class statements; the rest is not parsed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

# What ends a list of bases is further away than this in no class that was seen; without an end all is possible.
_CLASS = re.compile(rb"class\s+(\w+)\s*[\[(](?:(.{0,1000}?)\)\s*:)?", re.DOTALL)
_ALIAS = re.compile(rb"\n[ \t]*+(\w++)[ \t]*+(?::[^\n=]*+)?=[ \t]*+([\w.]++)[ \t]*+(?=[#;\n])")
_RENAMED = re.compile(rb"as\s+(\w+)")
_BEFORE = re.compile(rb"(\w+)\s+\Z")
_IMPORT = re.compile(rb"import[ \t]*(\(?)")
_WORD = re.compile(rb"\w+")
_NAME = re.compile(rb"\w+|\*")
_COMMENT = re.compile(rb"#[^\n]*")
_STATEMENT = 4000  # bytes of the longest import statement that is looked at
_LONGEST = 100  # and of the longest name
_NN = b"nn"


class Candidates:
    """Looks for words only, so that it may say yes to what is no module, and never no to one that `Classes` would find.

    A word is alive if some file may give it to a module: `nn`, what is imported from `torch.nn`, and whatever a class
    statement, an assignment or an `as` makes of a word that is alive. A class may be a module if its bases have one.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._bases: dict[str, list[frozenset[bytes] | None]] = {}  # of a file's classes; None: not known
        self._leads_to: dict[bytes, set[bytes]] = defaultdict(set)
        self._alive: set[bytes] = {_NN}
        self._all = False  # what a star import brings cannot be told by words
        if any(b"torch" in source for source in sources.values()):
            for path, source in sources.items():
                self._read(path, source)
            self._spread()

    def may_define(self, path: str) -> bool:
        """Whether the file may define a module."""
        bases = self._bases.get(path, [])
        return any(words is None or self._all or not self._alive.isdisjoint(words) for words in bases)

    def _read(self, path: str, source: bytes) -> None:
        self._bases[path] = []
        for match in _CLASS.finditer(source):
            name, listed = match.groups()
            words = None if listed is None else frozenset(_WORD.findall(listed))
            self._bases[path].append(words)
            for word in (_NN,) if words is None else words:
                self._leads_to[word].add(name)
        for name, value in _ALIAS.findall(b"\n" + source + b"\n"):
            for word in value.split(b"."):
                self._leads_to[word].add(name)
        for match in _RENAMED.finditer(source):
            before = _BEFORE.search(source, max(0, match.start() - _LONGEST), match.start())
            if before is not None:
                self._leads_to[before.group(1)].add(match.group(1))
        if _NN in source:
            for names in _imported_from_nn(source):
                self._alive.update(names)
                self._all = self._all or b"*" in names

    def _spread(self) -> None:
        waiting = list(self._alive)
        while waiting:
            new = self._leads_to[waiting.pop()] - self._alive
            self._alive |= new
            waiting += new


def _imported_from_nn(source: bytes) -> Iterator[set[bytes]]:
    """Of each import statement with `nn` in the name of a module: what it may bind, and `*`."""
    for match in _IMPORT.finditer(source):
        start = source.rfind(b"\n", 0, match.start()) + 1
        origin = _WORD.findall(source[start : match.start()])
        if origin and _NN not in origin:
            continue
        text = source[match.end() : match.end() + _STATEMENT].replace(b"\\\n", b" ")
        if match.group(1):
            text = _COMMENT.sub(b"", text).partition(b")")[0]
        else:
            text = text.partition(b"\n")[0].partition(b"#")[0]
        names = set(_NAME.findall(text))
        if _NN in (origin or names):
            yield names - {b"torch", b"as"}
