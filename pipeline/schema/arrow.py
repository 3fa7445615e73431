"""Records as Arrow tables and parquet shards. The schema follows from the type hints of the dataclasses alone.

| Python                | Arrow              |
|-----------------------|--------------------|
| `str`, a `StrEnum`    | `string`           |
| `int`                 | `int64`            |
| `float`               | `double`           |
| `bool`                | `bool`             |
| `tuple[X, ...]`       | `list<X>`          |
| a dataclass           | `struct`           |

No column is nullable. A shard names its record type and schema version in its metadata; readers raise `SchemaError`
if they are not those of this release.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import UserError
from .files import is_local, read_bytes, replace_file
from .records import SCHEMA_VERSION

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

ROWS_PER_GROUP = 250  # about 7 MB of code, 0.6 MB compressed: docs/reference/stages/write.md explains the choice

_REMAKE = "Delete it and run the stage that writes it again"
_RECORD = b"kernelquarry.record"
_VERSION = b"kernelquarry.schema_version"
_SCALARS: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_FORMAT: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 9,
    "version": "2.6",
    "data_page_version": "1.0",
    "row_group_size": ROWS_PER_GROUP,
    "write_page_index": True,  # lets the Hub's viewer fetch single pages
    "write_page_checksum": True,  # reading detects flipped bits
    "use_content_defined_chunking": True,  # an upload sends only the pages that changed
}
# For files of one record, which are always read whole: indices, statistics and dictionaries would double their size.
_ENTRY: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "version": "2.6",
    "data_page_version": "1.0",
    "use_dictionary": False,
    "write_statistics": False,
    "write_page_checksum": True,
}


def _once(function: F) -> F:
    """`functools.cache` that keeps the signature."""
    return cast(F, cache(function))


class SchemaError(UserError):
    """A table or file does not hold the expected records."""

    def __init__(self, place: Path | str, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}. {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


@_once
def schema_of(cls: type) -> pa.Schema:
    """The Arrow schema of a record type, with the record's name and schema version as metadata."""
    metadata = {_RECORD: cls.__name__.encode(), _VERSION: str(SCHEMA_VERSION).encode()}
    return pa.schema(list(_struct(cls)), metadata=metadata)


def to_plain(record: Any) -> dict[str, Any]:
    """A record as nested dicts, lists and scalars."""
    plain: dict[str, Any] = _encoder(type(record))(record)
    return plain


def from_plain(row: dict[str, Any], cls: type[T]) -> T:
    """The inverse of `to_plain`. Ignores columns that the record does not have."""
    record: T = _decoder(cls)(row)
    return record


def pack(record: Any) -> bytes:
    """A record as compressed JSON, a quarter of the size: runners hold all waiting records in memory."""
    return zlib.compress(json.dumps(to_plain(record)).encode(), level=1)


def unpack(packed: bytes, cls: type[T]) -> T:
    """The inverse of `pack`."""
    return from_plain(json.loads(zlib.decompress(packed)), cls)


def to_table(records: Iterable[T], cls: type[T]) -> pa.Table:
    encode = _encoder(cls)
    return pa.Table.from_pylist([encode(record) for record in records], schema=schema_of(cls))


def write_shard(path: Path, records: Iterable[T], cls: type[T]) -> None:
    """Write `records`, in their order, to one parquet file, atomically.

    The same records give the same bytes with the same release of pyarrow.
    """
    _write(path, to_table(records, cls), _FORMAT)


def write_entry(path: Path, record: Any) -> None:
    """Write one record to a file, in half the time and about half the space of `write_shard`."""
    _write(path, to_table([record], type(record)), _ENTRY)


def _write(path: Path, table: pa.Table, form: dict[str, Any]) -> None:
    with replace_file(path) as stream:
        pq.write_table(table, stream, **form)


def read_records(path: Path, cls: type[T], start: int = 0, stop: int = sys.maxsize) -> Iterator[T]:
    """The records `start` to `stop` of a shard, in their order, with one row group in memory at a time.

    Raises: SchemaError, at once if the file is truncated or has another record type or schema version, and while
    iterating if its pages are damaged; FileNotFoundError.
    """
    file = _open(path)
    _check_schema(file.schema_arrow, cls, path)
    return map(_decoder(cls), _read_plain(file, path, start, stop))


