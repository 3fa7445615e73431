"""Open the corpus that a user names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.read_toml import read_toml

from . import compositions, sdist, table_corpus
from .corpus import Corpus, Shard
from .folder import open_file, open_folder
from .git import open_commit
from .pinned import PinnedPackages, StreamedPackages, open_archive, parse_requirements
from .table_corpus import SHIPPED, Tables, open_tables

EMBEDDED = ("tiny", "default", "full", "wide")
_STREAMED = ("wide",)
STACKS = tuple(sorted(file.name.removesuffix(".toml") for file in SHIPPED.iterdir() if file.name.endswith(".toml")))
# Openers of names with a prefix, such as `compose:2000`. After any other prefix comes a path.
OPENERS: dict[str, Callable[[str], Corpus]] = {compositions.PACKAGE: compositions.parse_compositions}
_ARCHIVES = (".whl", *sdist.SUFFIXES)


@dataclass(frozen=True, slots=True)
class Joined:
    """Several corpora as one; each shard stays in the corpus that it comes from."""

    parts: tuple[Corpus, ...]

    @property
    def name(self) -> str:
        return "+".join(part.name for part in self.parts)

    def digests(self) -> dict[str, str]:
        return {shard: digest for part in self.parts for shard, digest in part.digests().items()}

    def shards(self) -> Iterator[Shard]:
        for part in self.parts:
            yield from part.shards()


def open_corpus(name: str, cache: Path) -> Corpus:
    """Open the corpus called `name`; `docs/guides/sources.md` lists the forms of names.

    Args:
        cache: folder for downloads.

    Raises:
        UserError: there is no such corpus.
    """
    base, composed = _parts(name)
    if base:
        return Joined((open_corpus(base, cache), compositions.parse_compositions(composed)))
    if name in EMBEDDED:
        text = SHIPPED.joinpath(f"{name}.txt").read_text()
        kind = StreamedPackages if name in _STREAMED else PinnedPackages
        return kind(name, parse_requirements(text, name), cache)
    if name in STACKS:
        return _open_source_file(Path(str(SHIPPED)) / f"{name}.toml", cache)
    if opener := OPENERS.get(name.partition(":")[0]):
        return opener(name)
    if name.endswith(table_corpus.SUFFIXES):
        return Tables(Path(name.replace("*", "")).name.partition(".")[0] or "table", (name,), cache)
    path = Path(name)
    if name and path.is_dir():
        return open_folder(path)
    if path.is_file() and path.suffix == ".py":
        return open_file(path)
    if path.is_file() and path.suffix == ".txt":
        return PinnedPackages(path.stem, parse_requirements(path.read_text(), name), cache)
    if path.is_file() and path.suffix == ".toml":
        return _open_source_file(path, cache)
    if path.is_file() and name.endswith(_ARCHIVES):
        return open_archive(path)
    folder, at, revision = name.rpartition("@")
    if at and Path(folder).is_dir():
        return open_commit(Path(folder), revision)
    raise UserError(
        f"{name or 'an empty name'}: no such corpus: give {', '.join(EMBEDDED)}, a folder, a .py file, "
        "or another source that docs/guides/sources.md names"
    )


def _open_source_file(path: Path, cache: Path) -> Corpus:
    entries = read_toml(path, "docs/guides/sources.md shows what is in one")
    if compositions.PACKAGE in entries:
        return compositions.open_compositions(entries, str(path), path.parent)
    return open_tables(entries, path, cache)


def full_name(name: str) -> str:
    """Rewrite the name of a corpus so that it is valid from any working directory."""
    base, composed = _parts(name)
    if base:
        return f"{full_name(base)}+{composed}"
    prefix, _, path = name.partition(":")
    if name in (*EMBEDDED, *STACKS) or prefix == compositions.PACKAGE or "://" in name:
        return name
    return f"{prefix}:{Path(path).resolve()}" if prefix in OPENERS else str(Path(name).resolve())


def is_released(name: str) -> bool:
    """True for a corpus whose dataset is made to be published; False for the smallest, and for a user's own files."""
    base, _ = _parts(name)
    return (base or name) in (*EMBEDDED[1:], *STACKS)


def _parts(name: str) -> tuple[str, str]:
    """Split `CORPUS+compose:...` into the corpus ("" if there is none) and the compositions."""
    base, _, number = name.rpartition(f"+{compositions.PACKAGE}:")
    return base, f"{compositions.PACKAGE}:{number}"
