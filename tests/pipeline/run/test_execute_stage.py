"""One stage on a directory of shards: every record is accounted for, and none is processed twice."""

from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from kernelquarry.pipeline.run.execute_stage import Counted, execute, read_shards, tag_as
from kernelquarry.pipeline.run.stage_directory import StageDirectory
from kernelquarry.pipeline.runtime.apply import ApplyStage, ExecutionMode, Work
from kernelquarry.pipeline.runtime.funnel import ConservationError
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.executor.service import Gpus
from kernelquarry.pipeline.schema.arrow import read_records, write_shard
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Kept, Outcome, Status
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module
from tests.factories import make_fingerprint, make_module

KEY = make_fingerprint("key").key
MODULES = [replace(make_module(), id=module_id(str(n)), code=str(n)) for n in range(40)]


TWO = SandboxSettings(workers=2)


def sieve(module: Module, sandbox: Sandbox) -> Outcome[Module]:
    """Keeps even codes, drops odd ones, and breaks on 13 and 26."""
    number = int(module.code)
    if number in (13, 26):
        raise KeyError(number)
    if number % 2:
        return Dropped(module.id, Reason.RANDOM, f"{number} is odd")
    return Kept(module)


def run(
    directory: Path,
    work=sieve,
    fingerprint: str = "1",
    entered: int = len(MODULES),
    settings: SandboxSettings = TWO,
):
    made_by, store = make_fingerprint(fingerprint), directory / "store"
    apply = ApplyStage(Work("probe", work, Module, ExecutionMode.GUESTS), made_by, store, settings)
    return execute(
        lambda: beam.Create(MODULES) | apply | tag_as("probe"),
        stage="probe",
        kind=Module,
        made_by=make_fingerprint("key"),
        directory=StageDirectory(directory / "stage"),
        inputs={"shard": "digest"},
        counted=(Counted("probe", "module", entered),),
        shards=3,
    )


def test_every_record_ends_in_exactly_one_way(tmp_path: Path) -> None:
    (counts,) = run(tmp_path).counts
    assert (counts.entered, counts.kept) == (40, 19)
    assert counts.dropped == {"random": 19}
    assert counts.errored == {"KeyError": 2}
    stage = StageDirectory(tmp_path / "stage")
    kept = [module for path in stage.kept for module in read_records(path, Module)]
    losses = list(read_records(stage.lost, DropRecord))
    assert len(stage.kept) == 3
    assert {m.id for m in kept} | {loss.id for loss in losses} == {m.id for m in MODULES}
    assert len(kept) + len(losses) == len(MODULES)
    assert {loss.id for loss in losses if loss.status is Status.ERRORED} == {MODULES[13].id, MODULES[26].id}


def test_busy_seconds_of_gpus_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent_s = iter([{0: 1.25, 1: 0.25}, {0: 0.5, 1: 0.0}])
    monkeypatch.setattr(Gpus, "busy_seconds", lambda gpus: next(spent_s, {}))
    settings = SandboxSettings(workers=2, gpus=(0, 1))
    manifests = [run(tmp_path / name, settings=settings) for name in ("first", "second")]
    assert sum(manifest.gpu_s for manifest in manifests) == 2.0
    assert run(tmp_path / "without").gpu_s == 0.0


def test_a_lost_record_fails_the_stage(tmp_path: Path) -> None:
    with pytest.raises(ConservationError, match="41 module entered, but 40 left"):
        run(tmp_path, entered=41)


def test_results_are_stored_and_errors_are_tried_again(tmp_path: Path) -> None:
    first = run(tmp_path)
    calls = tmp_path / "calls"  # a file, since Beam gives each worker a copy of the function

    def watched(module: Module, sandbox: Sandbox) -> Outcome[Module]:
        with calls.open("a") as stream:
            stream.write(module.code + "\n")
        return sieve(module, sandbox)

    second = run(tmp_path, work=watched)
    assert sorted(calls.read_text().split()) == ["13", "26"]
    assert second.outputs == first.outputs
    run(tmp_path, work=watched, fingerprint="2")
    assert len(calls.read_text().split()) == 2 + len(MODULES)


def test_a_finished_stage_is_recognised_until_something_changes(tmp_path: Path) -> None:
    def odd_or_even(module: Module, sandbox: Sandbox) -> Outcome[Module]:
        return Dropped(module.id, Reason.RANDOM, "odd") if int(module.code) % 2 else Kept(module)

    manifest = run(tmp_path, odd_or_even)
    stage = StageDirectory(tmp_path / "stage")
    assert stage.finished(KEY, {"shard": "digest"}) == manifest
    assert stage.finished("other", {"shard": "digest"}) is None
    assert stage.finished(KEY, {"shard": "other"}) is None
    stage.kept[0].write_bytes(b"half")
    assert stage.finished(KEY, {"shard": "digest"}) is None


def test_a_stage_with_errors_is_not_finished(tmp_path: Path) -> None:
    run(tmp_path)
    assert StageDirectory(tmp_path / "stage").finished(KEY, {"shard": "digest"}) is None


def test_shards_can_be_read_back_in_beam(tmp_path: Path) -> None:
    run(tmp_path)
    shards = StageDirectory(tmp_path / "stage").kept
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        codes = pipeline | read_shards(shards, Module) | beam.Map(lambda module: int(module.code))
        assert_that(codes, equal_to([n for n in range(0, 40, 2) if n != 26]))


@pytest.mark.parametrize("number", [3, 130, 6000])
def test_workers_read_a_few_records_at_a_time(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [replace(make_module(), id=module_id(str(n)), code=str(n)) for n in range(number)]
    noted = tmp_path / "read"

    def counted(path: Path, kind: type, start: int, stop: int) -> list[Module]:
        found = list(read_records(path, kind, start, stop))
        with noted.open("a") as stream:
            stream.write(f"{len(found)}\n")
        return found

    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    write_shard(paths[0], modules[: number // 3], Module)
    write_shard(paths[1], modules[number // 3 :], Module)
    monkeypatch.setattr("kernelquarry.pipeline.run.execute_stage.read_records", counted)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        found = pipeline | read_shards(paths, Module) | beam.Map(lambda module: module.id)
        assert_that(found, equal_to([module.id for module in modules]))
    read = [int(line) for line in noted.read_text().splitlines()]
    assert max(read) <= 50 and len(read) >= min(number, 64)
