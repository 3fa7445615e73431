"""JSONL files that processes append to, and that survive a kill in the middle of a line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[Any]:
    """The values of all lines, without lines that a kill cut off. A missing file is an empty one."""
    values = []
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    return values


def add_line(path: Path, value: Any) -> None:
    """Append one value in a single write, so that threads and processes may share the file."""
    with path.open("ab+", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - 1))
        is_cut_off = end > 0 and stream.read(1) != b"\n"
        stream.write(b"\n" * is_cut_off + json.dumps(value).encode() + b"\n")
