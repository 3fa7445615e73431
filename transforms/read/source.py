"""What a source of Python files is. Every kind of corpus has these two interfaces, and nothing else differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol


class Contents(Protocol):
    """The files of an opened tree."""

    def paths(self) -> Iterable[str]:
        """POSIX paths of all regular files, each once for each time that the tree holds it."""

    def size(self, path: str) -> int:
        """Bytes."""

    def read(self, path: str) -> bytes:
        """The file's bytes. Raises: OSError: it cannot be read, or is damaged."""


class Tree(Protocol):
    """One package or checkout: the files that may import each other. Small and picklable; opened where it is read."""

    @property
    def corpus(self) -> str:
        """Name of the corpus it belongs to."""

    @property
    def package(self) -> str:
        """Distribution name, or repository "owner/name"."""

    @property
    def revision(self) -> str:
        """Version, or commit."""

    def open(self) -> AbstractContextManager[Contents]:
        """The tree's files. Raises: UserError: it is not what it was, and what to do."""


class Corpus(Protocol):
    """Where a dataset's modules come from."""

    @property
    def name(self) -> str: ...

    def digests(self) -> dict[str, str]:
        """What decides the corpus's content, without fetching it: tree -> digest."""

    def trees(self) -> Sequence[Tree]:
        """The trees, fetched if need be. Raises: UserError: they cannot be had, and what to do."""
