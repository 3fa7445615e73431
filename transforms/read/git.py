"""A commit of a local git repository, read from its objects: what lies in the working tree does not count.

Only plumbing that looks at objects is run, without the user's and the system's settings, and with no way to fetch:
none of these commands runs a hook, a filter, a pager or a file-system monitor, whatever the repository's settings say.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

from .corpus import Tree
from .folder import remote_of

_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ALLOW_PROTOCOL": "none",  # objects that a partial clone lacks are not fetched
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_FILE_MODES = ("100644", "100755")  # links and submodules are left out


@dataclass(frozen=True, slots=True)
class GitTree(Tree):
    """A corpus of one commit, and its tree."""

    root: Path
    corpus: str
    package: str  # "owner/name" of the remote, else the folder's name
    revision: str  # the commit

    @property
    def name(self) -> str:
        return self.corpus

    def digests(self) -> dict[str, str]:
        return {self.package: self.revision}

    def shards(self) -> Sequence[GitTree]:
        return [self]

    @contextmanager
    def open(self) -> Iterator[GitContents]:
        command = [*_command(self.root), "cat-file", "--batch"]
        process = subprocess.Popen(command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            yield GitContents(_entries(self.root, self.revision), process)
        finally:
            process.kill()
            process.communicate()


class GitContents:
    def __init__(self, entries: dict[str, tuple[str, int]], process: subprocess.Popen[bytes]) -> None:
        self._entries, self._process = entries, process

    def paths(self) -> list[str]:
        return list(self._entries)

    def size(self, path: str) -> int:
        return self._entries[path][1]

    def read(self, path: str) -> bytes:
        blob, size = self._entries[path]
        into, out = self._process.stdin, self._process.stdout
        assert into is not None and out is not None
        into.write(f"{blob}\n".encode())
        into.flush()
        header = out.readline().split()
        if len(header) != 3:
            raise OSError(f"git does not have the object {blob}")
        data = out.read(size + 1)
        if len(data) != size + 1:
            raise OSError(f"git broke off in the object {blob}")
        return data[:-1]


def open_commit(root: Path, revision: str) -> GitTree:
    """The corpus that is a commit of a repository. Raises: UserError: there is no such repository or commit."""
    root = root.resolve()
    commit = _run(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    if not commit:
        raise UserError(f"{root}: has no commit {revision}")
    name = root.name.removesuffix(".git")
    return GitTree(root, name, remote_of(root) or name, commit.decode())


def _entries(root: Path, commit: str) -> dict[str, tuple[str, int]]:
    """path -> (blob, bytes)."""
    found = {}
    for line in _run(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0"):
        if line:
            head, _, path = line.partition(b"\t")
            mode, _, blob, size = head.decode().split()
            if mode in _FILE_MODES and size.isdigit():
                found[path.decode(errors="replace")] = blob, int(size)
    return found


def _run(root: Path, *arguments: str) -> bytes:
    try:
        command = [*_command(root), *arguments]
        done = subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError(f"{root}: git is not installed: install it, or give the folder without @") from None
    if done.returncode and done.stderr.strip():
        raise UserError(f"{root}: {done.stderr.decode(errors='replace').strip().splitlines()[-1]}")
    return done.stdout


def _command(root: Path) -> list[str]:
    return ["git", *_SAFE, "--no-pager", "-C", str(root)]


def _environment() -> dict[str, str]:
    """What the user's environment says of git does not count either."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}, **_ENVIRONMENT}
