"""Source distributions: archives that are read and never built, since building one runs its code."""

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

from .corpus import MAX_STATEMENT_BYTES
from .read_files import MAX_BYTES
from .wheels import Archive

MAX_UNPACKED = 2_000_000_000  # bytes of a whole archive
SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")


class Sdist(Archive):
    """One source distribution on disk."""

    __slots__ = ()

    @contextmanager
    def open(self) -> Iterator[SdistContents]:
        self.check()
        try:
            members = _zipped(self.path) if zipfile.is_zipfile(self.path) else _tarred(self.path)
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
            raise UserError(f"{self.path}: {error}: not a whole archive, remove it from the corpus") from None
        yield SdistContents(members)


class SdistContents:
    """What may be read of an archive, in memory; its other files are not kept, larger ones only have a size.

    Paths start below the folder `package-version`, and below `src` where the sources lie there.
    """

    def __init__(self, members: list[tuple[str, int, bytes]]) -> None:
        self._members = {_place(name): (size, data) for name, size, data in members}
        self._paths = [_place(name) for name, _, _ in members]

    def paths(self) -> list[str]:
        return self._paths

    def size(self, path: str) -> int:
        return self._members[path][0]

    def read(self, path: str) -> bytes:
        return self._members[path][1]


def _place(name: str) -> str:
    return name.partition("/")[2].removeprefix("src/")


def _wanted(name: str, size: int) -> bool:
    limit = MAX_BYTES if name.endswith(".py") else MAX_STATEMENT_BYTES
    return size <= limit and (name.endswith(".py") or is_statement(_place(name)))


def _tarred(path: Path) -> list[tuple[str, int, bytes]]:
    """In one pass: going back in a compressed archive means to unpack it again. Links are left out."""
    found, total = [], 0
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            total += member.size
            if total > MAX_UNPACKED:
                raise tarfile.ReadError(f"unpacks to more than {MAX_UNPACKED} bytes")
            if member.isreg():
                stream = archive.extractfile(member) if _wanted(member.name, member.size) else io.BytesIO()
                assert stream is not None
                found.append((member.name, member.size, stream.read()))
    return found


def _zipped(path: Path) -> list[tuple[str, int, bytes]]:
    with zipfile.ZipFile(path) as archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        return [
            (info.filename, info.file_size, archive.read(info) if _wanted(info.filename, info.file_size) else b"")
            for info in files
        ]
