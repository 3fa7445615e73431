"""Source distributions on disk. They are read and never built: a build runs the package's code."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelquarry.filters.licences import is_statement
from kernelquarry.pipeline.schema.errors import UserError

from .corpus import MAX_STATEMENT_BYTES, Entry
from .read_files import MAX_BYTES
from .wheels import Archive

MAX_UNPACKED = 2_000_000_000  # limit for all files of an archive, in bytes
SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")


class Sdist(Archive):
    """A source distribution on disk.

    Paths start below the folder `package-version`, and below `src` if the sources are there.
    """

    __slots__ = ()

    @contextmanager
    def open(self) -> Iterator[list[Entry]]:
        self.check()
        try:
            members = _zipped(self.path) if zipfile.is_zipfile(self.path) else _tarred(self.path)
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
            raise UserError(f"{self.path}: {error}: the archive is damaged: remove it from the corpus") from None
        last = {member.path: member for member in members}  # a later member replaces an earlier one of the same path
        yield [last[member.path] for member in members]


def _entry(name: str, size: int, data: bytes) -> Entry:
    return Entry(_place(name), size, lambda: data)


def _place(name: str) -> str:
    return name.partition("/")[2].removeprefix("src/")


def _is_read(name: str, size: int) -> bool:
    """True for Python files and licence statements up to their size limits: others are not held in memory."""
    limit = MAX_BYTES if name.endswith(".py") else MAX_STATEMENT_BYTES
    return size <= limit and (name.endswith(".py") or is_statement(_place(name)))


def _tarred(path: Path) -> list[Entry]:
    """Read a tar archive in one pass: going back would unpack it again. Links are skipped."""
    entries, total = [], 0
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            total += member.size
            if total > MAX_UNPACKED:
                raise tarfile.ReadError(f"unpacks to more than {MAX_UNPACKED} bytes")
            if member.isreg():
                stream = archive.extractfile(member) if _is_read(member.name, member.size) else io.BytesIO()
                assert stream is not None
                entries.append(_entry(member.name, member.size, stream.read()))
    return entries


def _zipped(path: Path) -> list[Entry]:
    with zipfile.ZipFile(path) as archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        return [
            _entry(name, size, archive.read(name) if _is_read(name, size) else b"")
            for name, size in ((info.filename, info.file_size) for info in files)
        ]