def read_plain(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a shard of any schema version, in the form of `to_plain`. Raises: as `read_records`."""
    return _read_plain(_open(path), path)


def read_columns(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The named columns of a shard, row by row, in the form of `to_plain`: a fraction of the time of whole records.

    `columns` may name parts of a nested record: `source.path`. Raises: as `read_records`.
    """
    file = _open(path)
    with file:
        try:
            yield from file.read(columns=list(columns)).to_pylist()
        except (pa.ArrowInvalid, OSError) as error:
            raise SchemaError(path, f"damaged data ({_line(error)})", _REMAKE) from error


def check_record(path: Path, cls: type) -> int:
    """The schema version of a shard. Raises: SchemaError if it holds another record type."""
    with _open(path) as file:
        return _check_record(file.schema_arrow, cls, path)


def count_records(path: Path, cls: type) -> int:
    """The number of records in a shard, read from its footer. Raises: as `read_records`."""
    with _open(path) as file:
        _check_schema(file.schema_arrow, cls, path)
        return int(file.metadata.num_rows)


def _open(path: Path) -> pq.ParquetFile:
    try:
        source = path if is_local(path) else pa.BufferReader(read_bytes(path))  # object stores: fetched as a whole
        return pq.ParquetFile(source, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # Arrow's own, for a damaged footer, has no errno
            raise
        raise SchemaError(path, f"not a complete parquet file ({_line(error)})", _REMAKE) from error


def _read_plain(file: pq.ParquetFile, path: Path, start: int = 0, stop: int = sys.maxsize) -> Iterator[dict[str, Any]]:
    with file:
        try:
            ends = 0
            for group in range(file.num_row_groups):
                begins, ends = ends, ends + file.metadata.row_group(group).num_rows
                first, last = max(start, begins), min(stop, ends)
                if first < last:
                    yield from file.read_row_group(group).slice(first - begins, last - first).to_pylist()
        except (pa.ArrowInvalid, OSError) as error:  # damaged pages: the type of Arrow's error depends on the codec
            raise SchemaError(path, f"damaged data ({_line(error)})", _REMAKE) from error


def _check_record(schema: pa.Schema, cls: type, place: Path | str) -> int:
    """The schema version. Raises: SchemaError if the schema is not that of `cls` records."""
    metadata = schema.metadata or {}
    if _RECORD not in metadata or _VERSION not in metadata:
        raise SchemaError(place, "not written by kernelquarry", f"Give a shard of {cls.__name__} records")
    record, version = metadata[_RECORD].decode(), metadata[_VERSION].decode()
    if record != cls.__name__:
        raise SchemaError(place, f"it holds {record} records", f"Give a shard of {cls.__name__} records")
    return int(version)


def _check_schema(schema: pa.Schema, cls: type, place: Path | str) -> None:
    version = _check_record(schema, cls, place)
    if version != SCHEMA_VERSION:
        raise SchemaError(
            place,
            f"it has schema version {version}, this release reads {SCHEMA_VERSION}",
            "Use the release that wrote it, or delete it and run the stage that writes it again",
        )
    if not schema.equals(schema_of(cls)):
        raise SchemaError(place, f"its columns are not those of {cls.__name__}", _REMAKE)


def _struct(cls: type) -> pa.StructType:
    hints = get_type_hints(cls)
    return pa.struct([pa.field(f.name, _arrow_type(hints[f.name]), nullable=False) for f in fields(cls)])


def _arrow_type(hint: Any) -> pa.DataType:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if (item := _item_hint(hint)) is not None:
        return pa.list_(pa.field("element", _arrow_type(item), nullable=False))
    if isinstance(hint, type) and is_dataclass(hint):
        return _struct(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    raise TypeError(f"a record field cannot have the type {hint!r}: see the table in {__name__}")


def _item_hint(hint: Any) -> Any | None:
    """`X` of `tuple[X, ...]`, None for anything else."""
    match get_origin(hint), get_args(hint):
        case builtin, (item, end) if builtin is tuple and end is Ellipsis:
            return item
    return None


def _unchanged(value: Any) -> Any:
    return value


@_once
def _encoder(hint: Any) -> Callable[[Any], Any]:
    """A function from a value of type `hint` to plain dicts, lists and scalars."""
    if hint in _SCALARS:
        return _unchanged
    if (item := _item_hint(hint)) is not None:
        encode = _encoder(item)
        return lambda values: [encode(value) for value in values]
    if isinstance(hint, type) and is_dataclass(hint):
        parts = [(f.name, _encoder(get_type_hints(hint)[f.name])) for f in fields(hint)]
        return lambda record: {name: encode(getattr(record, name)) for name, encode in parts}
    return str


@_once
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """The inverse of `_encoder(hint)`."""
    if hint in _SCALARS:
        return _unchanged
    if (item := _item_hint(hint)) is not None:
        decode = _decoder(item)
        return lambda values: tuple(decode(value) for value in values)
    if isinstance(hint, type) and is_dataclass(hint):
        parts = [(f.name, _decoder(get_type_hints(hint)[f.name])) for f in fields(hint)]
        return lambda row: hint(**{name: decode(row[name]) for name, decode in parts})
    return hint


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]
