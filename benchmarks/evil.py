"""Verifies every case of the evil corpus, and writes how many were accepted or did harm to the host.

    python benchmarks/evil.py
    python benchmarks/evil.py returns_zeros fork_bomb    # some of the cases, without writing a figure

Harm is what the host can see once the candidate is gone: a file outside of the sandbox's folder that is new or has
changed, a process that is left, an environment that is not what it was.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import torch
from figures import ROOT, machine, record

from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.layers import usage
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.transforms.verify import VerifySettings, verify

sys.path.insert(0, str(ROOT / "tests"))

from corpus import GROUPS, Case, load_case, load_cases

SETTINGS = VerifySettings(targets=("sm_90", "gfx942"), find_counterexamples=False, limits=Limits(wall_s=60, cpu_s=6))
_GONE_S = 5.0
WATCHED = {  # folder -> which of its files; others write into the system's temporary folder too
    Path("/tmp"): "kernelquarry*",
    Path("/var/tmp"): "*",
    Path("/dev/shm"): "*",
    Path("/"): "*",
    Path.home(): "*",
    Path(torch.__file__).parent: "*.py",
}


@dataclass(frozen=True)
class Host:
    """What a candidate must leave as it is."""

    files: frozenset[tuple[str, int, int]]  # path, size, time of change
    environment: frozenset[tuple[str, str]]

    @classmethod
    def look(cls) -> Host:
        files = set()
        for folder, pattern in WATCHED.items():
            for path in folder.glob(pattern):
                if path.is_file() and not path.is_symlink():
                    status = path.stat()
                    files.add((str(path), status.st_size, status.st_mtime_ns))
        return cls(frozenset(files), frozenset(os.environ.items()))


def descendants() -> int:
    """How many processes there are below this one."""
    return len(usage.tree(os.getpid(), sys.maxsize)) - 1


def still_there(wanted: int) -> int:
    """The same, once there are no more than `wanted`, or after some seconds: what was ended takes a while to be gone,
    an executor with a kernel that never ends above all, and what was left behind stays."""
    deadline = time.monotonic() + _GONE_S
    while (left := descendants()) > wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def judge(case: Case, sandbox: Sandbox) -> tuple[str, bool]:
    """What it was rejected with, "accepted" if it was not, and whether that is what must reject it.

    A GPU may reject it for another reason than the interpreter, which the expectations are of: a kernel that is
    interpreted to the end may fault, and what the interpreter sees in the act shows in the values.
    """
    outcome = verify(case.candidate, sandbox, SETTINGS)
    if not isinstance(outcome, Dropped):
        return "accepted", False
    fits = sandbox.gpus is not None or (outcome.reason in case.reasons and case.evidence in outcome.evidence)
    return outcome.reason.value, fits


@dataclass(frozen=True)
class Found:
    """What became of a share of the cases."""

    reasons: dict[str, Counter[str]]  # by group
    bad: list[str]
    where: str


def look_after(cases: Sequence[Case], gpus: tuple[int, ...]) -> Found:
    """Verify these one after the other, in a sandbox of their own, and look at the host after each."""
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    bad: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="evil-") as scratch,
        Sandbox(SandboxSettings(1, scratch=scratch, gpus=gpus)) as sandbox,
    ):
        for name in ("softmax", "mixed_linear"):
            started = verify(load_case("honest", name).candidate, sandbox, SETTINGS)
            assert isinstance(started, Kept), started  # all warm processes are there now
        # a GPU whose executor failed has another one waiting from then on
        before, processes = Host.look(), descendants() + len(gpus)
        for case in cases:
            reason, fits = judge(case, sandbox)
            reasons[case.group][reason] += 1
            if not fits:
                bad.append(f"{case.name}: {reason}, where it should be rejected as {case.reasons[0].value}")
            if (left := still_there(processes)) > processes:
                bad.append(f"{case.name}: {left} processes where there were {processes}")
                processes = left
            if (after := Host.look()) != before:
                bad.append(f"{case.name}: changed {sorted(after.files ^ before.files)[:4]}, or the environment")
                before = after
        return Found(dict(reasons), bad, machine(sandbox.gpus.description.name if sandbox.gpus else "no GPU"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names; all if none is given")
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--processes", type=int, default=1, help="that share the cases; each looks at the whole host")
    args = parser.parse_args()
    wanted, gpus = set(args.cases), choose_gpus(args.gpus)
    plain, waiting = load_cases("evil"), load_cases("evil", needs="gpu")
    cases = [case for case in plain + (waiting if gpus else []) if not wanted or case.name in wanted]
    begun = time.monotonic()
    shares = [cases[number :: args.processes] for number in range(args.processes)]
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(look_after, shares, repeat(gpus)))
    for group in GROUPS:
        counts = sum((share.reasons.get(group, Counter()) for share in found), Counter[str]())
        listed = ", ".join(f"{reason} {count}" for reason, count in counts.most_common())
        print(f"{group:20} {counts.total():4}  {listed}")
    left = "" if gpus else f", {len(waiting)} more need a GPU"
    print(f"{len(cases)} cases in {time.monotonic() - begun:.0f} s{left}")
    bad = [line for share in found for line in share.bad]
    print(*bad, sep="\n")
    if not wanted:
        figure = f"verdict.evil_accepted{'.gpu' if gpus else ''}"
        note = f"{len(cases)} cases in {len(GROUPS)} groups{left}"
        record(figure, len(bad), "python benchmarks/evil.py", note, found[0].where)


if __name__ == "__main__":
    main()
