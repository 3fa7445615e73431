"""The docs agree with the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from pages import PAGES, render_reasons

from kernelquarry.filters import FILTERS
from kernelquarry.filters.secrets import PATTERNS
from kernelquarry.pipeline.dataset.configs import CONFIGS
from kernelquarry.pipeline.schema.chats import Message
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Environment, Generator, Licence, SourceRef
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import (
    CounterExample,
    Pair,
    Row,
    SliceOrigin,
    StateSpec,
    TensorSpec,
    Timed,
    Timing,
    Trial,
    Verdict,
    Workload,
)

DOCS = Path(__file__).parents[2] / "docs"
ROWS = tuple(config.record for config in CONFIGS)
CHECKS = (Verdict, Trial, Timing, Timed, CounterExample, Environment)
PARTS = (Message, Generator, SliceOrigin, SourceRef, Licence, Workload, TensorSpec, StateSpec, *CHECKS)
RECORDS = (*ROWS, *PARTS, DropRecord)


def sections(page: str) -> dict[str, str]:
    """Heading -> the text below it."""
    parts = re.split(r"^#+ (.+)$", (DOCS / page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("record", RECORDS)
def test_every_column_is_described_in_its_order(record: type) -> None:
    described = re.findall(r"^\| `(\w+)` \| \S", sections("reference/schema.md")[record.__name__], flags=re.MULTILINE)
    shared = fields(Row) if issubclass(record, Row) and record is not Pair else ()  # described with Pair
    assert described == [field.name for field in fields(record)][len(shared) :]


def test_every_config_is_described() -> None:
    lines = (DOCS / "reference/schema.md").read_text().splitlines()
    for config in CONFIGS:
        kind = config.record.__name__
        assert f"| `{config.name}` | [{kind}](#{kind.lower()}) | {config.description} |" in lines


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_are_made_are_up_to_date(page: str) -> None:
    assert (DOCS.parent / page).read_text() == PAGES[page](), "run: make docs"


def test_every_reason_is_on_the_page() -> None:
    assert all(f"| `{reason.value}` | {reason.why} |" in render_reasons() for reason in Reason)


def test_every_filter_is_described() -> None:
    named = re.findall(r"^\| `(\w+)\(", (DOCS / "guides/selecting-rows.md").read_text(), flags=re.MULTILINE)
    assert named == [type(filter).__name__ for filter in FILTERS]
    assert f"| {len(PATTERNS)} forms |" in (DOCS / "guides/selecting-rows.md").read_text()
