"""Messages of guests can be written to any file and terminal."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("line 1\n\tline 2, größer als 10 µs", "line 1\n\tline 2, größer als 10 µs"),
        ("\x1b[2Jverified\r", "\\x1b[2Jverified\\r"),
        ("half \ud800", "half \\ud800"),
        ("\u202eturned", "\\u202eturned"),
    ],
)
def test_evidence_is_printable(said: str, shown: str) -> None:
    evidence = Dropped("cand_1", Reason.DOES_NOT_RUN, said).evidence
    assert evidence == shown
    assert evidence.encode().decode() == shown
