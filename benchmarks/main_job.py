"""Measure `make dataset`, `make test` and `make train` in a fresh clone, and record the figures.

    python benchmarks/main_job.py                       # clone, make dataset, again, from an empty store, make test
    python benchmarks/main_job.py --only dataset second # chosen steps, in a clone that is kept
    python benchmarks/main_job.py --corpus default --only dataset
    python benchmarks/main_job.py --only train          # make train, on the dataset in the clone

Everything runs in a fresh clone of the last commit, under `--workdir` (kept, so that a step can be repeated).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from figures import ROOT, record

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.jsonl_append import read_lines

_MODULE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
"""
STEPS = ("dataset", "second", "scratch", "fresh", "replay", "train", "test")


@dataclass
class Ran:
    seconds: float
    peak_gb: float


def run(command: list[str], cwd: Path, **environment: str) -> Ran:
    """Run a command, and sample the memory of its session. Raises if it fails."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, env={**os.environ, **environment}, start_new_session=True)
    peak, done = [0], threading.Event()

    def sample() -> None:
        while not done.wait(3):  # a look takes a core for 50 ms
            peak[0] = max(peak[0], session_memory(process.pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        status = process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        done.set()
        sampler.join()
    if status:
        sys.exit(f"{' '.join(command)} failed with exit status {status}")
    return Ran(time.monotonic() - started, peak[0] / 2**20)


def session_memory(session: int) -> int:
    """KiB of all processes of a session and their descendants: proportional set size, shared pages counted once."""
    parents: dict[int, int] = {}
    members: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it ended
            parents[int(entry.name)] = int(fields[1])
            if int(fields[3]) == session:
                members.add(int(entry.name))
    grown = True
    while grown:
        new = {pid for pid, parent in parents.items() if parent in members} - members
        members |= new
        grown = bool(new)
    return sum(proportional(pid) for pid in members)


def proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def shards(dataset: Path) -> dict[str, str]:
    paths = sorted((dataset / "data").rglob("*.parquet"))
    return {str(path.relative_to(dataset)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def conservation(run_directory: Path) -> float:
    """Percentage of the funnel's lines that add up."""
    manifests = [StageManifest.read(path) for path in sorted((run_directory / "stages").glob("*/stage.json"))]
    counts = [count for manifest in manifests if manifest for count in manifest.counts]
    good = sum(c.entered == c.kept + c.total_dropped + c.total_errored for c in counts)
    return 100 * good / len(counts)


def fresh_rows(clone: Path, dataset: Path, workdir: Path) -> tuple[int, int, list[str]]:
    """(rows that agree, rows, errors) in an environment with torch, triton and numpy only."""
    venv = workdir / "plain"
    if not (venv / "bin" / "python").exists():
        pins = [line for line in (clone / "requirements.lock").read_text().split() if "==" in line]
        triton, numpy = (next(p for p in pins if p.startswith(f"{name}==")) for name in ("triton", "numpy"))
        torch = subprocess.run(
            [clone / ".venv/bin/python", "-c", "import torch; print(torch.__version__.split('+')[0])"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", f"torch=={torch}", triton, numpy], check=True)
    rows = "".join(
        json.dumps({"id": row.id, "python_code": row.python_code, "triton_code": row.triton_code}) + "\n"
        for row in read_rows(dataset)
    )
    done = subprocess.run(
        [venv / "bin/python", ROOT / "benchmarks" / "fresh_rows.py"],
        input=rows, capture_output=True, text=True, check=True, cwd=workdir,
        env={"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "HOME": str(workdir), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    results = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [f"{result['id']}: {result['error']}" for result in results if not result["ok"]]
    return len(results) - len(errors), len(results), errors


def train(clone: Path, dataset: Path) -> tuple[float, str]:
    """(minutes, description of the loss) of `make train`; the minutes include its set-up if the clone had none.

    Raises SystemExit: the loss did not fall, or the model cannot be loaded to write a kernel.
    """
    out = clone / "out" / "train" / "measured"
    shutil.rmtree(out, ignore_errors=True)
    trained = run(["make", "train", f"DATASET={dataset}", f"OUT={out}"], clone)
    losses = [entry["loss"] for entry in read_lines(out / "sft" / "curves.jsonl") if "loss" in entry]
    if losses[-1] >= losses[0]:
        sys.exit(f"the loss did not fall: {losses}")
    module = clone / "out" / "module.py"
    module.write_text(_MODULE)
    write = [str(clone / ".venv/bin/kernelquarry"), "write", str(module), "--model", str(out / "sft" / "model")]
    run([*write, "--no-verify", "--new-tokens", "64"], clone)  # as it can be loaded; none of its kernels need be right
    return trained.seconds / 60, f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} entries"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="tiny")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--workdir", type=Path, default=Path("out/bench"))
    arguments = parser.parse_args()
    workdir, corpus = arguments.workdir.resolve(), arguments.corpus
    workdir.mkdir(parents=True, exist_ok=True)
    clone = workdir / "clone"
    out = clone / "out" / corpus
    command = f"python benchmarks/main_job.py --corpus {corpus}"
    keep = partial(record, command=command, checkout=clone)
    make = ["make", "dataset", f"CORPUS={corpus}"]

    if "dataset" in arguments.only:
        shutil.rmtree(clone, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        setup = run(["make", "setup"], clone)
        built = run(make, clone)
        pairs = sum(1 for _ in read_rows(out / "dataset"))
        if corpus == "tiny":
            keep("main.minutes_tiny", (setup.seconds + built.seconds) / 60)
            keep("main.minutes_tiny.pipeline", built.seconds / 60)
            keep("main.minutes_tiny.peak_gb", built.peak_gb)
        else:
            keep(f"main.pairs_{corpus}.minutes", built.seconds / 60)
        keep(f"main.pairs_{corpus}", pairs)
        keep("main.conservation", conservation(out))
    before = shards(out / "dataset")
    if "second" in arguments.only:
        keep("main.second_run_s", run(make, clone).seconds)
        if shards(out / "dataset") != before:
            sys.exit("the second run changed the shards")
    if "scratch" in arguments.only:
        for name in ("stages", "store", "dataset"):
            shutil.rmtree(out / name)
        run(make, clone)
        after = shards(out / "dataset")
        same = sum(after.get(name) == digest for name, digest in before.items())
        keep("main.second_run_s.identical_shards", 100 * same / len(before))
    if "fresh" in arguments.only:
        good, total, errors = fresh_rows(clone, out / "dataset", workdir)
        print(*errors, sep="\n")
        keep("main.fresh_replay.plain", 100 * good / total, note=f"{good} of {total} rows")
    if "replay" in arguments.only:
        replayed = subprocess.run(
            [clone / ".venv/bin/kernelquarry", "reverify", out / "dataset"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        print(replayed.stdout, replayed.stderr)
        held, total = map(int, re.findall(r"(\d+) of (\d+) rows verified again", replayed.stdout)[0])
        keep("main.fresh_replay", 100 * held / total, note=f"{held} of {total} rows")
    if "train" in arguments.only:
        minutes, note = train(clone, out / "dataset")
        keep("train.cpu_minutes", minutes, note=note)
    if "test" in arguments.only:
        keep("main.test_minutes", run(["make", "test"], clone).seconds / 60)


if __name__ == "__main__":
    main()
