"""Digests of a dataset's rows: a build that was made anew elsewhere is compared with them, without its texts.

A line has five fields, separated by tabs:

    id  digest of python_code  digest of triton_code  verdict  split

The digests are the first 16 hex digits of SHA-256. The verdict is the purity of a pair, and the reason of a rejection.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Pair, Rejection

from .rows import read_rejections, read_rows

_FIELDS = "id", "module", "kernel", "verdict", "split"


def digests(dataset: Path) -> list[str]:
    """One line for each row of the configs `pairs` and `rejected`, sorted by id. Raises: UserError, SchemaError."""
    rows: list[Pair | Rejection] = [*read_rows(dataset), *read_rejections(dataset)]
    return sorted(map(_line, rows))


def _line(row: Pair | Rejection) -> str:
    verdict = row.reason if isinstance(row, Rejection) else row.purity.value
    return "\t".join((row.id, sha256(row.python_code)[:16], sha256(row.triton_code)[:16], verdict, row.split))


def read_digests(path: Path) -> list[str]:
    """The lines of a file that `digests` made. Raises: UserError: it holds something else."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: no file of digests ({error}): write one with `kernelquarry digests DATASET`"
        ) from None
    for number, line in enumerate(lines, 1):
        if line.count("\t") != len(_FIELDS) - 1:
            raise UserError(f"{path}:{number}: no line of digests: write the file with `kernelquarry digests DATASET`")
    return lines


def differences(before: list[str], after: list[str]) -> Iterator[str]:
    """A line for each row that only one side has, or whose fields differ."""
    old, new = ({line.partition("\t")[0]: line.split("\t") for line in lines} for lines in (before, after))
    for id in sorted(old.keys() | new.keys()):
        if id not in new:
            yield f"{id} is missing"
        elif id not in old:
            yield f"{id} is new"
        elif changed := [name for name, a, b in zip(_FIELDS, old[id], new[id], strict=True) if a != b]:
            yield f"{id} has another {' and '.join(changed)}"
