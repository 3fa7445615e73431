"""Which column of a table holds what. A mapping is written in a source file, or known by the table's columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, "" where the table has none. `rows.` before a name stands for the list in the column `rows`."""

    content: str = ""  # the file's text
    blob: str = ""  # id of its content elsewhere, in place of `content`
    path: str = ""  # "": a name is made of the row's number
    repository: str = ""  # "": each file is a package of its own
    revision: str = ""
    encoding: str = ""  # of a blob's bytes
    licences: tuple[str, ...] = ()  # SPDX ids, as text or lists of texts; all that a row names count
    rows: str = ""  # a column with a list of files, where a row is a repository

    def needed(self) -> list[str]:
        """The columns of the table to read, and no others."""
        named = [getattr(self, field.name) for field in fields(self) if field.name not in ("licences", "rows")]
        nested = f"{self.rows}."
        wanted = [name for name in (*named, *self.licences) if name]
        outer = [name for name in wanted if not (self.rows and name.startswith(nested))]
        return sorted({*outer, *([self.rows] if self.rows else [])})

    def row(self, values: Mapping[str, Any], element: Mapping[str, Any] | None, column: str) -> Any:
        """The value of `column` in a row, or in an element of its list."""
        if self.rows and column.startswith(f"{self.rows}."):
            return (element or {}).get(column.removeprefix(f"{self.rows}."))
        return values.get(column) if column else None


# What tables of code call their columns, the most usual first.
_USUAL: dict[str, tuple[str, ...]] = {
    "content": ("content", "text", "code", "source_code", "python_code"),
    "path": ("path", "file_path", "filepath", "file_name", "filename"),
    "repository": ("repo_name", "repository", "repository_name", "repo"),
    "revision": ("revision_id", "revision", "commit", "commit_sha", "sha"),
    "licences": ("license", "licence", "licenses", "licences", "detected_licenses", "spdx"),
}


def parse_columns(entries: object, place: str) -> Columns:
    """The `[columns]` of a source file. Raises: UserError: one is unknown, or there is nothing to read."""
    if not isinstance(entries, dict):
        raise UserError(f'{place}: [columns] is a table: `content = "text"` and so on')
    known = {field.name for field in fields(Columns)}
    if unknown := sorted(entries.keys() - known):
        raise UserError(f"{place}: [columns] does not know {', '.join(unknown)}: give {', '.join(sorted(known))}")
    values: dict[str, Any] = dict(entries)
    licences = values.pop("licences", ())
    values["licences"] = (licences,) if isinstance(licences, str) else tuple(licences)
    if not all(isinstance(value, str) for key, value in values.items() for value in _each(value)):
        raise UserError(f"{place}: [columns] holds names of columns, which are texts")
    columns = Columns(**values)
    if bool(columns.content) == bool(columns.blob):
        raise UserError(f"{place}: [columns] needs `content`, or `blob` where the content lies elsewhere")
    return columns


def usual(names: Collection[str], place: str) -> Columns:
    """The mapping that columns of such names stand for. Raises: UserError: none is known to hold the content."""
    found = {role: next((name for name in known if name in names), "") for role, known in _USUAL.items()}
    if not found["content"]:
        raise UserError(
            f"{place}: no column is known to hold a file's text (it has {', '.join(sorted(names))}): "
            "name it under [columns] in a source file, see docs/sources.md"
        )
    licences = found.pop("licences")
    return Columns(**found, licences=(licences,) if licences else ())


def check(columns: Columns, names: Collection[str], place: str) -> None:
    """Raises: UserError: the table lacks a column that was named."""
    missing = [name for name in columns.needed() if name not in names]
    if missing:
        raise UserError(f"{place}: has no column {', '.join(missing)} (it has {', '.join(sorted(names))})")


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
