"""Wheels on disk: checked whenever they are opened, never unpacked or executed."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

from .corpus import Tree


@dataclass(frozen=True, slots=True)
class Archive(Tree):
    """One package's file on disk, pinned by its hash."""

    corpus: str
    package: str
    revision: str
    path: Path
    sha256: str

    def check(self) -> None:
        """Raises: UserError: the file is not the pinned one."""
        try:
            found = sha256_of(self.path)
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror}: run again to download it") from None
        if found != self.sha256:
            raise UserError(
                f"{self.path}: is not the file that was pinned (sha256 {found[:16]}, expected {self.sha256[:16]}): "
                "delete it and run again"
            )


class Wheel(Archive):
    """One wheel on disk."""

    __slots__ = ()

    @contextmanager
    def open(self) -> Iterator[WheelContents]:
        self.check()
        try:
            archive = zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise UserError(f"{self.path}: {error}: the pinned file is no wheel, remove it from the corpus") from None
        with archive:
            yield WheelContents(archive)


class WheelContents:
    """Reads from the archive in memory; nothing is written, so that names in it cannot lead anywhere."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def paths(self) -> list[str]:
        return [info.filename for info in self._archive.infolist() if not info.is_dir()]

    def size(self, path: str) -> int:
        return self._archive.getinfo(path).file_size

    def read(self, path: str) -> bytes:
        """At most the declared size is ever unpacked."""
        try:
            return self._archive.read(path)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise OSError(f"damaged or encrypted: {error}") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
