"""Compare two dataset folders row by row, and print every difference: `compare_datasets.py BEFORE AFTER`.

    python benchmarks/compare_datasets.py before/dataset out/tiny/dataset --record

A row is the same if `python_code` and `triton_code` are equal to the byte, the verdict is equal but for what it was
reached on (environment, layers) and how near errors came to their bounds in the last digits, and every other column is
equal. A rejected row is the same if its code and its reason are. Lost records are compared by stage and reason.
`--record` writes the figure `layout.same_rows`. Exit status 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from figures import record

# Where and when, not what: they differ between two builds of the same code.
_UNCOMPARED = frozenset({"environment", "layers", "seconds", "timings", "git_commit", "release"})
_RELATIVE = 1e-6  # of floats, whose last digits depend on the machine's libraries


def read_config(folder: Path, config: str) -> dict[str, dict[str, Any]]:
    """The rows of a config by id."""
    tables = [pq.read_table(path).to_pylist() for path in sorted((folder / "data" / config).glob("*.parquet"))]
    return {row["id"]: row for rows in tables for row in rows}


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """The places at which two values differ, a line each."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after} - _UNCOMPARED):
            yield from differences(before.get(key), after.get(key), f"{place}.{key}" if place else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif isinstance(before, float) and isinstance(after, float):
        if abs(before - after) > _RELATIVE * max(abs(before), abs(after)) and not (before != before and after != after):
            yield f"{place}: {before!r} was, {after!r} is"
    elif before != after:
        yield f"{place}: {str(before)[:80]!r} was, {str(after)[:80]!r} is"


def compare_rows(before: Path, after: Path, config: str, columns: frozenset[str] | None = None) -> tuple[int, int]:
    """(rows that are the same, rows of either) of a config; prints the others. `columns` None compares them all."""
    old, new = read_config(before, config), read_config(after, config)
    same = 0
    for id in sorted({*old, *new}):
        if id not in old or id not in new:
            print(f"{config} {id}: only {'after' if id in new else 'before'}")
            continue
        rows = [{key: row[key] for key in row if columns is None or key in columns} for row in (old[id], new[id])]
        found = list(differences(*rows))
        same += not found
        for line in found:
            print(f"{config} {id}: {line}")
    return same, len({*old, *new})


def compare_losses(before: Path, after: Path) -> bool:
    """True if the funnels of two manifests agree; prints what differs."""
    old, new = (json.loads((folder / "manifest.json").read_text())["funnel"] for folder in (before, after))
    found = list(differences(old, new, "funnel"))
    for line in found:
        print(line)
    return not found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--record", action="store_true", help="write the figure layout.same_rows")
    arguments = parser.parse_args()
    same, number = compare_rows(arguments.before, arguments.after, "pairs")
    rejected = compare_rows(
        arguments.before, arguments.after, "rejected", frozenset({"id", "python_code", "triton_code", "reason"})
    )
    losses_agree = compare_losses(arguments.before, arguments.after)
    share = 100 * (same + rejected[0]) / max(1, number + rejected[1])
    print(
        f"{same} of {number} pairs and {rejected[0]} of {rejected[1]} rejected rows are the same; "
        f"the funnels {'agree' if losses_agree else 'differ'}"
    )
    if arguments.record:
        command = "python benchmarks/compare_datasets.py before/dataset out/tiny/dataset --record"
        note = f"{number} pairs, {rejected[1]} rejected rows; the funnels {'agree' if losses_agree else 'differ'}"
        record("layout.same_rows", share, command, note)
    return not (same == number and rejected[0] == rejected[1] and losses_agree)


if __name__ == "__main__":
    sys.exit(main())
