"""The command lines and the files that the docs show."""

from __future__ import annotations

import re
from pathlib import Path

from figures import ROOT

PROGRAMS = (
    "vf-eval",
    "printf",
    "kernelquarry",
    "make",
    "python",
    "pip",
    "accelerate",
    "source",
    "cp",
    "sed",
    "echo",
    "ssh-keygen",
)
_BLOCK = re.compile(r"^ *```(\w*)([^\n]*)\n(.*?)^ *```|((?:^    \S[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')


def pages() -> list[Path]:
    """The README and the pages of docs/, without docs/results."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if ROOT / "docs" / "results" not in page.parents]


def files(page: Path) -> dict[str, str]:
    """Files whose whole text the page shows, by their names."""
    blocks = _BLOCK.finditer(page.read_text())
    return {title[1]: block[3] for block in blocks if (title := _TITLE.search(block[2] or ""))}


def commands(page: Path) -> list[str]:
    """The command lines of the page's blocks without a language, in order and without their comments."""
    lines = []
    for block in _BLOCK.finditer(page.read_text()):
        if (block[1] or "") in ("", "bash"):
            lines += [re.split(r"\s+# ", line.strip())[0] for line in (block[3] or block[4] or "").splitlines()]
    return [line for line in lines if line.partition(" ")[0] in PROGRAMS]
