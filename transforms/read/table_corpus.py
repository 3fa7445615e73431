"""Tables as a corpus: The Stack, and any parquet or JSON lines, described by a TOML file or by their columns."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kernelquarry.filters.spdx import is_permissive
from kernelquarry.pipeline.schema.errors import UserError

from . import jsonl
from .blobs import Opener, UrlOpener
from .mapping import Columns, check_columns, guess_columns, parse_columns
from .remote import RemoteFile, absolute, convert_errors, find_files
from .table import TableShard

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson")
SHIPPED = resources.files("kernelquarry.transforms.read").joinpath("shipped")
FORMS = ("the-stack", "the-stack-v2-train-full-ids", "the-stack-v2")  # recognised by their columns
_KEYS = {"files", "columns", "licence", "only_torch", "blobs"}


@dataclass(frozen=True, slots=True)
class Form:
    """The meaning of a table's columns, and the archive of its contents if it has only their ids."""

    columns: Columns
    opener: Opener | None = None


@dataclass(frozen=True, slots=True)
class Tables:
    """A corpus of tables with one form. Files are listed and opened only when needed."""

    name: str
    patterns: tuple[str, ...]
    cache: Path
    form: Form | None = None  # None: recognised by the columns of the first file
    licence: str = ""  # licence of all rows, instead of a column
    only_torch: bool = True

    def digests(self) -> dict[str, str]:
        return {file.url: file.digest for file in self._files()}

    def shards(self) -> Iterator[TableShard]:
        files = self._files()
        form = self._form(files[0])
        if not form.columns.licences and not self.licence:
            raise UserError(
                f"{files[0].url}: no column holds the licence: name it under [columns] in a source file, "
                'or give all rows one with `licence = "MIT"`, see docs/guides/sources.md'
            )
        for file in files:
            cache = None if file.is_local and form.opener is None else self.cache / "read"
            yield TableShard(self.name, file, form.columns, self.licence, self.only_torch, form.opener, cache)

    def _files(self) -> Sequence[RemoteFile]:
        return [file for pattern in self.patterns for file in find_files(pattern)]

    def _form(self, file: RemoteFile) -> Form:
        names = _names(file)
        if self.form is not None:
            check_columns(self.form.columns, names, file.url)
            return self.form
        known = (_form(tomllib.loads(SHIPPED.joinpath(f"{name}.toml").read_text()), name) for name in FORMS)
        matching = (form for form in known if form is not None and {*form.columns.needed()} <= {*names})
        return next(matching, None) or Form(guess_columns(names, file.url))


def open_tables(entries: Mapping[str, Any], path: Path, cache: Path) -> Tables:
    """Open the corpus that a source file describes. Raises: UserError: an entry is wrong."""
    if unknown := sorted(entries.keys() - _KEYS):
        raise UserError(f"{path}: does not know {', '.join(unknown)}: give {', '.join(sorted(_KEYS))}")
    files = entries.get("files", [])
    patterns = [files] if isinstance(files, str) else files
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise UserError(f"{path}: `files` is missing or wrong: give paths or URLs of the table's files")
    licence = str(entries.get("licence", ""))
    if licence and not is_permissive(licence):
        raise UserError(f"{path}: {licence} is not a permissive SPDX licence: no file would be kept: correct it")
    return Tables(
        name=path.stem,
        patterns=tuple(absolute(pattern, path.parent) for pattern in patterns),
        cache=cache,
        form=_form(entries, str(path)),
        licence=licence,
        only_torch=bool(entries.get("only_torch", True)),
    )


def _form(entries: Mapping[str, Any], place: str) -> Form | None:
    if "columns" not in entries:
        return None
    columns, blobs = parse_columns(entries["columns"], place), entries.get("blobs")
    if not columns.blob:
        return Form(columns)
    if not isinstance(blobs, dict) or set(blobs) != {"url"} or "{blob}" not in str(blobs["url"]):
        raise UserError(f"{place}: [blobs] is missing or wrong: give `url`, with {{blob}} as the place of the id")
    return Form(columns, UrlOpener(str(blobs["url"])))


def _names(file: RemoteFile) -> list[str]:
    if not file.url.endswith(".parquet"):
        return sorted(jsonl.first_row(file))
    with file.open() as stream, convert_errors(file.url):
        return list(pq.read_schema(stream).names)
