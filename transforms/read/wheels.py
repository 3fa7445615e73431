"""Wheels pinned by hash in a requirements file: downloaded once, checked on every run, never unpacked or executed."""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

from .download import download

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)==(\S+)\s+--hash=sha256:([0-9a-f]{64})")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Requirement:
    """One pinned wheel."""

    package: str
    version: str
    sha256: str

    @property
    def line(self) -> str:
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"

    def path(self, folder: Path) -> Path:
        return folder / f"{self.package}-{self.version}-{self.sha256[:16]}.whl"


def parse_requirements(text: str, name: str) -> tuple[Requirement, ...]:
    """Raises: UserError: a line is no requirement pinned by one sha256."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _REQUIREMENT.fullmatch(line.strip())
        if match is None:
            raise UserError(
                f"{name}, line {number}: expected `package==version --hash=sha256:...`, got `{line.strip()}`"
            )
        found.append(Requirement(*match.groups()))
    if not found:
        raise UserError(f"{name}: lists no packages")
    return tuple(sorted(found, key=lambda requirement: (requirement.package, requirement.version)))


@dataclass(frozen=True, slots=True)
class PinnedWheels:
    """A corpus of wheels."""

    name: str
    requirements: tuple[Requirement, ...]
    cache: Path

    def digests(self) -> dict[str, str]:
        return {f"{r.package}=={r.version}": r.sha256 for r in self.requirements}

    def trees(self) -> Sequence[Wheel]:
        folder = self.cache / "wheels"
        missing = [r for r in self.requirements if not r.path(folder).exists()]
        if missing:
            fetch(missing, folder)
        trees = [Wheel(self.name, r.package, r.version, r.path(folder), r.sha256) for r in self.requirements]
        for tree in trees:
            tree.check()
        return trees


def fetch(requirements: Sequence[Requirement], folder: Path) -> None:
    """Download wheels to where `Requirement.path` says. Raises: UserError."""
    by_hash = {requirement.sha256: requirement for requirement in requirements}
    with download([requirement.line for requirement in requirements], folder) as files:
        for file in files:
            if (requirement := by_hash.pop(sha256_of(file), None)) is not None:
                file.replace(requirement.path(folder))
    if by_hash:
        names = ", ".join(f"{r.package}=={r.version}" for r in by_hash.values())
        raise UserError(f"pip downloaded no file with the pinned hash for {names}")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel on disk."""

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
                f"{self.path}: is not the wheel that was pinned (sha256 {found[:16]}, expected {self.sha256[:16]}): "
                "delete it and run again"
            )

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
