"""Warm processes start once, are replaced when they die, and leave nothing, however the host ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts import script

from kernelquarry.pipeline.sandbox import Sandbox, SandboxError, SandboxSettings, Status
from kernelquarry.pipeline.schema.errors import UserError

SLEEP = "import time; time.sleep(1000)"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox of the test's own, with its folder in `tmp_path`."""
    with Sandbox(SandboxSettings(workers=2, scratch=str(tmp_path))) as sandbox:
        yield sandbox
    assert not list(tmp_path.iterdir())


def wait_for(condition: object, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.01)


def processes_of(folder: Path) -> list[str]:
    """Command lines of processes that work in the folder or below."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd").startswith(str(folder)) and not is_zombie(entry):
                    found.append((entry / "cmdline").read_text())
            except OSError:
                continue
    return found


def is_zombie(entry: Path) -> bool:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_dead_warm_process_is_replaced_and_the_job_run_again(own: Sandbox, tmp_path: Path) -> None:
    marker = "import time; time.sleep(0.2 if arguments else 0); return {'done': 1}, {}"
    assert own.run(script(marker)).status is Status.OK
    process = own._warm_processes["script"]._process
    results = []
    thread = threading.Thread(target=lambda: results.append(own.run(script(marker, "slow"))))
    thread.start()
    wait_for(lambda: len(processes_of(tmp_path)) > 1)
    process.kill()
    thread.join()
    assert results[0].reply == {"done": 1}
    assert own._warm_processes["script"]._process is not process


def test_a_stopped_warm_process_does_not_stop_the_host(own: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelquarry.pipeline.sandbox.exchange._KILL_S", 0.2)
    monkeypatch.setattr("kernelquarry.pipeline.sandbox.launcher._END_S", 0.2)
    assert own.run(script("pass")).status is Status.OK
    process = own._warm_processes["script"]._process
    warm = [process.pid, *map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())]
    for pid in warm:
        os.kill(pid, signal.SIGSTOP)
    assert own.run(script("return {'done': 1}, {}", wall_s=0.2)).reply == {"done": 1}


def test_closing_ends_running_jobs(own: Sandbox) -> None:
    errors: list[Exception] = []

    def run() -> None:
        try:
            own.run(script(SLEEP))
        except SandboxError as error:
            errors.append(error)

    assert own.run(script("pass")).status is Status.OK
    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: own._slots._value == 1)
    own.close()
    thread.join(10)
    assert len(errors) == 1


def test_an_unknown_layer_cannot_be_required() -> None:
    with pytest.raises(UserError, match="no such layers"):
        SandboxSettings(require=("wishes",))


HOST = """
import os, signal, sys, threading, time
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from scripts import script
sandbox = Sandbox(SandboxSettings(workers=2, scratch=sys.argv[1]))
sleep = "import os, time\\nfor _ in range(3): os.fork()\\nprint('here', flush=True); time.sleep(1000)"
thread = threading.Thread(target=sandbox.run, args=[script(sleep)], daemon=True)
sandbox.run(script("pass"))
thread.start()
while not any(sandbox._slots._value == 1 for _ in [0]): time.sleep(0.01)
time.sleep(0.1)
print("running", flush=True)
"""


def host(tmp_path: Path, end: str) -> subprocess.Popen[str]:
    """Start a host process with a sleeping guest, which then runs the code `end`."""
    return subprocess.Popen(
        [sys.executable, "-c", HOST + textwrap.dedent(end), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("end", "signal_number"),
    [
        ("signal.pause()", signal.SIGKILL),
        ("sandbox.run(script('import time; time.sleep(1000)'))", signal.SIGINT),
        ("", None),
        ("os.fork() or os._exit(0); os.wait(); os._exit(0)", None),
        ("os.fork() or time.sleep(90); os.kill(os.getpid(), 9)", None),
    ],
    ids=["killed", "interrupted", "ended", "exited", "killed with a fork alive"],
)
def test_nothing_is_left_when_the_host_ends(tmp_path: Path, end: str, signal_number: int | None) -> None:
    with host(tmp_path, end) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "running\n", process.stderr.read()
        if signal_number is not None:
            process.send_signal(signal_number)
        process.wait(60)
        wait_for(lambda: not processes_of(tmp_path))
        wait_for(lambda: not list(tmp_path.iterdir()))
        os.killpg(process.pid, signal.SIGKILL) if "90" in end else None


def test_a_warm_process_that_fails_without_its_host_leaves_nothing(tmp_path: Path) -> None:
    """The host is killed while a warm process starts; then an import in the warm process fails."""
    unknown = "KINDS['unknown'] = dataclasses.replace(KINDS['script'], name='unknown')"
    end = "threading.Timer(0.2, os.kill, [os.getpid(), 9]).start(); sandbox.start(['unknown'])"
    imports = "import dataclasses\nfrom kernelquarry.pipeline.sandbox.jobs import KINDS"
    with host(tmp_path, f"{imports}\n{unknown}\n{end}") as process:
        process.wait(60)
        wait_for(lambda: not list(tmp_path.iterdir()))  # first: the warm process may not be its own program yet
        wait_for(lambda: not processes_of(tmp_path))
