"""Packages pinned by hash in a requirements file: downloaded once, checked on every run, never installed or built."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.outcome import Dropped, Errored
from kernelquarry.pipeline.schema.reasons import Reason

from .corpus import CorpusFile
from .download import NotOffered, download, download_urls
from .sdist import SUFFIXES, Sdist
from .wheels import Wheel

_COMMENT = r"(?:\s+#.*)?"
_PINNED = re.compile(rf"([A-Za-z0-9._-]+)==(\S+)\s+--hash=sha256:([0-9a-f]{{64}}){_COMMENT}")
_BY_URL = re.compile(rf"([A-Za-z0-9._-]+)\s*@\s*(\S+)\s+--hash=sha256:([0-9a-f]{{64}}){_COMMENT}")
_AT_ONCE = 16  # packages that pip downloads in one call, where none is kept


@dataclass(frozen=True, slots=True)
class Requirement:
    """One pinned file: a wheel on a package index, or a wheel or source distribution at a URL."""

    package: str
    version: str
    sha256: str
    url: str = ""

    @property
    def line(self) -> str:
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"

    @property
    def suffix(self) -> str:
        return next((end for end in SUFFIXES if self.url.endswith(end)), ".whl")

    def path(self, folder: Path) -> Path:
        return folder / f"{self.package}-{self.version}-{self.sha256[:16]}{self.suffix}"


def parse_requirements(text: str, name: str) -> tuple[Requirement, ...]:
    """Parse a requirements file. Raises: UserError: a line is not a requirement pinned by one sha256."""
    requirements = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if match := _PINNED.fullmatch(line.strip()):
            requirements.append(Requirement(*match.groups()))
        elif match := _BY_URL.fullmatch(line.strip()):
            package, url, sha256 = match.groups()
            version = archive_version(PurePosixPath(unquote(urlsplit(url).path)))
            requirements.append(Requirement(package, version, sha256, url))
        else:
            raise UserError(
                f"{name}, line {number}: expected `package==version --hash=sha256:...` "
                f"or `package @ URL --hash=sha256:...`, got `{line.strip()}`"
            )
    if not requirements:
        raise UserError(f"{name}: lists no packages: give at least one requirement")
    return tuple(sorted(requirements, key=lambda requirement: (requirement.package, requirement.version)))


def archive_version(path: PurePosixPath) -> str:
    """Version in the name of a wheel or source distribution, "0" if there is none."""
    end = next((end for end in (*SUFFIXES, ".whl") if path.name.endswith(end)), "")
    parts = path.name.removesuffix(end).split("-")
    return next((part for part in parts[1:] if part[:1].isdigit()), "0")


def open_archive(path: Path) -> PinnedPackages:
    """Open a local wheel or source distribution as a corpus. Raises: UserError."""
    try:
        sha256 = digest(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: give a file that can be read") from None
    package = path.name.partition("-")[0]
    requirement = Requirement(package, archive_version(PurePosixPath(path.name)), sha256, str(path))
    return PinnedPackages(package, (requirement,), path)


@dataclass(frozen=True, slots=True)
class PinnedPackages:
    """A corpus of wheels and source distributions."""

    name: str
    requirements: tuple[Requirement, ...]
    cache: Path  # folder of downloads, or a single local file

    def digests(self) -> dict[str, str]:
        return _pins(self.requirements)

    def shards(self) -> Sequence[Wheel | Sdist]:
        if self.cache.is_file():
            trees = [_tree(self.name, requirement, self.cache) for requirement in self.requirements]
        else:
            folder = self.cache / "wheels"
            _download([r for r in self.requirements if not r.path(folder).exists()], folder)
            trees = [_tree(self.name, requirement, requirement.path(folder)) for requirement in self.requirements]
        for tree in trees:
            tree.check()
        return trees


@dataclass(frozen=True, slots=True)
class StreamedPackages:
    """A corpus of packages that are downloaded a few at a time and not kept, so that any number fits on a disk.

    A package that its index no longer offers, or whose archive is damaged, is dropped. `PinnedPackages` stops there,
    because whoever names a few packages wants all of them.
    """

    name: str
    requirements: tuple[Requirement, ...]
    cache: Path  # for the files while they are read

    def digests(self) -> dict[str, str]:
        return _pins(self.requirements)

    def shards(self) -> Sequence[PackageBatch]:
        listed = self.requirements
        batches = (listed[start : start + _AT_ONCE] for start in range(0, len(listed), _AT_ONCE))
        return [PackageBatch(self.name, batch, self.cache) for batch in batches]


@dataclass(frozen=True, slots=True)
class PackageBatch:
    """Packages that are downloaded, read and removed together."""

    corpus: str
    requirements: tuple[Requirement, ...]
    cache: Path

    def pieces(self) -> tuple[PackageBatch]:
        return (self,)

    def files(self) -> Iterator[CorpusFile | Dropped | Errored]:
        self.cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="packages-", dir=self.cache) as name:
            folder = Path(name)
            yield from _download_offered(self.requirements, folder)
            for requirement in self.requirements:
                if (path := requirement.path(folder)).exists():
                    try:
                        yield from _tree(self.corpus, requirement, path).files()
                    except UserError as error:
                        yield _without(requirement, error)


def _pins(requirements: Sequence[Requirement]) -> dict[str, str]:
    """SHA-256 of each pinned file, by package and version."""
    return {f"{r.package}=={r.version}": r.sha256 for r in requirements}


def _download_offered(requirements: Sequence[Requirement], folder: Path) -> Iterator[Dropped]:
    """Download the requirements that the index offers, with an outcome for each of the others."""
    try:
        _download(requirements, folder)
    except NotOffered as error:
        if len(requirements) == 1:
            yield _without(requirements[0], error)
        else:  # pip downloads nothing if it lacks one
            for requirement in requirements:
                yield from _download_offered([requirement], folder)


def _without(requirement: Requirement, error: UserError) -> Dropped:
    return Dropped(f"{requirement.package}@{requirement.version}", Reason.NO_PACKAGE, str(error))


def _tree(corpus: str, requirement: Requirement, path: Path) -> Wheel | Sdist:
    kind = Wheel if path.name.endswith(".whl") else Sdist
    return kind(corpus, requirement.package, requirement.version, path, requirement.sha256)


def _download(requirements: Sequence[Requirement], folder: Path) -> None:
    """Download requirements to their `path` in `folder`. Raises: UserError."""
    wheels = [requirement for requirement in requirements if not requirement.url]
    by_hash = {requirement.sha256: requirement for requirement in requirements}
    if wheels:
        with download([requirement.line for requirement in wheels], folder) as files:
            _place(files, by_hash, folder)
    if urls := [requirement.url for requirement in requirements if requirement.url]:
        with download_urls(urls, folder) as files:
            _place(files, by_hash, folder)
    if by_hash:
        names = ", ".join(f"{r.package}=={r.version}" for r in by_hash.values())
        raise UserError(f"no file with the pinned hash was downloaded for {names}: correct the pin")


def _place(files: Sequence[Path], by_hash: dict[str, Requirement], folder: Path) -> None:
    for file in files:
        if (requirement := by_hash.pop(digest(file), None)) is not None:
            file.replace(requirement.path(folder))
