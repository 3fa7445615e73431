"""Runs the command line in its own process, optionally with an injected fault."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.records import Pair

KERNELQUARRY = Path(sys.executable).with_name("kernelquarry")

# A signal, or an OSError by its number, when a file is flushed to the disk for the n-th time: files are flushed before
# they have their name (odd n), and their folders after it.
_FAULTY = """
import itertools, os, signal, sys
fault, after = sys.argv[1], int(sys.argv[2])
flushed, fsync = itertools.count(1), os.fsync

def faulty(descriptor):
    fsync(descriptor)
    if next(flushed) == after:
        if fault.isdigit():
            raise OSError(int(fault), os.strerror(int(fault)))
        os.kill(os.getpid(), getattr(signal, fault))

os.fsync = faulty
del sys.argv[1:3]
from kernelquarry.pipeline.cli.app import main
main()
"""


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def run(*arguments: str | Path, cwd: Path, fault: str = "", after: int = 0) -> Ended:
    """Run `kernelquarry ARGUMENTS`. `fault` is the name of a signal or the number of an OSError."""
    command = [sys.executable, "-c", _FAULTY, fault, str(after)] if fault else [str(KERNELQUARRY)]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Built:
    """A finished run of `kernelquarry dataset layers -v` in `folder`. Read-only, since tests share it."""

    folder: Path
    ended: Ended

    @property
    def root(self) -> Path:
        return self.folder / "out" / "layers"

    def manifests(self) -> list[StageManifest]:
        found = [StageManifest.read(path) for path in sorted((self.root / "stages").glob("*/stage.json"))]
        assert len(found) == len(STAGES)
        return [manifest for manifest in found if manifest is not None]

    def pairs(self) -> list[Pair]:
        from kernelquarry.pipeline.dataset.rows import read_rows

        return list(read_rows(self.root / "dataset"))


def dataset_bytes(root: Path) -> dict[str, bytes]:
    """The contents of each published file, by path."""
    dataset = root / "dataset"
    return {path.relative_to(dataset).as_posix(): path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
