"""Files that are rows of parquet or of lines of JSON, read as a stream: a few hundred rows are in memory at once.

A table is read in pieces, so that workers can share it: row groups of parquet, ranges of bytes of JSON lines. Rows that
belong to one repository are gathered by the miner, wherever they were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kernelquarry.filters.licences import Licences, read_claims
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.outcome import Dropped, Errored
from kernelquarry.pipeline.schema.reasons import Reason

from . import jsonl
from .blobs import Opener, Refused, fetch
from .corpus import Found
from .mapping import Columns
from .remote import RemoteFile, reaching

ROWS_A_BATCH = 256
ROWS_A_PIECE = 5_000  # small row groups are read together
_TORCH = b"torch"
_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}

Row = tuple[str, Mapping[str, Any]]  # (where it stands, its values)


@dataclass(frozen=True, slots=True)
class TableShard:
    """A file of a table, or a piece of it."""

    corpus: str
    file: RemoteFile
    columns: Columns
    licence: str  # of all rows, where the table has no column for it
    only_torch: bool  # rows that do not mention torch are counted, and not looked at
    opener: Opener | None  # of blobs
    memory: Path | None = None  # where what was read is kept, for what is not on this machine
    piece: tuple[int, int] | None = None  # row groups, or bytes: [start, end); None: all

    @property
    def unit(self) -> str:
        start = f"#{self.piece[0]}" if self.piece else ""
        return f"{self.file.url}{start}"

    @property
    def key(self) -> str:
        """Of all that decides what its files are."""
        return sha256(
            canonical(
                [
                    self.corpus,
                    self.file.url,
                    self.file.digest,
                    asdict(self.columns),
                    self.licence,
                    self.only_torch,
                    self.piece,
                ]
            )
        )

    @property
    def is_json(self) -> bool:
        return not self.file.url.endswith(".parquet")

    def pieces(self) -> Iterable[TableShard]:
        ranges = jsonl.ranges(self.file) if self.is_json else _groups(self.file)
        return (replace(self, piece=part) for part in ranges)

    def files(self) -> Iterator[Found | Dropped | Errored]:
        others, total = 0, 0
        for batch in self._batches():
            entries = [entry for where, values in batch for entry in self._entries(where, values)]
            total += len(entries)
            for entry, content in zip(entries, self._contents(entries), strict=True):
                if self.only_torch and isinstance(content, bytes) and _TORCH not in content:
                    others += 1
                else:
                    yield self._file(entry, content)
        if others:
            yield Dropped(self.unit, Reason.NO_TORCH, f"{others} of {total} files")

    def _batches(self) -> Iterator[list[Row]]:
        if self.is_json:
            yield from jsonl.batches(self.file, self.piece, ROWS_A_BATCH)
            return
        with self.file.open() as stream, reaching(self.file.url):
            parquet = pq.ParquetFile(stream)
            groups = range(*self.piece) if self.piece else range(parquet.num_row_groups)
            for group in groups:
                number = 0
                wanted = self.columns.needed()
                for batch in parquet.iter_batches(ROWS_A_BATCH, row_groups=[group], columns=wanted):
                    rows = _rows(batch, self.columns.content)
                    yield [(f"{group}.{number + i}", row) for i, row in enumerate(rows)]
                    number += batch.num_rows

    def _entries(self, where: str, values: Mapping[str, Any]) -> Iterator[_Entry]:
        """The Python files of a row; a row of another language is none."""
        elements: Sequence[Any] = [None]
        if self.columns.rows:
            listed = values.get(self.columns.rows)
            elements = listed if isinstance(listed, list) else []
        for index, element in enumerate(elements):
            if not isinstance(element, Mapping | None):
                continue
            place = f"{where}.{index}" if self.columns.rows else where
            entry = _Entry.of(self.columns, values, element, f"{self.file.url}#{place}")
            if entry.path.endswith(".py"):
                yield entry

    def _contents(self, entries: Sequence[_Entry]) -> Sequence[bytes | Exception | None]:
        """Of each, None where the row has none, the exception where it cannot be had."""
        if self.opener is None:
            return [entry.content for entry in entries]
        fetched = iter(fetch([entry.blob for entry in entries if entry.blob], self.opener))
        return [next(fetched) if entry.blob else None for entry in entries]

    def _file(self, entry: _Entry, content: bytes | Exception | None) -> Found | Dropped | Errored:
        match content:
            case bytes():
                claims = (("the source", self.licence),) if self.licence else entry.claims
                revision = entry.revision or sha256(content)[:16]  # a file of no known revision is a tree of its own
                package = entry.repository or self.corpus
                licences = Licences(read_claims(claims), (), ())
                return Found(package, revision, entry.path, len(content), lambda: content, licences, entry.encoding)
            case Refused():
                return Dropped(entry.unit, Reason.BLOB_REFUSED, f"{entry.blob}: {content}")
            case None:
                return Dropped(entry.unit, Reason.NO_CONTENT, "")
        return Errored(entry.unit, type(content).__name__, f"{entry.blob}: {content}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a row says of a file, with plain types."""

    unit: str
    path: str
    repository: str
    revision: str
    encoding: str
    content: bytes | None
    blob: str
    claims: tuple[tuple[str, str], ...]  # (column, licence)

    @classmethod
    def of(cls, columns: Columns, values: Mapping[str, Any], element: Any, unit: str) -> _Entry:
        def text(column: str) -> str:
            value = columns.row(values, element, column)
            return value if isinstance(value, str) else ""

        content = columns.row(values, element, columns.content)
        path = text(columns.path) or f"{PurePosixPath(unit.partition('#')[0]).stem}-{unit.partition('#')[2]}.py"
        repository = text(columns.repository)
        claims = tuple(
            (column, str(value))
            for column in columns.licences
            for value in _listed(columns.row(values, element, column))
        )
        return cls(
            unit=unit,
            path=path.removeprefix("/"),
            repository=repository,
            revision=text(columns.revision),
            encoding=text(columns.encoding) if columns.blob else "utf-8",
            content=_encoded(content) or None,
            blob=text(columns.blob),
            claims=claims,
        )


