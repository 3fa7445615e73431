"""The list of stages fits together, and each stage names all the code that decides its results."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelquarry.pipeline.graph import ALL, BACKWARD, STAGES, Stage, before
from kernelquarry.pipeline.runtime import fingerprint
from kernelquarry.pipeline.runtime import source_closure as source_closure_module
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import ApplyToEach

WITH_GUESTS = "probe slice lower verify distill targets time backward float16 autotuned"
GUESTS = [stage for stage in ALL if stage.name in WITH_GUESTS.split()]


def by_name(stage: Stage) -> str:
    return stage.name


def test_each_stage_takes_what_the_one_before_gives() -> None:
    assert STAGES[0].input_type is None
    assert [stage.input_type for stage in STAGES[1:]] == [stage.output_type for stage in STAGES[:-1]]
    assert STAGES[-1].output_type is Pair
    assert all(stage.input_type is before(stage).output_type for stage in ALL[1:])
    assert before(BACKWARD).name == "balance"


def test_each_stage_has_a_transform_of_its_own() -> None:
    transforms = {stage.name: stage.load() for stage in ALL}
    assert len(set(transforms.values())) == len(ALL)
    assert all(stage.counted[-1][0] == stage.name for stage in ALL)
    for stage in ALL:
        transform = transforms[stage.name]
        if issubclass(transform, ApplyToEach):
            assert (transform.work.name, transform.work.output_type) == (stage.name, stage.output_type)
    assert [name for name, transform in transforms.items() if transform.calls_models] == ["distill"]


def test_the_registry_needs_no_beam() -> None:
    code = "import sys, kernelquarry.pipeline.graph; assert 'apache_beam' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("stage", GUESTS, ids=by_name)
def test_the_guest_jobs_of_a_stage_are_in_its_fingerprint(stage: Stage) -> None:
    made_by = Fingerprint.of(stage.module)
    assert "pipeline.sandbox.guest.jobs" in made_by.code
    assert {"torch", "triton"} <= made_by.versions.keys()


@pytest.mark.parametrize("stage", ALL, ids=by_name)
def test_a_fingerprint_is_the_same_each_time(stage: Stage) -> None:
    assert Fingerprint.of(stage.module) == Fingerprint.of(stage.module)


@pytest.fixture
def forget_sources() -> Iterator[Callable[[], None]]:
    """Forget the sources that were read, now and after the test."""
    module = source_closure_module

    def forget() -> None:
        for cached in (module.source_closure, module._imported, module._parsed, module._external):
            cached.cache_clear()

    yield forget
    forget()


def test_a_fingerprint_changes_with_the_code_that_is_reached_the_versions_and_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget_sources: Callable[[], None]
) -> None:
    code = {
        "transforms/a/__init__.py": "",
        "transforms/a/b.py": "from kernelquarry.filters.c import y\nfrom kernelquarry.pipeline.runtime import e\n",
        "transforms/a/unused.py": "",
        "filters/c.py": "y = 1\n",
        "pipeline/runtime/e.py": "",
        "pipeline/sandbox/jobs/probe.py": "",
        "pipeline/sandbox/guest/jobs/probe.py": "from ..lib import d\n",
        "pipeline/sandbox/guest/lib/d.py": "",
    }

    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    for name, text in code.items():
        write(name, text)
    monkeypatch.setattr(source_closure_module, "ROOT", tmp_path)
    versions = {"numpy": "1", "torch": "1", "triton": "1"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)

    def key() -> str:
        forget_sources()
        return Fingerprint.of("transforms.a.b").key

    seen = [key()]
    imported = "from kernelquarry.pipeline.sandbox.jobs.probe import PROBE\n"
    write("transforms/a/b.py", code["transforms/a/b.py"] + imported)
    seen.append(key())
    write("filters/c.py", "y = 2\n")
    seen.append(key())
    write("pipeline/sandbox/guest/lib/d.py", "z = 1\n")
    seen.append(key())
    versions["torch"] = "2"
    seen.append(key())
    monkeypatch.setattr(fingerprint, "SCHEMA_VERSION", 1000)
    seen.append(key())
    assert len(set(seen)) == len(seen)
    write("transforms/a/unused.py", "x = 1\n")
    write("pipeline/runtime/e.py", "x = 1\n")
    assert key() == seen[-1]
