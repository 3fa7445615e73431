"""The page of columns, `docs/reference/schema.md`, made from the records by `benchmarks/pages.py`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from enum import StrEnum
from typing import Any, get_args, get_type_hints

from kernelquarry.pipeline.dataset.columns import comments, meaning
from kernelquarry.pipeline.dataset.configs import CONFIGS
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Pair, Row

_SCALARS = {str: "string", int: "integer", float: "float", bool: "boolean"}
_PAGE = """\
# Columns

Each config has rows of one record:

| config | a row is | |
|---|---|---|
{configs}
No column is null: a value that does not apply is an empty string or list. Columns called *canonical JSON* hold JSON
with sorted keys and no spaces. Each shard names its record and schema version in its metadata. Rows of
[earlier versions](../guides/dataset.md#versions) can be read; rows of later versions are refused.

This page is made from the records in `pipeline/schema/` by `make docs`.
"""


def render_schema() -> str:
    """The page: a section for each config's record, for the records inside of them, and for dropped records."""
    records = published_records()
    rows = [f"| `{each.name}` | `{each.record.__name__}` | {each.description} |\n" for each in CONFIGS]
    sections = [_section(record, records) for record in (*records, DropRecord)]
    return "".join([_PAGE.format(configs=_linked("".join(rows), records)), *sections])


def published_records() -> list[type]:
    """The records of the configs, then the records inside of them in the order of their first use."""
    found = [config.record for config in CONFIGS]
    for record in found:  # grows
        for hint in get_type_hints(record).values():
            found += [cls for cls in _classes(hint) if is_dataclass(cls) and cls not in found]
    return found


def _section(record: type, records: list[type]) -> str:
    shared = _shared(record)
    names = [field.name for field in fields(record)][len(shared) :]
    hints = get_type_hints(record)
    parts = [f"## {record.__name__}", _linked(inspect.cleandoc(record.__doc__ or ""), records)]
    if shared:
        which = "All columns" if shared == fields(Pair) else f"The columns up to `{shared[-1].name}`"
        parts.append(f"{which} of [Pair](#pair){', and:' if names else '.'}")
    if names:
        rows = [f"| `{name}` | {_kind(hints[name], records)} | {_meaning(record, name, records)} |" for name in names]
        parts.append("\n".join(["| column | type | meaning |", "|---|---|---|", *rows]))
    return "\n" + "\n\n".join(parts) + "\n"


def _shared(record: type) -> tuple[Field[Any], ...]:
    """The columns that the record shares with `Pair`, which come first."""
    if record is Pair or not issubclass(record, Row):
        return ()
    return fields(Pair if issubclass(record, Pair) else Row)


def _meaning(record: type, name: str, records: list[type]) -> str:
    """The meaning of a column and of its values. Raises: LookupError if it has none."""
    text = meaning(record, name)
    if not text:
        raise LookupError(f"{record.__name__}.{name} has no meaning: write a comment at the field")
    if not any(name in comments(cls) for cls in record.__mro__[:-1]):
        text = "as in `Pair`"
    for cls in _classes(get_type_hints(record)[name]):
        if issubclass(cls, StrEnum):
            values = "; ".join(f"`{member.value}`: {comments(cls)[member.name]}" for member in cls)
            text = f"{text}. {values}"
    return _linked(text, records).replace("|", "\\|")


def _kind(hint: Any, records: list[type]) -> str:
    """The type of a column: `string`, `list of Trial`."""
    if item := next(iter(get_args(hint)), None):
        return f"list of {_kind(item, records)}"
    if hint in records:
        return _linked(f"`{hint.__name__}`", records)
    return _SCALARS.get(hint, "string" if issubclass(hint, StrEnum) else "record")


def _classes(hint: Any) -> Iterator[type]:
    """The classes that a type hint names: itself, or the elements of a tuple."""
    yield from (part for part in (get_args(hint) or (hint,)) if isinstance(part, type))


def _linked(text: str, records: list[type]) -> str:
    """The text with links in place of the names of records, reasons and pages of the docs."""
    for record in records:
        text = text.replace(f"`{record.__name__}`", f"[{record.__name__}](#{record.__name__.lower()})")
    text = text.replace("`Reason`", "[reason](reasons.md)")
    return re.sub(
        r"`docs/((?:\w+/)*([\w-]+)\.md)`", lambda match: f"[{match[2].replace('-', ' ')}](../{match[1]})", text
    )