def _encoded(content: Any) -> bytes | None:
    """None for what is no text."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    return content if isinstance(content, bytes) else None


def _rows(batch: pa.RecordBatch, content: str) -> list[dict[str, Any]]:
    """The content as bytes. Text that is not UTF-8 costs its own row, not the table."""
    try:
        return _as_bytes(batch, [content]).to_pylist()
    except UnicodeDecodeError:
        rows = _as_bytes(batch, batch.schema.names).to_pylist()
        return [{name: value if name == content else _printable(value) for name, value in row.items()} for row in rows]


def _as_bytes(batch: pa.RecordBatch, columns: Iterable[str]) -> pa.RecordBatch:
    for column in columns:
        index = batch.schema.get_field_index(column)
        kind = batch.schema.field(index).type if index >= 0 else None
        if kind in _BINARY:
            batch = batch.set_column(index, column, batch.column(index).cast(_BINARY[kind]))
    return batch


def _printable(value: Any) -> Any:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _listed(value: Any) -> list[Any]:
    """The values of a list, or the one value; nothing and empty texts are none."""
    values = value if isinstance(value, list) else [value]
    return [item for item in values if item not in (None, "")]


def _groups(file: RemoteFile) -> Iterator[tuple[int, int]]:
    """Ranges of row groups."""
    with file.open() as stream, reaching(file.url):
        metadata = pq.ParquetFile(stream).metadata
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    start, held = 0, 0
    for group, number in enumerate(rows):
        held += number
        if held >= ROWS_A_PIECE or group + 1 == len(rows):
            yield start, group + 1
            start, held = group + 1, 0
