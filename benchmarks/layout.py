"""Measure the layout of code and docs, and record the figures `layout.*`: `python benchmarks/layout.py`."""

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from doc_commands import commands, pages
from figures import ROOT, record
from pages import GENERATED, WHOLE

PRODUCT = ("pipeline", "transforms", "filters", "recipes")
COMMAND = "python benchmarks/layout.py"
SHARED_NAMES = ("__init__.py", "transform.py")  # one in each package, one in each stage


def product_files() -> list[Path]:
    """Python files of the product that git tracks."""
    command = ["git", "ls-files", *(f"{folder}/*.py" for folder in PRODUCT)]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names]


def doc_words() -> int:
    """Words in the README and in docs/, without docs/results, generated pages and generated parts of pages."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    written = [page for page in pages if page.relative_to(ROOT).as_posix() not in WHOLE]
    read = [page for page in written if ROOT / "docs" / "results" not in page.parents]
    return sum(words(page) for page in read)


def command_share() -> tuple[float, str]:
    """Percentage of the command lines in the docs that a test runs without an error, and a note."""
    test = "tests/pipeline/cli/test_documented_commands.py"
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-q", "-n0", f"--junitxml={report.name}", test]
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        cases = ElementTree.parse(report.name).findall(".//testcase")
    failed = {
        case.get("name", "") for case in cases if case.find("failure") is not None or case.find("error") is not None
    }
    lines = {page.relative_to(ROOT).as_posix(): commands(page) for page in pages()}
    ran = sum(len(shown) for page, shown in lines.items() if not any(f"[{page}]" in name for name in failed))
    total = sum(map(len, lines.values()))
    return (
        100 * ran / total,
        f"{ran} of {total} lines; builds, merges, trainings and models are doubles, and have tests of their own",
    )


def words(page: Path) -> int:
    """Words of a page that somebody wrote; rules and bars of tables are none."""
    return sum(any(map(str.isalnum, word)) for word in GENERATED.sub("", page.read_text()).split())


def main() -> None:
    files = product_files()
    names = Counter(path.name for path in files if path.name not in SHARED_NAMES)
    twice = sorted(name for name, number in names.items() if number > 1)
    record("layout.lines", sum(len(path.read_text().splitlines()) for path in files), COMMAND)
    record("layout.flat", sum(path.parent == ROOT / "pipeline" for path in files), COMMAND)
    record("layout.twice", len(twice), COMMAND, ", ".join(twice))
    record("layout.doc_words", doc_words(), COMMAND)
    share, note = command_share()
    record("layout.doc_commands", share, COMMAND, note)
    record("layout.graph_lines", len((ROOT / "pipeline" / "graph.py").read_text().splitlines()), COMMAND)


if __name__ == "__main__":
    main()
