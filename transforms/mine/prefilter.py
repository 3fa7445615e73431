"""Find the files that may define a module by the words of their class statements; other files are not parsed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

# No class seen so far has a longer list of bases; a list without an end may contain anything.
_CLASS = re.compile(rb"class\s+(\w+)\s*[\[(](?:(.{0,1000}?)\)\s*:)?", re.DOTALL)
_ALIAS = re.compile(rb"\n[ \t]*+(\w++)[ \t]*+(?::[^\n=]*+)?=[ \t]*+([\w.]++)[ \t]*+(?=[#;\n])")
_RENAMED = re.compile(rb"as\s+(\w+)")
_BEFORE = re.compile(rb"(\w+)\s+\Z")
_IMPORT = re.compile(rb"import[ \t]*(\(?)")
_WORD = re.compile(rb"\w+")
_NAME = re.compile(rb"\w+|\*")
_COMMENT = re.compile(rb"#[^\n]*")
_MAX_STATEMENT_BYTES = 4000  # of an import statement
_MAX_NAME_BYTES = 100
_NN = b"nn"


class Candidates:
    """Over-approximates the files with modules: false positives are possible, false negatives are not.

    A word is alive if it may name a module class: `nn`, names imported from `torch.nn`, and names that a class
    statement, an assignment or an `as` derives from an alive word. A class may be a module if a base is alive.
    """

    def __init__(self, sources: Mapping[str, bytes], others: Mapping[str, bytes]) -> None:
        """Initialise.

        Args:
            others: sources that these may import, and that are not asked for.
        """
        self._bases: dict[str, list[frozenset[bytes] | None]] = {}  # path -> words in the bases of each class
        self._leads_to: dict[bytes, set[bytes]] = defaultdict(set)
        self._alive: set[bytes] = {_NN}
        self._all = False  # True if a star import from torch.nn may bind any name
        if any(b"torch" in source for source in sources.values()):
            for path, source in (*others.items(), *sources.items()):
                self._read(path, source)
            self._spread()

    def may_define(self, path: str) -> bool:
        """True if the file may define a module."""
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
            before = _BEFORE.search(source, max(0, match.start() - _MAX_NAME_BYTES), match.start())
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
    """For each import statement that names `nn`, the words that it may bind, `*` included."""
    for match in _IMPORT.finditer(source):
        start = source.rfind(b"\n", 0, match.start()) + 1
        origin = _WORD.findall(source[start : match.start()])
        if origin and _NN not in origin:
            continue
        text = source[match.end() : match.end() + _MAX_STATEMENT_BYTES].replace(b"\\\n", b" ")
        if match.group(1):
            text = _COMMENT.sub(b"", text).partition(b")")[0]
        else:
            text = text.partition(b"\n")[0].partition(b"#")[0]
        names = set(_NAME.findall(text))
        if _NN in (origin or names):
            yield names - {b"torch", b"as"}
