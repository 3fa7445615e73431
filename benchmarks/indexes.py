"""Make the indexes of benchmarks that the package ships.

make indexes CHECKOUTS=FOLDER     # FOLDER has a checkout of each repository, under its name

`BENCHMARKS` lists the repositories and commits. No text of theirs is written.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.transforms.decontaminate import Origin
from kernelquarry.transforms.decontaminate.benchmark_index import SHIPPED, SUFFIX
from kernelquarry.transforms.decontaminate.build_index import index_benchmark


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark that the package ships an index of, and the place of its problems in its repository."""

    origin: Origin
    place: str


_TRITONBENCH = "thunlp/TritonBench", "603e28a5050e8c268f6883a69709d477a272d49a", "Apache-2.0"
BENCHMARKS = (
    Benchmark(
        Origin("kernelbench", "ScalingIntelligence/KernelBench", "423217d9fda91e0c2d67e4a43bf62f96f6d104f1", "MIT"),
        "KernelBench",
    ),
    Benchmark(
        Origin("robust-kbench", "SakanaAI/robust-kbench", "078f5bab29934a822268d59a4e707d449abf9b4e", "Apache-2.0"),
        "tasks",
    ),
    Benchmark(Origin("tritonbench-g", *_TRITONBENCH), "data/TritonBench_G_v1"),
    Benchmark(Origin("tritonbench-t", *_TRITONBENCH), "data/TritonBench_T_v1"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, help="folder with a checkout of each repository")
    parser.add_argument("--only", choices=[each.origin.benchmark for each in BENCHMARKS])
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    for benchmark in BENCHMARKS:
        origin = benchmark.origin
        if given.only in (None, origin.benchmark):
            checkout = given.checkouts / origin.source.partition("/")[2]
            check_commit(checkout, origin.commit)
            path = SHIPPED / f"{origin.benchmark}{SUFFIX}"
            settings = SandboxSettings(workers=given.workers)
            about = index_benchmark(origin, str(checkout / benchmark.place), path, settings, lambda found: found)
            print(f"{path}: {about.problems} problems, {about.ran} of which run {about.warning}")


def check_commit(checkout: Path, commit: str) -> None:
    """Exit if the folder is missing or is a git checkout of another commit; an unpacked archive is taken as it is."""
    if not checkout.is_dir():
        sys.exit(f"{checkout}: no checkout: clone the repository there, at commit {commit}")
    if (checkout / ".git").exists():
        command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
        head = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if head != commit:
            sys.exit(f"{checkout}: is at {head}: check out {commit}, or change BENCHMARKS")


if __name__ == "__main__":
    main()
