"""Interfaces of a corpus of Python files, and the base class of corpora that are trees of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from kernelquarry.filters.licences import Licences, is_statement, read_licences
from kernelquarry.pipeline.schema.outcome import Dropped, Errored

MAX_STATEMENT_BYTES = 200_000  # licence texts are much shorter


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A Python file in a corpus, not yet read."""

    package: str  # distribution name, or repository "owner/name"
    revision: str  # version, or commit
    path: str  # POSIX path inside the package
    size: int  # bytes
    read: Callable[[], bytes]  # Raises: OSError: the file cannot be read, or is damaged
    licences: Licences  # of its package
    encoding: str = ""  # as the corpus says; "": as the file itself declares

    @property
    def id(self) -> str:
        return f"{self.package}@{self.revision}/{self.path}"


class Shard(Protocol):
    """The unit that one worker reads: a package, or part of a table. It is small and can be pickled."""

    @property
    def corpus(self) -> str:
        """Name of the corpus."""

    def pieces(self) -> Iterable[Shard]:
        """Split the shard into shards that are small enough for one worker. Raises: UserError."""

    def files(self) -> Iterator[CorpusFile | Dropped | Errored]:
        """Stream the files, with an outcome for each unreadable entry. Raises: UserError: the shard has changed."""


class Corpus(Protocol):
    """A source of modules for a dataset."""

    @property
    def name(self) -> str: ...

    def digests(self) -> dict[str, str]:
        """Digest of each shard's content, found without a download. Raises: UserError."""

    def shards(self) -> Iterable[Shard]:
        """List the shards, downloading them if necessary. Raises: UserError: a shard is unavailable."""


class Entry(NamedTuple):
    """A regular file of an opened tree."""

    path: str  # POSIX path
    size: int  # bytes
    read: Callable[[], bytes]  # Raises: OSError: the file cannot be read, or is damaged


class Tree:
    """One package or checkout: files that may import each other, and licence texts for all of them."""

    __slots__ = ()

    corpus: str
    package: str
    revision: str

    def open(self) -> AbstractContextManager[Iterable[Entry]]:
        """Open the tree; a broken archive may list a path twice. Raises: UserError: the tree has changed."""
        raise NotImplementedError

    def pieces(self) -> Iterable[Tree]:
        return (self,)

    def files(self) -> Iterator[CorpusFile | Dropped | Errored]:
        """Each `.py` file, in the order of the paths."""
        with self.open() as opened:
            entries = sorted(opened, key=lambda entry: entry.path)
            statements = (e for e in entries if is_statement(e.path) and e.size <= MAX_STATEMENT_BYTES)
            licences = read_licences({entry.path: _statement(entry) for entry in statements})
            for path, size, read in entries:
                if path.endswith(".py"):
                    yield CorpusFile(self.package, self.revision, path, size, read, licences)


@dataclass(frozen=True, slots=True)
class LocalTree(Tree):
    """A file, a folder or a commit on this machine: a corpus whose only shard is itself."""

    root: Path
    corpus: str
    package: str  # "owner/name" of the git remote, else the folder's name
    revision: str  # the commit, else a digest of the files

    @property
    def name(self) -> str:
        return self.corpus

    def shards(self) -> Iterable[LocalTree]:
        return (self,)


def _statement(entry: Entry) -> str:
    """Text of a licence statement. An unreadable one permits nothing, like one that is not recognised."""
    try:
        return entry.read().decode(errors="replace")
    except OSError as error:
        return f"unreadable: {error}"
