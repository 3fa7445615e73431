"""Measure the layout of the product code, and record the figures `layout.*`: `python benchmarks/layout.py`."""

import subprocess
from collections import Counter
from pathlib import Path

from figures import ROOT, record

PRODUCT = ("pipeline", "transforms", "filters", "recipes")
COMMAND = "python benchmarks/layout.py"
SHARED_NAMES = ("__init__.py", "transform.py")  # one in each package, one in each stage


def product_files() -> list[Path]:
    """Python files of the product that git tracks."""
    command = ["git", "ls-files", *(f"{folder}/*.py" for folder in PRODUCT)]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names]


def main() -> None:
    files = product_files()
    names = Counter(path.name for path in files if path.name not in SHARED_NAMES)
    twice = sorted(name for name, number in names.items() if number > 1)
    record("layout.lines", sum(len(path.read_text().splitlines()) for path in files), COMMAND)
    record("layout.flat", sum(path.parent == ROOT / "pipeline" for path in files), COMMAND)
    record("layout.twice", len(twice), COMMAND, ", ".join(twice))
    record("layout.graph_lines", len((ROOT / "pipeline" / "graph.py").read_text().splitlines()), COMMAND)


if __name__ == "__main__":
    main()
