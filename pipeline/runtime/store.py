"""The result store: outcomes of expensive work, keyed by content, so that no work is done twice.

A key covers the stage's name, the fingerprint of code and versions, and the whole input record. Entries are written
whole or not at all, so a killed run leaves no partial result. Several runs may share one store at the same time, on
disk or in an object store: equal keys have equal results. `Errored` outcomes are not stored; they are tried again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.arrow import SchemaError, read_records, to_plain, write_entry
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.outcome import DropRecord, Errored, Kept, Outcome

log = logging.getLogger(__name__)

_MARKER = "format-2.txt"  # in the store's directory; stores of release 0.1 have none


@dataclass(frozen=True, slots=True)
class Store:
    """A directory of one-record shards: `<stage>/<aa>/<key>.kept.parquet` or `.lost.parquet`.

    `directory` may be of any file system that `schema.files.place` knows.
    """

    directory: Path

    def claim(self) -> None:
        """Mark the directory as this release's; warn if it holds results of an earlier release, which are not used."""
        marker = self.directory / _MARKER
        if marker.exists():
            return
        if self.directory.is_dir() and any(self.directory.iterdir()):
            log.warning(
                "%s: results of release 0.1 are not used by this one: delete them, or give another --store",
                self.directory,
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        marker.write_text("results of kernelquarry 0.2 and later\n")

    def get(self, stage: str, key: str, kind: type[Any]) -> Outcome[Any] | None:
        """The outcome stored under `key`; None if there is none. A damaged entry is a cache miss."""
        for suffix, cls in ((".kept.parquet", kind), (".lost.parquet", DropRecord)):
            path = self._path(stage, key, suffix)
            try:
                (record,) = read_records(path, cls)
            except FileNotFoundError:
                continue
            except (SchemaError, ValueError) as error:
                log.warning("%s: damaged store entry: doing its work again (%s)", path, error)
                continue
            return record.outcome if cls is DropRecord else Kept(record)
        return None

    def holds(self, stage: str, key: str) -> bool:
        """True if there is an entry, damaged or not."""
        return any(self._path(stage, key, end).exists() for end in (".kept.parquet", ".lost.parquet"))

    def put(self, stage: str, key: str, outcome: Outcome[Any]) -> None:
        match outcome:
            case Kept(record):
                write_entry(self._path(stage, key, ".kept.parquet"), record)
            case Errored():
                pass
            case dropped:
                write_entry(self._path(stage, key, ".lost.parquet"), DropRecord.of(stage, dropped))

    def _path(self, stage: str, key: str, suffix: str) -> Path:
        return self.directory / stage / key[:2] / (key + suffix)


def result_key(fingerprint: str, record: Any) -> str:
    """The key of a record's result. It covers the whole record: a module with other workloads is other work."""
    return sha256(canonical([fingerprint, type(record).__name__, to_plain(record)]))
