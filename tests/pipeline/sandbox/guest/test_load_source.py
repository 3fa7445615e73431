"""Sources are loaded from files, of which each is compiled once."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from kernelquarry.pipeline.sandbox.guest.lib.load_source import load_source

FIRST, SECOND = "def f():\n    return 1\n", "def f():\n    return 2\n"


def test_the_file_has_the_text_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text, result in ((FIRST, 1), (SECOND, 2), (FIRST, 1), (FIRST, 1)):
        loaded = load_source(text, "loaded")
        assert loaded.f() == result and inspect.getsource(loaded.f) == text
    with pytest.raises(SyntaxError):
        load_source("def (", "loaded")
    assert inspect.getsource(load_source(FIRST, "loaded").f) == FIRST
    (tmp_path / "loaded.py").unlink()
    assert load_source(FIRST, "loaded").f() == 1 and (tmp_path / "loaded.py").read_text() == FIRST
