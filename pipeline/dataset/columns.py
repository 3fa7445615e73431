"""What each column of each record means, as `docs/schema.md` has it.

The page is written for people and tested against the records; the package carries what it says as `columns.json`, which
`make docs` makes of it, for Croissant and for whoever has no clone.
"""

from __future__ import annotations

import json
import re
from functools import cache

from .render_template import TEMPLATES

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def read_page(page: str) -> dict[str, dict[str, str]]:
    """Record -> column -> what it means, of the tables below each heading of the page; links become their text."""
    parts = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    found = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        columns = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, flags=re.MULTILINE))
        if columns:
            found[heading] = {name: _LINK.sub(r"\1", meaning) for name, meaning in columns.items()}
    return found


@cache
def meanings() -> dict[str, dict[str, str]]:
    """Record -> column -> what it means."""
    found: dict[str, dict[str, str]] = json.loads((TEMPLATES / "columns.json").read_text(encoding="utf-8"))
    return found


def meaning(record: type, column: str) -> str:
    """Of a column; what several records share is told of `Pair`. Empty if nothing is said."""
    told = meanings()
    return next((told[name][column] for name in (record.__name__, "Pair") if column in told.get(name, {})), "")
