"""Map the columns of a table to their meaning, as a source file describes them or by their usual names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, "" where the table has none. A name `ROWS.NAME` is a field of the list in the column `rows`."""

    content: str = ""  # text of the file
    blob: str = ""  # id of the content in an archive, instead of `content`
    path: str = ""  # "": the path is made from the row's number
    repository: str = ""  # "": each file is a package of its own
    revision: str = ""
    encoding: str = ""  # encoding of a blob's bytes
    licences: tuple[str, ...] = ()  # SPDX ids, as text or lists of text; all must be permissive
    rows: str = ""  # a column with a list of files, if a row is a repository

    def needed(self) -> list[str]:
        """The columns of the table to read."""
        named = [getattr(self, field.name) for field in fields(self) if field.name not in ("licences", "rows")]
        nested = f"{self.rows}."
        wanted = [name for name in (*named, *self.licences) if name]
        top_level = [name for name in wanted if not (self.rows and name.startswith(nested))]
        return sorted({*top_level, *([self.rows] if self.rows else [])})

    def row(self, values: Mapping[str, Any], element: Mapping[str, Any] | None, column: str) -> Any:
        """Value of `column` in a row, or in an element of the row's list."""
        if self.rows and column.startswith(f"{self.rows}."):
            return (element or {}).get(column.removeprefix(f"{self.rows}."))
        return values.get(column) if column else None


# Usual names of columns in tables of code, the most frequent first.
USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "content": ("content", "text", "code", "source_code", "python_code"),
    "path": ("path", "file_path", "filepath", "file_name", "filename"),
    "repository": ("repo_name", "repository", "repository_name", "repo"),
    "revision": ("revision_id", "revision", "commit", "commit_sha", "sha"),
    "licences": ("license", "licence", "licenses", "licences", "detected_licenses", "spdx"),
}


def parse_columns(entries: object, place: str) -> Columns:
    """Parse the `[columns]` of a source file. Raises: UserError: an entry is unknown, or no column holds contents."""
    if not isinstance(entries, dict):
        raise UserError(f'{place}: [columns] is not a table: write entries such as `content = "text"`')
    known = {field.name for field in fields(Columns)}
    if unknown := sorted(entries.keys() - known):
        raise UserError(f"{place}: [columns] does not know {', '.join(unknown)}: give {', '.join(sorted(known))}")
    values: dict[str, Any] = dict(entries)
    licences = values.pop("licences", ())
    values["licences"] = (licences,) if isinstance(licences, str) else tuple(licences)
    names = [*values["licences"], *(value for key, value in values.items() if key != "licences")]
    if not all(isinstance(name, str) for name in names):
        raise UserError(f"{place}: [columns] has a value that is not text: give names of columns")
    columns = Columns(**values)
    if bool(columns.content) == bool(columns.blob):
        raise UserError(f"{place}: [columns] lacks the content: give `content`, or `blob` for ids of contents")
    return columns


def guess_columns(names: Collection[str], place: str) -> Columns:
    """Find the mapping by usual names of columns. Raises: UserError: no name is known to hold the content."""
    columns = {role: next((name for name in known if name in names), "") for role, known in USUAL_NAMES.items()}
    if not columns["content"]:
        raise UserError(
            f"{place}: no column is known to hold a file's text (it has {', '.join(sorted(names))}): "
            "name it under [columns] in a source file, see docs/guides/sources.md"
        )
    licences = columns.pop("licences")
    return Columns(**columns, licences=(licences,) if licences else ())


def check_columns(columns: Columns, names: Collection[str], place: str) -> None:
    """Check that the table has all named columns. Raises: UserError."""
    missing = [name for name in columns.needed() if name not in names]
    if missing:
        raise UserError(f"{place}: has no column {', '.join(missing)} (it has {', '.join(sorted(names))})")
