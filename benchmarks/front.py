"""Measure the front door: `kernelquarry check`, `Checker`, the import and the size of the package.

    python benchmarks/front.py                    # prints the four figures
    python benchmarks/front.py check_s import_s   # some of them
    python benchmarks/front.py --record           # records what was measured

    front.check_s      seconds of `kernelquarry check` of a softmax pair, cold, without a GPU, until its verdict
    front.check_rate   kernels a second that a warm `Checker` judges without a GPU: right and wrong ones of `tests`
    front.import_s     seconds of `import kernelquarry` in a fresh process, the median of five
    front.core_mb      megabytes that `pip install kernelquarry` downloads, without torch and triton

All run on two cores. The last needs the package index.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from figures import ROOT, record
from versus import CONTROL, Entry, of_cases

from kernelquarry.pipeline.check import Checker, CheckVerdict

CORES = 2
SAMPLE = 60  # kernels of `front.check_rate`, half of them from the corpus of evil candidates
APART = ("torch", "triton")  # packages whose builds depend on the machine
_KERNELQUARRY = Path(sys.executable).with_name("kernelquarry")


def sample(number: int) -> list[Entry]:
    """Kernels of mixed quality, as of models: half of them right. The same in every run."""
    chosen: list[Entry] = []
    draw = random.Random(0)
    for corpus in ("honest", "evil"):
        entries = [entry for entry in of_cases(corpus, gpus=False) if entry.corpus != CONTROL]
        chosen += draw.sample(entries, number // 2)
    draw.shuffle(chosen)
    return chosen


def check_s() -> tuple[float, str]:
    (pair,) = (entry for entry in of_cases("honest", gpus=False) if (entry.corpus, entry.name) == ("honest", "softmax"))
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "module.py"), Path(folder, "kernel.py")
        for path, code in zip(paths, (pair.reference, pair.code), strict=True):
            path.write_text(code)
        command = [str(_KERNELQUARRY), "check", *map(str, paths), "--gpus", "none"]
        started = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            verdict = next(line for line in process.stdout if re.match("VERIFIED|REJECTED|UNJUDGED", line))
            took_s = time.monotonic() - started
    return took_s, verdict.strip()


def check_rate(number: int = SAMPLE) -> tuple[float, str]:
    entries = sample(number)
    with Checker(gpus="none", workers=CORES + 1) as checker:
        checker.check(entries[0].reference, entries[0].code)  # starts the guests
        started = time.monotonic()
        verdicts: list[CheckVerdict] = checker.check_all([(entry.reference, entry.code) for entry in entries])
        took_s = time.monotonic() - started
    ends = Counter(f"{entry.corpus} {verdict.status}" for entry, verdict in zip(entries, verdicts, strict=True))
    slowest = max(zip(verdicts, entries, strict=True), key=lambda pair: pair[0].wall_s)
    note = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    return number / took_s, f"{note}; slowest {slowest[1].name}, {slowest[0].wall_s:.1f} s"


def import_s() -> tuple[float, str]:
    script = "import time; start = time.perf_counter(); import kernelquarry; print(time.perf_counter() - start)"
    done = [subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True) for _ in range(5)]
    return statistics.median(float(each.stdout) for each in done), ""


def core_mb() -> tuple[float, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [each for each in project["dependencies"] if re.split(r"\W", each)[0] not in APART]
    pip = [sys.executable, "-m", "pip"]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        subprocess.run([*pip, "download", *options, "--only-binary=:all:", "--dest", folder, *needed], check=True)
        with tempfile.TemporaryDirectory() as copy:  # a build writes into its source folder
            archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
            subprocess.run(["tar", "-x", "-C", copy], input=archive, check=True)
            own = [*pip, "wheel", *options, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, copy]
            subprocess.run(own, check=True)
        sizes = {path.name.split("-")[0]: path.stat().st_size / 1e6 for path in Path(folder).iterdir()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:4]
    return sum(sizes.values()), ", ".join(f"{name} {sizes[name]:.1f}" for name in largest)


FIGURES: dict[str, tuple[Callable[[], tuple[float, str]], str]] = {
    "check_s": (check_s, "s"),
    "check_rate": (check_rate, "/s"),
    "import_s": (import_s, "s"),
    "core_mb": (core_mb, "MB"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"of {', '.join(FIGURES)}; all if none is named")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results/figures.json")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.figures) - FIGURES.keys()):
        parser.error(f"no such figure: {', '.join(unknown)}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for name in arguments.figures or FIGURES:
        measure, unit = FIGURES[name]
        value, note = measure()
        print(f"front.{name:12} {value:.3g} {unit:4} {note}")
        if arguments.record:
            record(f"front.{name}", value, f"python benchmarks/front.py {name} --record", note=note)


if __name__ == "__main__":
    main()
