"""What a source of Python files is. Every kind of corpus has these interfaces, and nothing else differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from kernelquarry.filters.licences import Licences, is_statement, read_licences
from kernelquarry.pipeline.schema.outcome import Dropped, Errored

MAX_STATEMENT_BYTES = 200_000  # a licence text is much shorter


@dataclass(frozen=True, slots=True)
class Found:
    """A Python file where a source holds it; it is read when it is asked for."""

    package: str  # distribution name, or repository "owner/name"
    revision: str  # version, or commit
    path: str  # POSIX path inside of the package
    size: int  # bytes
    read: Callable[[], bytes]  # Raises: OSError: it cannot be read, or is damaged
    licences: Licences  # what its package says
    encoding: str = ""  # what the source says of it, "" where the file itself decides

    @property
    def id(self) -> str:
        return f"{self.package}@{self.revision}/{self.path}"


class Shard(Protocol):
    """What one worker reads at a time: a package, or part of a table. Small, and can be pickled."""

    @property
    def corpus(self) -> str:
        """Name of the corpus it belongs to."""

    def pieces(self) -> Iterable[Shard]:
        """Shards that hold the same together, each small enough for one worker. Raises: UserError."""

    def files(self) -> Iterator[Found | Dropped | Errored]:
        """Its files, and what is none, as a stream. Raises: UserError: the shard is not what it was, and what to do."""


class Corpus(Protocol):
    """Where a dataset's modules come from."""

    @property
    def name(self) -> str: ...

    def digests(self) -> dict[str, str]:
        """What decides the corpus's content, without fetching it: shard -> digest. Raises: UserError."""

    def shards(self) -> Iterable[Shard]:
        """Fetched if need be. Raises: UserError: they cannot be had, and what to do."""


class Contents(Protocol):
    """The files of an opened tree."""

    def paths(self) -> Iterable[str]:
        """POSIX paths of all regular files, each once for each time that the tree holds it."""

    def size(self, path: str) -> int:
        """Bytes."""

    def read(self, path: str) -> bytes:
        """The file's bytes. Raises: OSError: it cannot be read, or is damaged."""


class Tree:
    """One package or checkout: the files that may import each other, and licence texts for all of them."""

    __slots__ = ()

    corpus: str
    package: str
    revision: str

    def open(self) -> AbstractContextManager[Contents]:
        """The tree's files. Raises: UserError: it is not what it was, and what to do."""
        raise NotImplementedError

    def pieces(self) -> Iterable[Tree]:
        return (self,)

    def files(self) -> Iterator[Found | Dropped | Errored]:
        """Each `.py` file, in the order of their paths."""
        with self.open() as contents:
            paths = sorted(contents.paths())
            licences = read_licences(_statements(contents, paths))
            for path in paths:
                if path.endswith(".py"):
                    yield self._found(contents, path, licences)

    def _found(self, contents: Contents, path: str, licences: Licences) -> Found | Errored:
        try:
            size = contents.size(path)
        except OSError as error:
            return Errored(f"{self.package}@{self.revision}/{path}", type(error).__name__, str(error))
        return Found(self.package, self.revision, path, size, lambda: contents.read(path), licences)


def _statements(contents: Contents, paths: Iterable[str]) -> dict[str, str]:
    wanted = {path for path in paths if is_statement(path) and contents.size(path) <= MAX_STATEMENT_BYTES}
    return {path: _statement(contents, path) for path in sorted(wanted)}


def _statement(contents: Contents, path: str) -> str:
    """One that cannot be read permits nothing, as one that is not understood."""
    try:
        return contents.read(path).decode(errors="replace")
    except OSError as error:
        return f"unreadable: {error}"
