"""The list of stages fits together, and each stage names all the code that decides its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelquarry.pipeline.graph import ALL, BACKWARD, STAGES, Stage, before
from kernelquarry.pipeline.runtime import fingerprint
from kernelquarry.pipeline.runtime import source_closure as source_closure_module
from kernelquarry.pipeline.runtime.apply import Where
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.runtime.source_closure import source_closure
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.pipeline.schema.stages import DOES, OPTIONAL

GUESTS = [stage for stage in STAGES if stage.work is not None and stage.work.where is Where.GUESTS]


def by_name(stage: Stage) -> str:
    return stage.name


def test_each_stage_takes_what_the_one_before_gives() -> None:
    assert STAGES[0].takes is None
    assert [stage.takes for stage in STAGES[1:]] == [stage.gives for stage in STAGES[:-1]]
    assert STAGES[-1].gives is Pair
    assert all(stage.takes is before(stage).gives for stage in ALL[1:])
    assert before(BACKWARD).name == "decontaminate"


def test_stages_are_those_that_the_schema_describes() -> None:
    assert [stage.name for stage in STAGES] == list(DOES)
    assert [stage.name for stage in ALL] == [*DOES, *OPTIONAL]
    assert all(stage.units[-1][0] == stage.name for stage in ALL)
    assert all((stage.work is None) != (stage.wiring is None) for stage in ALL if not stage.asks)
    assert [stage.name for stage in ALL if stage.asks] == ["distill"]


@pytest.mark.parametrize("stage", GUESTS, ids=by_name)
def test_the_guest_jobs_of_a_stage_are_in_its_fingerprint(stage: Stage) -> None:
    jobs = {name for name in source_closure(stage.root) if name.startswith("pipeline.sandbox.guest.jobs.")}
    assert jobs
    assert {"torch", "triton"} <= set(stage.packages)


@pytest.mark.parametrize("stage", ALL, ids=by_name)
def test_a_fingerprint_is_the_same_each_time(stage: Stage) -> None:
    assert Fingerprint.of(stage.root, stage.packages) == Fingerprint.of(stage.root, stage.packages)


def test_a_fingerprint_changes_with_the_code_that_is_reached_the_versions_and_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    versions = {"torch": "1"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)

    def key() -> str:
        source_closure.cache_clear()
        source_closure_module._imported.cache_clear()
        return Fingerprint.of("transforms.a.b", ("torch",)).key

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
