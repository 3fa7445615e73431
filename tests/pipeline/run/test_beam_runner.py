"""Every pipeline construct that our stages use works on each runner that this machine has.

Job servers of Flink and Spark, and Dataflow, are not on most machines. KERNELQUARRY_RUNNER names a file of options that
reaches one, and a folder that its workers share with this machine: `KERNELQUARRY_RUNNER=flink.options:/mnt/shared`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import grpc
import pytest

from kernelquarry.pipeline.run.beam_runner import is_local, open_pipeline, run_pipeline
from kernelquarry.pipeline.run.execute_stage import Counted, execute, tag_as
from kernelquarry.pipeline.run.runner_options import DEFAULT, accelerator, read_options
from kernelquarry.pipeline.run.stage_directory import StageDirectory
from kernelquarry.pipeline.runtime.apply import ApplyStage, ExecutionMode, Work
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Module
from tests.factories import make_fingerprint, make_modules
from tests.pipeline import shapes

GIVEN = "KERNELQUARRY_RUNNER"
PROCESSES = ("--runner=FnApiRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.fixture(params=["in process", "processes", "worker pool", "given"])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The options of a runner, and a folder that its workers can access."""
    match request.param:
        case "in process":
            yield DEFAULT, tmp_path
        case "processes":
            yield PROCESSES, tmp_path
        case "worker pool":
            with socket.socket() as free:
                free.bind(("localhost", 0))
                port = free.getsockname()[1]
            command = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it starts workers as `python`
            environment = {**os.environ, "PATH": path}
            with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True) as pool:
                with grpc.insecure_channel(f"localhost:{port}") as channel:
                    grpc.channel_ready_future(channel).result(60)
                external = ("--environment_type=EXTERNAL", f"--environment_config=localhost:{port}")
                yield ("--runner=FnApiRunner", "--direct_num_workers=2", *external), tmp_path
                os.killpg(pool.pid, signal.SIGKILL)
        case _:
            if GIVEN not in os.environ:
                pytest.skip(f"{GIVEN} names no file of options of a Flink, Spark or Dataflow runner")
            file, _, shared = os.environ[GIVEN].partition(":")
            yield read_options(Path(file)), Path(shared, tmp_path.name)


def test_every_shape(runner: tuple[tuple[str, ...], Path]) -> None:
    options, folder = runner
    folder.mkdir(exist_ok=True)
    pipeline = open_pipeline(options)
    shapes.build(pipeline, folder)
    result = run_pipeline(pipeline)
    numbers = range(shapes.NUMBERS)

    def gave(name: str) -> list[int]:
        return sorted(map(int, shapes.read(folder / name)))

    assert gave("first") == list(numbers)
    assert gave("second") == sorted(-n for n in numbers)
    assert gave("odd") == list(numbers[1::2])
    assert gave("even") == list(numbers[::2])
    assert shapes.read(folder / "beside") == [f"{sum(numbers)} 25", f"{sum(numbers)} 9"]
    assert gave("bundled") == list(numbers)
    assert len(gave("state")) == shapes.NUMBERS and gave("state")[-1] == sum(numbers)
    assert gave("batched") == list(numbers)
    assert shapes.read(folder / "joined") == ["0:20", "30:20", "30:20"]
    assert gave("list") == [2 * shapes.NUMBERS]
    found = result.metrics().query()
    assert [c.result for c in found["counters"] if c.key.metric.name == "numbers"] == [shapes.NUMBERS]
    assert [d.result.sum for d in found["distributions"] if d.key.metric.name == "size"] == [sum(numbers)]


def test_a_stage_gives_the_same_bytes(runner: tuple[tuple[str, ...], Path]) -> None:
    options, folder = runner
    (folder / "remote").mkdir(parents=True)
    here, remote = run(folder, DEFAULT), run(folder / "remote", options)
    assert here.outputs == remote.outputs
    assert here.counts == remote.counts


def test_a_stage_goes_on_when_a_worker_is_killed(tmp_path: Path) -> None:
    """Beam's own local runner would wait forever."""

    def fatal(module: Module, sandbox: Sandbox) -> Outcome[Module]:
        began = tmp_path / "began"
        with began.open("a") as stream:
            stream.write("x")
        if began.stat().st_size == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return Kept(module)

    manifest = run(tmp_path, PROCESSES, Work("probe", fatal, Module, ExecutionMode.GUESTS))
    assert manifest.counts[0].kept == len(MODULES)
    assert manifest.outputs == run(tmp_path / "again", DEFAULT).outputs
    began = (tmp_path / "began").stat().st_size
    assert began < 1.5 * len(MODULES)  # what was stored was not done again


MODULES = make_modules(30)


def run(folder: Path, options: tuple[str, ...], work: Work | None = None):
    work = work or Work("probe", shapes.keep, Module, ExecutionMode.INLINE)
    apply = ApplyStage(work, make_fingerprint(), folder / "store", SandboxSettings(workers=1))
    return execute(
        lambda: beam.Create(MODULES) | apply | tag_as("probe"),
        stage="probe",
        kind=Module,
        made_by=make_fingerprint(),
        directory=StageDirectory(folder / "stage"),
        inputs={},
        counted=(Counted("probe", "module", len(MODULES)),),
        shards=3,
        options=options,
    )


# files of options


def test_options_are_read(tmp_path: Path) -> None:
    file = tmp_path / "flink.options"
    file.write_text(
        "# a cluster\n\n--runner=FlinkRunner\n--flink_master=localhost:8081\n--accelerator=type:nvidia-l4\n"
    )
    options = read_options(file)
    assert options == ("--runner=FlinkRunner", "--flink_master=localhost:8081", "--accelerator=type:nvidia-l4")
    assert accelerator(options) == "type:nvidia-l4"
    assert not is_local(options) and not is_local(PROCESSES)
    assert read_options(None) == DEFAULT and is_local(DEFAULT) and not accelerator(DEFAULT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--runner=DaskRunner\n", "DaskRunner is refused: it loses records without an error"),
        ("--runner=apache_beam.runners.dask.dask_runner.DaskRunner\n", "DaskRunner is refused"),
        ("--runner=DirectRunner\n", "DirectRunner is refused: it downloads another runner"),
        ("runner: FlinkRunner\n", "is not an option"),
    ],
)
def test_a_wrong_file_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "options"
    file.write_text(text)
    with pytest.raises(UserError, match=said):
        read_options(file)
    with pytest.raises(UserError, match="not a file of pipeline options"):
        read_options(tmp_path / "none")
