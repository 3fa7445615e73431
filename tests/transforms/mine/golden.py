"""Golden cases of mining as text files: a sentence, the tree's files, then the outcome of each file and class.

`python -m tests.transforms.mine.golden` rewrites the outcomes: read the diff before you commit it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module, SourceFile
from kernelquarry.transforms.mine import MineResult, mine_tree

CASES = Path(__file__).with_name("cases")
_FILE = re.compile(r"^--- (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    about: str
    files: dict[str, str]  # path -> text
    outcomes: str


def read_case(path: Path) -> Case:
    before, mark, outcomes = path.read_text().partition("\n=== ")
    about, *pieces = _FILE.split(before)
    files = dict(zip(pieces[::2], (piece.rstrip("\n") + "\n" for piece in pieces[1::2]), strict=True))
    return Case(about, files, mark.lstrip("\n") + outcomes)


def make_file(path: str, text: str, spdx: str = "MIT") -> SourceFile:
    source = SourceRef("corpus", "package", "1.0", path, sha256(text.encode(errors="replace")))
    return SourceFile(source, Licence(spdx, f"LICENSE: {spdx}"), text)


def mine(files: dict[str, str]) -> MineResult:
    return mine_tree([make_file(path, text) for path, text in files.items()])


def kept(result: MineResult) -> list[Module]:
    return [outcome.record for outcome in result.classes if isinstance(outcome, Kept)]


def describe(result: MineResult) -> str:
    """Write every outcome, except those of kept files."""
    lines = []
    for outcome in (*result.files, *result.classes):
        if isinstance(outcome, Dropped):
            evidence = f" ({outcome.evidence})" if outcome.evidence else ""
            lines.append(f"=== {outcome.id.partition('/')[2]} dropped: {outcome.reason.value}{evidence}\n")
    for module in kept(result):
        others = f" with {', '.join(module.imported_files)}" if module.imported_files else ""
        lines.append(f"=== {module.source.path}:{module.name}{others}\n{module.code}")
    return "".join(lines)


def write_case(path: Path, case: Case) -> None:
    files = "".join(f"--- {name}\n{text}" for name, text in case.files.items())
    path.write_text(case.about + files + describe(mine(case.files)))


if __name__ == "__main__":
    for golden in sorted(CASES.glob("*.txt")):
        write_case(golden, read_case(golden))
