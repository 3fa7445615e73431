"""The table of ways to fool a verifier is complete, and the cases that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus import load_cases

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "ways.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| \d", line)]
CASES = {case.name for case in load_cases("evil") + load_cases("evil", needs="gpu")}


def test_every_known_way_has_its_row() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 58))
    assert all(len(row) == 4 and row[3] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_way_names_existing_cases(row: list[str]) -> None:
    played = re.findall(r"`([\w./]+)`", row[2])
    assert played
    assert [name for name in played if name not in CASES and not (ROOT / name).is_file()] == []
