"""A commit of a local git repository as a corpus. Files come from git objects; the working tree does not matter.

Only plumbing commands that read objects are run, without user and system settings and without network access. None of
them runs a hook, filter, pager or file-system monitor, whatever the repository's own settings say.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

from .corpus import Entry, LocalTree
from .folder import read_git

_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ALLOW_PROTOCOL": "none",  # do not fetch objects that a partial clone lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_FILE_MODES = ("100644", "100755")  # no links, no submodules


class GitTree(LocalTree):
    """The files of a commit."""

    __slots__ = ()

    def digests(self) -> dict[str, str]:
        return {self.package: self.revision}

    @contextmanager
    def open(self) -> Iterator[list[Entry]]:
        command = [*_command(self.root), "cat-file", "--batch"]
        process = subprocess.Popen(command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            blobs = _blobs(self.root, self.revision)
            yield [Entry(path, size, partial(_read, process, blob)) for path, (blob, size) in blobs.items()]
        finally:
            process.kill()
            process.communicate()


def _read(process: subprocess.Popen[bytes], blob: str) -> bytes:
    """Read an object from `git cat-file --batch`. Raises: OSError."""
    into, out = process.stdin, process.stdout
    assert into is not None and out is not None
    into.write(f"{blob}\n".encode())
    into.flush()
    header = out.readline().split()
    if len(header) != 3:
        raise OSError(f"git does not have the object {blob}")
    size = int(header[2])
    data = out.read(size + 1)
    if len(data) != size + 1:
        raise OSError(f"git stopped in the middle of the object {blob}")
    return data[:-1]


def open_commit(root: Path, revision: str) -> GitTree:
    """Open a commit of a repository as a corpus. Raises: UserError: there is no such repository or commit."""
    root = root.resolve()
    commit = _run(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    if not commit:
        raise UserError(f"{root}: has no commit {revision}: give a commit, tag or branch of this repository")
    name = root.name.removesuffix(".git")
    return GitTree(root, name, read_git(root)[1] or name, commit.decode())


def _blobs(root: Path, commit: str) -> dict[str, tuple[str, int]]:
    """Files of a commit: path -> (blob, bytes)."""
    blobs = {}
    for line in _run(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0"):
        if line:
            head, _, path = line.partition(b"\t")
            mode, _, blob, size = head.decode().split()
            if mode in _FILE_MODES and size.isdigit():
                blobs[path.decode(errors="replace")] = blob, int(size)
    return blobs


def _run(root: Path, *arguments: str) -> bytes:
    try:
        command = [*_command(root), *arguments]
        done = subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError(f"{root}: git is not installed: install it, or give the folder without @REVISION") from None
    if done.returncode and done.stderr.strip():
        raise UserError(f"{root}: {done.stderr.decode(errors='replace').strip().splitlines()[-1]}")
    return done.stdout


def _command(root: Path) -> list[str]:
    return ["git", *_SAFE, "--no-pager", "-C", str(root)]


def _environment() -> dict[str, str]:
    """Environment without the user's git variables."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}, **_ENVIRONMENT}
