"""Stream JSON lines. Several workers can read an uncompressed file, each a range of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from kernelquarry.pipeline.schema.errors import UserError

from .remote import RemoteFile, convert_errors

BYTES_A_PIECE = 64_000_000
MAX_LINE_BYTES = 64_000_000
_COMPRESSED = (".gz", ".zst", ".xz", ".bz2")

Batch = list[tuple[str, Mapping[str, Any]]]


def ranges(file: RemoteFile) -> Iterator[tuple[int, int] | None]:
    """Ranges of bytes to read separately; None for a compressed file, which can only be read from its start."""
    if file.url.endswith(_COMPRESSED):
        yield None
        return
    for start in range(0, file.size, BYTES_A_PIECE):
        yield start, min(start + BYTES_A_PIECE, file.size)


def batches(file: RemoteFile, piece: tuple[int, int] | None, rows: int) -> Iterator[Batch]:
    """Batches of the rows that start in the piece, each with its first byte. Raises: UserError."""
    batch: Batch = []
    with file.open() as stream, convert_errors(file.url):
        for start, line in _lines(stream, piece):
            if line.strip():
                batch.append((str(start), _row(file, start, line)))
            if len(batch) == rows:
                yield batch
                batch = []
    if batch:
        yield batch


def first_row(file: RemoteFile) -> Mapping[str, Any]:
    """Read the first row. Raises: UserError: the file is empty."""
    for batch in batches(file, None, 1):
        return batch[0][1]
    raise UserError(f"{file.url}: holds no rows: take it out of the corpus")


def _lines(stream: BinaryIO, piece: tuple[int, int] | None) -> Iterator[tuple[int, bytes]]:
    at = piece[0] if piece else 0
    if at:  # a line that starts before the piece belongs to the previous one
        stream.seek(at - 1)
        at += len(stream.readline(MAX_LINE_BYTES)) - 1
    while (piece is None or at < piece[1]) and (line := stream.readline(MAX_LINE_BYTES)):
        yield at, line
        at += len(line)


def _row(file: RemoteFile, start: int, line: bytes) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):  # not JSON, or not UTF-8
        problem = "the file ends inside a row" if not line.endswith(b"\n") else "this line is not JSON"
        raise UserError(f"{file.url}: byte {start}: {problem}: fetch the file again, or correct the line") from None
    if not isinstance(row, dict):
        raise UserError(
            f"{file.url}: byte {start}: a line holds {type(row).__name__}, not an object with columns: correct the line"
        )
    return row
