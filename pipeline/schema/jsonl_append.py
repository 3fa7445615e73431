"""Files of JSON in lines that are added to, so that what was killed goes on from what it has written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[Any]:
    """What the whole lines hold, nothing if there is no file. A line that a kill cut off is left out."""
    found = []
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def add_line(path: Path, value: Any) -> None:
    """In one write, so that several threads and processes may add; behind a line that was cut off, on a new one."""
    with path.open("ab+", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - 1))
        cut = end and stream.read(1) != b"\n"
        stream.write(b"\n" * bool(cut) + json.dumps(value).encode() + b"\n")
