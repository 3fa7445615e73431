"""One's own file or folder as a corpus: its licence, why nothing was kept, and `kernelquarry why`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from kernelquarry.filters.licence_policy import UNSTATED, LicencePolicy
from kernelquarry.filters.objection import Objection
from kernelquarry.pipeline.run.run_settings import remembered
from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.reasons import Reason
from tests.pipeline.command import Built, Ended

Invoke = Callable[..., Ended]
MODULE = """
import yaml
from torch import nn


class Reader(nn.Module):
    def forward(self, x):
        return yaml.load(x)
"""
GPL = Objection(Reason.LICENCE_NOT_PERMISSIVE, "LICENSE says GPL-3.0-only")
MIT = Licence("MIT", "LICENSE: MIT")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reader.py").write_text(MODULE)
    (tmp_path / "other.py").write_text(MODULE)  # is not read
    return tmp_path / "reader.py"


def test_an_empty_stage_stops_the_build_and_says_why(file: Path, invoke: Invoke) -> None:
    stale = Path("out/reader/stages/03-probe")
    stale.mkdir(parents=True)
    ended = invoke("dataset", "reader.py")
    assert ended.status == 1
    *_, reason, example, error = ended.err.splitlines()
    assert reason == "1 licence_not_permissive in read: no permissive licence covers the file"
    assert example.startswith("    reader@") and example.endswith("/reader.py: no licence was found")
    assert error == (
        "kernelquarry: read kept none of 1 file, so no pair was kept: "
        "state the licence with --licence MIT, or build for yourself with --private"
    )
    assert [path.name for path in Path("out/reader/stages").iterdir()] == ["01-read"]
    assert "no licence was found" in Path("out/reader/report.html").read_text()
    assert "not those of 1 dropped file such as reader.py" in invoke("why", "Reader", "--run", "out/reader").err


def test_a_stated_licence_is_used_and_remembered(file: Path, invoke: Invoke) -> None:
    ended = invoke("dataset", "reader.py", "--licence", "MIT")
    assert "kernelquarry: mine kept none of 1 class, so no pair was kept: take the part" in ended.err
    assert "read: nothing to do" in invoke("read", "out/reader").out
    assert remembered(Path("out/reader")).licence == LicencePolicy("MIT")
    dropped = invoke("why", "Reader", "--run", "out/reader").out.splitlines()[1]
    assert dropped.startswith("  dropped  mine: forbidden_import, ") and dropped.endswith(": yaml")
    named = invoke("why", "reader.py", "--run", "out/reader").out.splitlines()
    assert named[1:] == ["  kept     read", "  class    Reader: dropped by mine: forbidden_import"]


def test_a_licence_in_the_folder_of_the_file_counts(file: Path, invoke: Invoke) -> None:
    file.with_name("LICENSE").write_text("MIT License")
    assert "mine kept none of 1 class" in invoke("dataset", "reader.py").err


def test_a_licence_that_is_not_permissive_is_refused(file: Path, invoke: Invoke) -> None:
    ended = invoke("dataset", "reader.py", "--licence", "GPL-3.0-only")
    assert ended.err.startswith("kernelquarry: --licence: GPL-3.0-only is no permissive SPDX expression: give one of ")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("policy", "found", "expected"),
    [
        (LicencePolicy(), UNSTATED, UNSTATED),
        (LicencePolicy("ISC"), UNSTATED, Licence("ISC", "stated for this build")),
        (LicencePolicy("ISC"), GPL, GPL),  # what the corpus says wins
        (LicencePolicy("ISC", private=True), GPL, Licence("NOASSERTION", "private build: LICENSE says GPL-3.0-only")),
        (LicencePolicy(private=True), UNSTATED, Licence("NOASSERTION", "private build: no licence was found")),
        (LicencePolicy("ISC", private=True), MIT, MIT),
    ],
)
def test_the_licence_of_a_file(
    policy: LicencePolicy, found: Licence | Objection, expected: Licence | Objection
) -> None:
    assert policy.resolve(found) == expected
    assert json.loads(json.dumps(asdict(policy))) == asdict(policy)


def test_why_follows_a_class_and_a_row(built: Built, invoke: Invoke) -> None:
    pair = next(pair for pair in built.pairs() if pair.module_name.endswith("Scale"))
    for name in (pair.module_name, pair.id, pair.id[:12], f"layers.py:{pair.module_name}"):
        header, kept, row = invoke("why", name, "--run", built.root).out.splitlines()
        assert header.split()[0] == pair.module_name and header.split()[2].startswith("mod_")
        assert kept.startswith("  kept     mine, probe, deduplicate,") and kept.endswith(", time")
        assert row.startswith(f"  row      {pair.id} ({pair.split}): kernelquarry show {pair.id} ")
    dropped = invoke("why", "Noise", "--run", built.root).out.splitlines()
    assert dropped[1] == "  kept     mine"
    assert dropped[2].startswith("  dropped  probe: random, two runs in eval mode gave different outputs: ")
    assert "similar are Noise" in invoke("why", "Noice", "--run", built.root).err


def test_why_names_the_module_that_a_copy_was_dropped_for(built: Built, invoke: Invoke) -> None:
    outputs = [invoke("why", name, "--run", built.root).out for name in ("Scale", "CopyOfScale")]
    (copy,) = (out for out in outputs if "  dropped  deduplicate: duplicate_renamed, " in out)
    (original,) = (out for out in outputs if out != copy)
    assert f"that module is {original.split()[0]} of " in copy
