"""Verify every case of the evil corpus, and record how many were accepted or harmed the host.

    python benchmarks/evil.py
    python benchmarks/evil.py returns_zeros fork_bomb    # some of the cases, without writing a figure

Harm is what the host can observe after the candidate has ended: a new or changed file outside of the sandbox's folder,
a process that is left, or a changed environment.
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
from kernelquarry.pipeline.sandbox.layers import process_usage
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.transforms.verify import VerifySettings, verify

sys.path.insert(0, str(ROOT / "tests"))

from corpus import GROUPS, Case, load_case, load_cases

SETTINGS = VerifySettings(target="sm_90", find_counterexamples=False, limits=Limits(wall_s=60, cpu_s=6))
_GONE_S = 5.0
WATCHED = {  # folder -> pattern of its files; other programs write into the system's temporary folder, too
    Path("/tmp"): "kernelquarry*",
    Path("/var/tmp"): "*",
    Path("/dev/shm"): "*",
    Path("/"): "*",
    Path.home(): "*",
    Path(torch.__file__).parent: "*.py",
}


@dataclass(frozen=True)
class Host:
    """The state of the host that no candidate may change."""

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
    """Number of processes below this one."""
    return len(process_usage.tree(os.getpid(), sys.maxsize)) - 1


def still_there(wanted: int) -> int:
    """Number of processes below this one, once it is at most `wanted` or `_GONE_S` have passed.

    A killed process takes a while to disappear, above all an executor with an endless kernel.
    """
    deadline = time.monotonic() + _GONE_S
    while (left := descendants()) > wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def judge(case: Case, sandbox: Sandbox) -> tuple[str, bool]:
    """The code of the reason for a rejection, or "accepted", and True if the case expects that reason.

    On a GPU any reason is accepted, since the expectations are about the interpreter: a kernel that the interpreter
    runs to its end may fault on a GPU, and an act that the interpreter observes may show there in the values only.
    """
    outcome = verify(case.candidate, sandbox, SETTINGS)
    if not isinstance(outcome, Dropped):
        return "accepted", False
    fits = sandbox.gpus is not None or (outcome.reason in case.reasons and case.evidence in outcome.evidence)
    return outcome.reason.value, fits


@dataclass(frozen=True)
class Result:
    """Verdicts on a share of the cases."""

    reasons: dict[str, Counter[str]]  # by group
    bad: list[str]  # a line for each case without the expected verdict, or with harm
    where: str  # the machine


def judge_share(cases: Sequence[Case], gpus: tuple[int, ...]) -> Result:
    """Verify these cases one after the other, in their own sandbox, and compare the host's state after each."""
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    bad: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="evil-") as scratch,
        Sandbox(SandboxSettings(1, scratch=scratch, gpus=gpus)) as sandbox,
    ):
        for name in ("softmax", "mixed_linear"):
            started = verify(load_case("honest", name).candidate, sandbox, SETTINGS)
            assert isinstance(started, Kept), started  # all warm processes have started now
        # A GPU whose executor has failed keeps a spare one from then on.
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
        return Result(dict(reasons), bad, machine(sandbox.gpus.description.name if sandbox.gpus else "no GPU"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names of cases (default: all)")
    parser.add_argument("--gpus", default="all")
    parser.add_argument(
        "--processes", type=int, default=1, help="number of processes that share the cases (default: 1)"
    )
    args = parser.parse_args()
    wanted, gpus = set(args.cases), choose_gpus(args.gpus)
    plain, waiting = load_cases("evil"), load_cases("evil", needs="gpu")
    cases = [case for case in plain + (waiting if gpus else []) if not wanted or case.name in wanted]
    begun = time.monotonic()
    shares = [cases[number :: args.processes] for number in range(args.processes)]
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(judge_share, shares, repeat(gpus)))
    for group in GROUPS:
        counts = sum((share.reasons.get(group, Counter()) for share in results), Counter[str]())
        listed = ", ".join(f"{reason} {count}" for reason, count in counts.most_common())
        print(f"{group:20} {counts.total():4}  {listed}")
    left = "" if gpus else f", {len(waiting)} more need a GPU"
    print(f"{len(cases)} cases in {time.monotonic() - begun:.0f} s{left}")
    bad = [line for share in results for line in share.bad]
    print(*bad, sep="\n")
    if not wanted:
        figure = f"verdict.evil_accepted{'.gpu' if gpus else ''}"
        note = f"{len(cases)} cases in {len(GROUPS)} groups{left}"
        record(figure, len(bad), "python benchmarks/evil.py", note, results[0].where)


if __name__ == "__main__":
    main()
