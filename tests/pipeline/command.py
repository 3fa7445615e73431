"""Runs the command line in its own process, optionally with an injected fault."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import forked
import pytest
import warm
from beam_signatures import cache_signatures
from forked import Ended

from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.records import Pair

KERNELQUARRY = Path(sys.executable).with_name("kernelquarry")
TIMEOUT_S = 120


def run_program(*arguments: str | Path, cwd: Path) -> Ended:
    """Run `kernelquarry ARGUMENTS` as a user does."""
    done = subprocess.run(
        [KERNELQUARRY, *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def run(*arguments: str | Path, cwd: Path, fault: str = "", after: int = 0) -> Ended:
    """Run `kernelquarry ARGUMENTS` in a process of its own, which is faster than `run_program`.

    `fault` is the name of a signal or the number of an OSError. It strikes when a file is flushed to the disk for the
    time `after`: files are flushed before they have their name (odd times), and their folders after it.
    """
    loans = warm.SHARED.loans() if warm.SHARED is not None else []
    return forked.run(_main, list(map(str, arguments)), cwd, fault, after, loans, timeout_s=TIMEOUT_S)


def _main(arguments: list[str], cwd: Path, fault: str, after: int, loans: list[warm.Loan]) -> None:
    patch = pytest.MonkeyPatch()  # for the rest of this process
    warm.borrow(loans, patch)
    cache_signatures(patch)
    flushed, fsync = itertools.count(1), os.fsync

    def faulty(descriptor: int) -> None:
        fsync(descriptor)
        if next(flushed) == after:
            if fault.isdigit():
                raise OSError(int(fault), os.strerror(int(fault)))
            os.kill(os.getpid(), getattr(signal, fault))

    if fault:
        os.fsync = faulty  # type: ignore[assignment]
    os.chdir(cwd)
    os.environ["COLUMNS"] = "80"
    sys.argv = ["kernelquarry", *arguments]
    from kernelquarry.pipeline.cli.app import main

    main()


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
