"""The meanings of the columns, for the Croissant metadata.

`docs/reference/schema.md` is their source, and tests compare it with the records. `make docs` extracts `columns.json`,
which the package ships.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def read_page(page: str) -> dict[str, dict[str, str]]:
    """Record -> column -> meaning, read from the table below each heading of the page, without links."""
    parts = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    meanings = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        columns = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, flags=re.MULTILINE))
        if columns:
            meanings[heading] = {name: _LINK.sub(r"\1", text) for name, text in columns.items()}
    return meanings


@cache
def read_meanings() -> dict[str, dict[str, str]]:
    """Record -> column -> meaning."""
    meanings: dict[str, dict[str, str]] = json.loads((TEMPLATES / "columns.json").read_text(encoding="utf-8"))
    return meanings


def meaning(record: type, column: str) -> str:
    """The meaning of a record's column, with `Pair` as the fallback; "" if it has none."""
    meanings = read_meanings()
    return meanings.get(record.__name__, {}).get(column) or meanings["Pair"].get(column, "")
