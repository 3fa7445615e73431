"""Choose the packages of a corpus that are worth their download: those with enough modules that no other one has.

    kernelquarry read RUN --corpus candidates.txt && kernelquarry mine RUN
    python tools/choose_packages.py candidates.txt RUN --known RUN_OF_ANOTHER_CORPUS > chosen.txt

Packages are taken in the order of their number of modules. A package's yield is the number of its mined modules that
neither a known run nor a package before it has.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.records import Module
from kernelquarry.transforms.read.pinned import parse_requirements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("candidates", type=Path, help="requirements file of the packages")
    parser.add_argument("run", type=Path, help="run directory in which they were mined")
    parser.add_argument("--known", type=Path, action="append", default=[], help="run whose modules are not new")
    parser.add_argument("--least", type=int, default=3, help="least yield of a package")
    options = parser.parse_args()
    known = {id for run in options.known for _, id in modules(run)}
    by_package: dict[str, set[str]] = defaultdict(set)
    for package, id in modules(options.run):
        by_package[package].add(id)
    today, yields = f"{datetime.now(UTC):%Y-%m-%d}", dict[str, int]()
    for package in sorted(by_package, key=lambda name: (-len(by_package[name]), name)):
        new = by_package[package] - known
        if len(new) >= options.least:
            yields[package] = len(new)
            known |= new
    for requirement in parse_requirements(options.candidates.read_text(), str(options.candidates)):
        if requirement.package in yields:
            print(f"{requirement.line}  # {today}, {yields[requirement.package]} modules")


def modules(run: Path) -> Iterator[tuple[str, str]]:
    """(package, id) of each mined module."""
    for path in sorted(run.glob("stages/*-mine/kept-*.parquet")):
        for module in read_records(path, Module):
            yield module.source.package, module.id


if __name__ == "__main__":
    main()
