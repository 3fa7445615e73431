"""A local file, folder or git checkout as a corpus. Files are read in place; git is not run."""

from __future__ import annotations

import configparser
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from kernelquarry.filters.licences import is_statement
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import canonical, sha256

from .corpus import Entry, LocalTree

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})  # and names that start with a dot
_REMOTE = re.compile(r"(?:[/:])([^/:]+/[^/:]+?)(?:\.git)?/?$")


class Folder(LocalTree):
    """The files of a folder."""

    __slots__ = ()

    def digests(self) -> dict[str, str]:
        return {self.package: digest_of(self.root)}

    @contextmanager
    def open(self) -> Iterator[Iterator[Entry]]:
        # Paths in a package start with its own name, by which its modules import each other.
        base = self.root.parent if (self.root / "__init__.py").exists() else self.root
        yield (
            Entry(path.relative_to(base).as_posix(), path.lstat().st_size, path.read_bytes) for path in walk(self.root)
        )


class SingleFile(LocalTree):
    """One Python file, with the licence statements that lie next to it."""

    __slots__ = ()

    def paths(self) -> list[Path]:
        folder = self.root.parent
        return [self.root, *(path for path in sorted(folder.iterdir()) if is_statement(path.name) and path.is_file())]

    def digests(self) -> dict[str, str]:
        return {self.package: _digest_of(self.paths(), self.root.parent)}

    @contextmanager
    def open(self) -> Iterator[Iterator[Entry]]:
        yield (Entry(path.name, path.lstat().st_size, path.read_bytes) for path in self.paths())


def open_file(path: Path) -> SingleFile:
    """Open a Python file as a corpus. Its revision is its content, since a checkout may hold changes."""
    path = path.resolve()
    return SingleFile(path, path.stem, read_git(path.parent)[1] or path.stem, _digest_of([path], path.parent)[:16])


def open_folder(root: Path) -> Folder:
    """Open a folder as a corpus, with package and revision from its git metadata."""
    root = root.resolve()
    commit, remote = read_git(root)
    return Folder(root, root.name, remote or root.name, commit or digest_of(root)[:16])


def walk(root: Path) -> Iterator[Path]:
    """Regular files below a folder, sorted. Links are not followed: they may lead outside, or in circles.

    Raises:
        UserError: a folder cannot be read.
    """
    for folder, folders, files in os.walk(root, onerror=_refuse):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _refuse(error: OSError) -> NoReturn:
    raise UserError(f"{error.filename}: {error.strerror}: make the folder readable, or move it out of the corpus")


def digest_of(root: Path) -> str:
    """Digest of the paths and bytes of all Python files and licence statements."""
    return _digest_of(walk(root), root)


def _digest_of(paths: Iterable[Path], root: Path) -> str:
    named = {path.relative_to(root).as_posix(): path for path in paths}
    return sha256(canonical({name: _digest(p) for name, p in named.items() if p.suffix == ".py" or is_statement(name)}))


def _digest(path: Path) -> str:
    """Digest of a file. An unreadable file does not fail here: reading reports it later."""
    try:
        return digest(path)
    except OSError as error:
        return f"unreadable: {error.strerror}"


def read_git(root: Path) -> tuple[str, str]:
    """Commit and remote ("owner/name") of a checkout or a bare repository; "" where there is none."""
    git = root / ".git"
    if not git.exists() and (root / "HEAD").is_file():  # a bare repository
        git = root
    try:
        if git.is_file():  # a worktree
            git = root / git.read_text().partition("gitdir:")[2].strip()
        return _commit(git), _remote(git)
    except (OSError, UnicodeDecodeError, configparser.Error):
        return "", ""


def _commit(git: Path) -> str:
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    common = _common(git)
    if (common / name).exists():
        return (common / name).read_text().strip()
    packed = (common / "packed-refs").read_text().splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")


def _remote(git: Path) -> str:
    config = configparser.ConfigParser(strict=False, interpolation=None)
    config.read_string("\n".join(line.strip() for line in (_common(git) / "config").read_text().splitlines()))
    match = _REMOTE.search(config.get('remote "origin"', "url", fallback=""))
    return match.group(1) if match else ""


def _common(git: Path) -> Path:
    """The git directory of the repository that a worktree belongs to."""
    common = git / "commondir"
    return (git / common.read_text().strip()).resolve() if common.exists() else git
