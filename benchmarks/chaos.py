"""Builds a small corpus again and again while things go wrong, and compares the shards with an undisturbed build's.

    python benchmarks/chaos.py                       # 50 rounds; records scale.chaos
    python benchmarks/chaos.py --rounds 3 --until probe --dry

A round meets up to three faults, drawn by its seed, and then runs undisturbed to its end:

    kill        the command is killed at some moment (SIGKILL)
    kill guest  one of the processes that it started is
    full        files cannot grow past some size, as on a full disk
    read only   the run directory cannot be written
    damage      files of the store and of finished stages lose their end, or have a flipped bit
    requests    the store is an object store that fails one request in three
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import psutil
from fsspec.implementations.local import LocalFileSystem

from kernelquarry.pipeline.figures import record

COMMAND = "python benchmarks/chaos.py"
FAULTS = ("kill", "kill guest", "full", "read only", "damage", "requests")
WORKERS = 2
AT_ONCE = 2 * WORKERS  # records that a worker holds
NOBODY = 65534
LICENCE = "Permission is hereby granted, free of charge, under the MIT License. SPDX-License-Identifier: MIT\n"
MODULE = """

class Layer{n}(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.{function}(x * self.weight) + {n}.0
"""
FUNCTIONS = "relu sigmoid tanh exp sin cos abs square".split()


class Unreliable(LocalFileSystem):
    """Fails one request in three."""

    protocol = "unreliable"

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        if random.random() < 1 / 3:
            raise OSError(f"{path}: 503, slow down")
        return super()._open(path, mode, **kwargs)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the command, in a process of its own."""

    root: Path
    corpus: Path
    until: str

    def start(self, fault: str, seed: random.Random) -> subprocess.Popen[bytes]:
        store = f"unreliable://{self.root}/store" if fault == "requests" else str(self.root / "store")
        command = [sys.executable, __file__, "--child", self.root, self.corpus, self.until, store]
        limit = seed.choice((500, 5_000, 50_000))

        def prepare() -> None:
            if fault == "full":
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        user = NOBODY if fault == "read only" and os.getuid() == 0 else None
        return subprocess.Popen(
            list(map(str, command)), preexec_fn=prepare, user=user, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def run(self, fault: str, seed: random.Random, seconds: float) -> int:
        """Exit status. `seconds` is what the undisturbed run took."""
        if fault == "damage":
            damage(self.root, seed)
        process = self.start(fault, seed)
        if fault in ("kill", "kill guest"):
            try:
                return process.wait(seed.uniform(0.0, seconds))
            except subprocess.TimeoutExpired:
                kill(process, fault, seed)
        return process.wait(10 * seconds + 60)


def kill(process: subprocess.Popen[bytes], fault: str, seed: random.Random) -> None:
    target = process.pid
    if fault == "kill guest":
        others = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        if not others:
            return
        target = seed.choice(sorted(others))
    with suppress(ProcessLookupError):  # it ended just now
        os.kill(target, signal.SIGKILL)


def damage(root: Path, seed: random.Random) -> None:
    files = sorted(path for path in root.rglob("*") if path.suffix in (".parquet", ".json") and path.stat().st_size)
    for path in seed.sample(files, min(3, len(files))):
        data = path.read_bytes()
        at = seed.randrange(len(data))
        cut, flipped = data[:at], data[:at] + bytes([data[at] ^ 1 << seed.randrange(8)]) + data[at + 1 :]
        path.write_bytes(cut if seed.random() < 0.5 else flipped)


def child(root: Path, corpus: str, until: str, store: str) -> None:
    """All stages up to `until`; each record whose work begins becomes a line of `began`."""
    from kernelquarry.pipeline.build import run_stage
    from kernelquarry.pipeline.graph import STAGES
    from kernelquarry.pipeline.opening import on_runner, open_run, sandbox_settings
    from kernelquarry.pipeline.schema.errors import UserError
    from kernelquarry.transforms import stage as stages

    fsspec.register_implementation("unreliable", Unreliable)
    guarded = stages.run_guarded

    def counted(work: Any, given: Any, *services: Any) -> Any:
        with root.with_suffix(".began").open("a") as stream:
            stream.write(json.dumps([work.__name__, given.id]) + "\n")
        return guarded(work, given, *services)

    try:
        run = open_run(root, corpus, root.parent, sandbox_settings(WORKERS))
        run = on_runner(run, None, store, "none")
        for stage in STAGES:
            if stage.work is not None and stage.work.where is stages.Where.GUESTS:
                stages.run_guarded = counted
            run_stage(run, stage, lambda *_: nullcontext())
            stages.run_guarded = guarded
            if stage.name == until:
                return
    except (UserError, OSError) as error:
        sys.exit(f"chaos: {error}")


def shards(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.glob("stages/*/*.parquet"))}


def repeated(began: Path, lines_before: int) -> int:
    """Records whose work began again after the first `lines_before`."""
    lines = began.read_text().splitlines() if began.exists() else []
    return len(set(lines[:lines_before]) & set(lines[lines_before:]))


def round_of(number: int, folder: Path, corpus: Path, until: str, seconds: float) -> tuple[Path, Counter[str], int]:
    """The finished run directory, the faults that it met, and the most records that were begun again after a kill."""
    seed, root = random.Random(number), folder / f"round{number}"
    began, attempt, faults, worst = root.with_suffix(".began"), Attempt(root, corpus, until), Counter[str](), 0
    before = 0
    for fault in [*seed.choices(FAULTS, k=seed.randint(1, 3)), ""]:
        status = attempt.run(fault, seed, seconds)
        now = len(began.read_text().splitlines()) if began.exists() else 0
        if faults and next(reversed(faults)) == "kill" and fault != "damage":
            worst = max(worst, repeated(began, before))
        faults[fault or "none"] += 1
        before = now
        if not fault and status:
            raise SystemExit(f"round {number}: the undisturbed end failed with status {status}")
    return root, faults, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--until", default="tidy", help="last stage of each build")
    parser.add_argument("--dry", action="store_true", help="record no figure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        corpus = folder / "layers"
        corpus.mkdir()
        (corpus / "LICENSE").write_text(LICENCE)
        modules = (MODULE.format(n=n, function=function) for n, function in enumerate(FUNCTIONS))
        (corpus / "layers.py").write_text("import torch\nfrom torch import nn\n" + "".join(modules))
        started, undisturbed = time.monotonic(), folder / "undisturbed"
        if Attempt(undisturbed, corpus, given.until).run("", random.Random(0), 600.0):
            raise SystemExit("the undisturbed build failed")
        seconds, expected = time.monotonic() - started, shards(undisturbed)
        met, same, worst = Counter[str](), 0, 0
        for number in range(given.rounds):
            root, faults, redone = round_of(number, folder, corpus, given.until, seconds)
            same += shards(root) == expected
            met.update(faults)
            worst = max(worst, redone)
            print(f"round {number}: {dict(faults)}, {redone} begun again, {same} of {number + 1} the same", flush=True)
            shutil.rmtree(root)
    told = f"{same} of {given.rounds} builds, {len(expected)} shards each; " + ", ".join(
        f"{n} x {fault}" for fault, n in sorted(met.items()) if fault != "none"
    )
    if not given.dry:
        record("scale.chaos", 100 * same / given.rounds, COMMAND, told)
        record("scale.chaos.redone", worst / AT_ONCE, COMMAND, f"{worst} records of {AT_ONCE} that a worker may hold")
    raise SystemExit(same < given.rounds)


if __name__ == "__main__":
    child(Path(sys.argv[2]), *sys.argv[3:6]) if sys.argv[1:2] == ["--child"] else main()
