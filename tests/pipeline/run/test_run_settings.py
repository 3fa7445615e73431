"""The settings file: valid settings are read, and mistakes give one line that names the valid options."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from kernelquarry.filters.balance import Caps
from kernelquarry.pipeline.run.run import Run
from kernelquarry.pipeline.run.run_settings import (
    CutShare,
    LowerSettings,
    Settings,
    read_settings,
    remember,
    remembered,
)
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.decontaminate import Thresholds
from kernelquarry.transforms.targets import TARGETS, Targets
from tests.pipeline.command import Built, Ended


def settings(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "settings.toml").write_text(text)
    return read_settings(tmp_path / "settings.toml")


def test_missing_settings_have_defaults(tmp_path: Path) -> None:
    assert settings(tmp_path, "") == Settings()
    found = settings(tmp_path, "[decontaminate]\nngrams = 0.5\n[caps]\ncluster = 20\n")
    assert found == Settings(decontaminate=Thresholds(ngrams=0.5), caps=Caps(cluster=20))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cap]\ncluster = 1", "cap: there is no such setting"),
        ("caps = 3", "caps: should be a section"),
        ("[caps]\nclusters = 1", "caps.clusters: there is no such setting"),
        ("[caps]\ncluster = 1.5", "caps.cluster: Input should be a valid integer"),
        ("[caps]\ncluster = true", "caps.cluster: Input should be a valid integer"),
        ("[decontaminate]\nngrams = -1", "decontaminate.ngrams: Input should be greater than or equal to 0"),
        ("[decontaminate]\nngrams = 'a'", "decontaminate.ngrams: Input should be a valid number"),
        (
            "[targets]\nnames = ['sm_80', 'sm_75']",
            "targets.names.1: Input should be 'sm_80', 'sm_90', 'sm_100' or 'gfx942'",
        ),
        ("[targets]\nnames = ['sm_80', 'sm_80']", "targets: names each target at most once"),
        ("[targets]\nnames = 'sm_80'", "targets.names: should be a list"),
        ("[licence]\nprivate = 1", "licence.private: Input should be a valid boolean"),
        ("[licence]\nstated = true", "licence.stated: Input should be a valid string"),
        ("[licence]\nstated = 'GPL-3.0-only'", "GPL-3.0-only is no permissive SPDX expression: give one of 0BSD, "),
        ("[", "not valid TOML"),
    ],
)
def test_a_mistake_gives_a_clear_message(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        settings(tmp_path, text)


def test_a_run_remembers_its_settings(tmp_path: Path) -> None:
    assert remembered(tmp_path) == Settings()
    given = Settings(
        CutShare(0.5), Thresholds(graph_least=5), Caps(operators=7), LowerSettings(True), Targets(("sm_80", "gfx942"))
    )
    remember(tmp_path, given)
    assert remembered(tmp_path) == given
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        remembered(tmp_path)


def test_a_missing_file_is_one_line_and_makes_no_run(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    (tmp_path / "corpus").mkdir()
    ended = invoke("dataset", tmp_path / "corpus", "--out", tmp_path / "run", "--settings", tmp_path / "none.toml")
    assert ended.status == 1
    assert (
        ended.err
        == f"kernelquarry: {tmp_path}/none.toml: No such file or directory: give the settings as a TOML file\n"
    )


def test_the_manifest_holds_the_settings(built: Built) -> None:
    manifest = json.loads((built.root / "dataset" / "manifest.json").read_text())
    assert manifest["build"]["settings"] == json.loads(json.dumps(asdict(Settings(targets=Targets(())))))


@pytest.mark.parametrize(
    ("source", "text", "names"),
    [
        ("default", "", TARGETS),
        ("full+compose:100", "", TARGETS),
        ("default+slices", "", TARGETS),
        ("the-stack", "[caps]\ncluster = 1", TARGETS),
        ("tiny", "", ()),
        ("/modules", "", ()),
        ("default", "[targets]\nnames = []", ()),
        ("tiny", "[targets]\nnames = ['sm_80']", ("sm_80",)),
    ],
)
def test_a_corpus_of_releases_has_all_targets(tmp_path: Path, source: str, text: str, names: tuple[str, ...]) -> None:
    if text:
        remember(tmp_path, settings(tmp_path, text))
    assert Run(tmp_path, source, tmp_path, tmp_path / "store", SandboxSettings()).settings.targets.names == names
