"""The docs agree with the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from pages import PAGES, render_reasons
from schema_page import render_schema

from kernelquarry.pipeline.dataset.configs import CONFIGS
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Environment
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import TrainingPair, Trial

DOCS = Path(__file__).parents[2] / "docs"


def sections(page: str) -> dict[str, str]:
    """Heading -> the text below it."""
    parts = re.split(r"^#+ (.+)$", (DOCS / page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_column_of_every_record_is_on_the_page() -> None:
    for record in (*(config.record for config in CONFIGS), Trial, Environment, DropRecord):
        described = re.findall(
            r"^\| `(\w+)` \| \S", sections("reference/schema.md")[record.__name__], flags=re.MULTILINE
        )
        names = [field.name for field in fields(record)]
        assert described == names[len(names) - len(described) :]
        assert described or record is TrainingPair


def test_a_column_without_a_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schema_page.meaning", lambda record, name: "" if name == "spdx" else "meaning")
    with pytest.raises(LookupError, match=r"^Licence\.spdx has no meaning: write a comment at the field$"):
        render_schema()


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_are_made_are_up_to_date(page: str) -> None:
    assert (DOCS.parent / page).read_text() == PAGES[page](), "run: make docs"


def test_every_reason_is_on_the_page() -> None:
    assert all(f"| `{reason.value}` | {reason.why} |" in render_reasons() for reason in Reason)
