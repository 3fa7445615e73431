"""Stream source files from the rows of parquet or JSON lines, a few hundred rows in memory at a time.

Workers share a table in pieces: row groups of parquet, ranges of bytes of JSON lines. The stage `mine` gathers the rows
of one repository, whichever worker read them.
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
from .corpus import CorpusFile
from .mapping import Columns
from .remote import RemoteFile, convert_errors

ROWS_A_BATCH = 256
ROWS_A_PIECE = 5_000  # small row groups are read together
_TORCH = b"torch"
_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}

Row = tuple[str, Mapping[str, Any]]  # (place in the file, values by column)


@dataclass(frozen=True, slots=True)
class TableShard:
    """A file of a table, or a piece of the file."""

    corpus: str
    file: RemoteFile
    columns: Columns
    licence: str  # licence of all rows, if the table has no column for it
    only_torch: bool  # True: rows that do not mention torch are only counted
    opener: Opener | None  # downloads contents, if the table has only their ids
    cache: Path | None = None  # folder for the outcomes of pieces that are not on this machine
    piece: tuple[int, int] | None = None  # row groups, or bytes: [start, end); None: all

    @property
    def unit(self) -> str:
        start = f"#{self.piece[0]}" if self.piece else ""
        return f"{self.file.url}{start}"

    @property
    def key(self) -> str:
        """Digest of everything that decides the shard's outcomes."""
        table = [self.corpus, self.file.url, self.file.digest, asdict(self.columns)]
        return sha256(canonical([*table, self.licence, self.only_torch, self.piece]))

    @property
    def is_json(self) -> bool:
        return not self.file.url.endswith(".parquet")

    def pieces(self) -> Iterable[TableShard]:
        ranges = jsonl.ranges(self.file) if self.is_json else _groups(self.file)
        return (replace(self, piece=part) for part in ranges)

    def files(self) -> Iterator[CorpusFile | Dropped | Errored]:
        without_torch, total = 0, 0
        for batch in self._batches():
            entries = [entry for where, values in batch for entry in self._entries(where, values)]
            total += len(entries)
            for entry, content in zip(entries, self._contents(entries), strict=True):
                if self.only_torch and isinstance(content, bytes) and _TORCH not in content:
                    without_torch += 1
                else:
                    yield self._file(entry, content)
        if without_torch:
            yield Dropped(self.unit, Reason.NO_TORCH, f"{without_torch} of {total} files")

    def _batches(self) -> Iterator[list[Row]]:
        if self.is_json:
            yield from jsonl.batches(self.file, self.piece, ROWS_A_BATCH)
            return
        with self.file.open() as stream, convert_errors(self.file.url):
            parquet = pq.ParquetFile(stream)
            groups = range(*self.piece) if self.piece else range(parquet.num_row_groups)
            wanted = self.columns.needed()
            for group in groups:
                number = 0
                for batch in parquet.iter_batches(ROWS_A_BATCH, row_groups=[group], columns=wanted):
                    rows = _rows(batch, self.columns.content)
                    yield [(f"{group}.{number + i}", row) for i, row in enumerate(rows)]
                    number += batch.num_rows

    def _entries(self, where: str, values: Mapping[str, Any]) -> Iterator[_Entry]:
        """The Python files of a row; files in other languages are skipped."""
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
        """Content of each entry: None if the row has none, an exception if the download failed."""
        if self.opener is None:
            return [entry.content for entry in entries]
        fetched = iter(fetch([entry.blob for entry in entries if entry.blob], self.opener))
        return [next(fetched) if entry.blob else None for entry in entries]

    def _file(self, entry: _Entry, content: bytes | Exception | None) -> CorpusFile | Dropped | Errored:
        match content:
            case bytes():
                claims = (("the source", self.licence),) if self.licence else entry.claims
                revision = entry.revision or sha256(content)[:16]  # a file without a revision is a tree of its own
                return CorpusFile(
                    package=entry.repository or self.corpus,
                    revision=revision,
                    path=entry.path,
                    size=len(content),
                    read=lambda: content,
                    licences=Licences(read_claims(claims), (), ()),
                    encoding=entry.encoding,
                )
            case Refused():
                return Dropped(entry.unit, Reason.BLOB_REFUSED, f"{entry.blob}: {content}")
            case None:
                return Dropped(entry.unit, Reason.NO_CONTENT, "")
        return Errored(entry.unit, type(content).__name__, f"{entry.blob}: {content}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row's description of a file."""

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
    """Content as bytes, None if it is not text."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    return content if isinstance(content, bytes) else None


def _rows(batch: pa.RecordBatch, content: str) -> list[dict[str, Any]]:
    """Rows of a batch with the content as bytes, so that invalid UTF-8 in one row does not fail the table."""
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
    """The values of a list, or a single value as a list, without None and empty text."""
    values = value if isinstance(value, list) else [value]
    return [item for item in values if item not in (None, "")]


def _groups(file: RemoteFile) -> Iterator[tuple[int, int]]:
    """Ranges of row groups with at least `ROWS_A_PIECE` rows each, except the last."""
    with file.open() as stream, convert_errors(file.url):
        metadata = pq.ParquetFile(stream).metadata
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    start, held = 0, 0
    for group, number in enumerate(rows):
        held += number
        if held >= ROWS_A_PIECE or group + 1 == len(rows):
            yield start, group + 1
            start, held = group + 1, 0
