"""Wheels on disk. Their hash is checked on every opening; they are never unpacked to disk or executed."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest

from .corpus import Entry, Tree


@dataclass(frozen=True, slots=True)
class Archive(Tree):
    """A package's archive on disk, pinned by its hash."""

    corpus: str
    package: str
    revision: str
    path: Path
    sha256: str

    def check(self) -> None:
        """Compare the file with its pinned hash. Raises: UserError."""
        try:
            found = digest(self.path)
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror}: run again to download it") from None
        if found != self.sha256:
            raise UserError(
                f"{self.path}: is not the pinned file (sha256 {found[:16]}, expected {self.sha256[:16]}): "
                "delete it and run again"
            )


class Wheel(Archive):
    """A wheel on disk."""

    __slots__ = ()

    @contextmanager
    def open(self) -> Iterator[list[Entry]]:
        self.check()
        try:
            archive = zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise UserError(f"{self.path}: {error}: not a wheel: remove it from the corpus") from None
        with archive:
            paths = [info.filename for info in archive.infolist() if not info.is_dir()]
            yield [Entry(path, archive.getinfo(path).file_size, partial(_read, archive, path)) for path in paths]


def _read(archive: zipfile.ZipFile, path: str) -> bytes:
    """Unpack a file in memory, at most its declared size. Raises: OSError."""
    try:
        return archive.read(path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise OSError(f"damaged or encrypted: {error}") from error
