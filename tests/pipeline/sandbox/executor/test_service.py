"""Executor processes: the host detects each way in which an executor can end. Simulated GPUs stand in for real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from forked import Script
from traced_programs import doubled_sum, kernel

from kernelquarry.pipeline.sandbox.exchange import SandboxError
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus, Gpus

START = """
import json, os, socket, sys, time, torch
from pathlib import Path
sys.path[:0] = PATH
from gpu_double import Double, floats
from kernelquarry.pipeline.sandbox.executor import process
from kernelquarry.pipeline.sandbox.cuda import Fault
used = Path(sys.argv[0]).with_suffix(".used")
used.mkdir(exist_ok=True)
def add(grid, x, weight, out, count):
    (used / str(os.getpid())).touch()
    floats(out, count)[:] = floats(x, count) + floats(weight, count)
def scale(grid, x, out, count, factor):
    BODY
class Device(Double):
    well = True
    def synchronize(self):
        if not self.well:
            raise Fault("an illegal address", poisoned=True)
def fail():
    Device.well = False
    raise torch.AcceleratorError("CUDA error: what an operator of torch says")
control = socket.socket(fileno=int(sys.argv[1]))
control.send(json.dumps({"ready": {"name": "a double", "target": "sm_90", "driver": "1"}}).encode())
process.serve(control, Device({"add": add, "scale": scale}))
"""
REQUEST = {
    "kernels": [kernel("add"), kernel("scale")],
    "programs": [doubled_sum()],
    "runs": [{"program": 0, "trial": 0, "state": "0", "poison": "nan", "launching": True}],
}
TENSORS = {
    "input.0.0": torch.arange(6, dtype=torch.float32),
    "state.0.weight": torch.ones(6),
    "binary.hash of add": torch.zeros(1, dtype=torch.uint8),
    "binary.hash of scale": torch.zeros(1, dtype=torch.uint8),
}
FAULTY = TENSORS | {"input.0.0": torch.full((6,), 200.0)}
RIGHT = "floats(out, count)[:] = floats(x, count) * factor"
Make = Callable[..., Gpus]


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Start simulated GPUs whose second kernel runs the given body. `forked`: their executors need not import torch."""
    made: list[Gpus] = []

    def make(body: str, ordinals: tuple[int, ...] = (0,), forked: bool = True) -> Gpus:
        if forked:
            double = SimpleNamespace(Popen=Script, DEVNULL=subprocess.DEVNULL)
            monkeypatch.setattr("kernelquarry.pipeline.sandbox.executor.service.subprocess", double)
        script = tmp_path / "double.py"
        text = START.replace("PATH", repr(sys.path)).replace("    BODY", textwrap.indent(textwrap.dedent(body), "    "))
        script.write_text(text)
        made.append(Gpus(ordinals, (sys.executable, str(script))))
        return made[-1]

    yield make
    for service in made:
        service.close()


def used(tmp_path: Path) -> int:
    """Number of executors that have run a job."""
    return len(list((tmp_path / "double.used").iterdir()))


def test_a_job_is_done(gpus: Make, tmp_path: Path) -> None:
    service = gpus(RIGHT)
    for _ in range(2):
        execution = service.run(REQUEST, TENSORS, 60)
        assert (execution.status, service.description.name) == (ExecutionStatus.DONE, "a double")
        torch.testing.assert_close(execution.tensors["0.output.0"], 2 * (TENSORS["input.0.0"] + 1))
    assert used(tmp_path) == 1
    assert 0 < service.usage()[0] <= 1


def test_a_fault_costs_one_job(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"if x and floats(x, 1)[0] > 100: raise Fault('out of luck')\n{RIGHT}")
    execution = service.run(REQUEST, FAULTY, 60)
    assert (execution.status, execution.error, execution.tensors) == (ExecutionStatus.FAULT, "out of luck", {})
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE
    assert used(tmp_path) == 1


def test_a_poisoned_context_is_replaced(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"if floats(x, 1)[0] > 100: raise Fault('illegal address', poisoned=True)\n{RIGHT}")
    execution = service.run(REQUEST, FAULTY, 60)
    assert (execution.status, execution.error) == (ExecutionStatus.FAULT, "illegal address")
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE
    assert used(tmp_path) == 2


def test_a_torch_error_after_a_failed_kernel_is_a_fault(gpus: Make, tmp_path: Path) -> None:
    """The next torch operator raises the kernel's error. The job is not retried, unlike a job whose executor died."""
    service = gpus(f"if floats(x, 1)[0] > 100: fail()\n{RIGHT}")
    execution = service.run(REQUEST, FAULTY, 60)
    assert (execution.status, execution.error) == (ExecutionStatus.FAULT, "an illegal address") and used(tmp_path) == 1
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE and used(tmp_path) == 2


def test_a_torch_error_on_a_healthy_gpu_is_no_fault(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"if floats(x, 1)[0] > 100: raise torch.AcceleratorError('of ours')\n{RIGHT}")
    execution = service.run(REQUEST, FAULTY, 60)
    assert execution.status == ExecutionStatus.DIED and used(tmp_path) == 2


def test_after_a_failure_the_next_executor_starts_before_it_is_needed(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"if floats(x, 1)[0] > 100: raise Fault('illegal address', poisoned=True)\n{RIGHT}")
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE and not service._spare
    for _ in range(3):
        assert service.run(REQUEST, FAULTY, 60).status == ExecutionStatus.FAULT
        spare = service._spare[0]
        assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE
        assert service._idle[0] is spare and service._spare[0] is not spare
    assert used(tmp_path) == 4
    left = [service._spare[0]._process, spare._process]
    service.close()
    assert all(process.poll() is not None for process in left), "a spare outlives its service"


def test_a_reservation_waits_until_the_spare_executor_has_started(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"if floats(x, 1)[0] > 100: raise Fault('illegal address', poisoned=True)\n{RIGHT}")
    assert service.run(REQUEST, FAULTY, 60).status == ExecutionStatus.FAULT
    with service.reserve():
        assert service._spare[0].description
    service._spare[0].kill()
    with service.reserve():  # the killed spare was ready, so its state is not queried again
        pass
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE, (
        "the next one is dead, and the job no cause of it"
    )


def test_a_spare_that_does_not_start_is_discarded(gpus: Make, tmp_path: Path) -> None:
    service = gpus(
        f"if floats(x, 1)[0] > 100: Path(sys.argv[0]).write_text('0/0'); raise Fault('', poisoned=True)\n{RIGHT}"
    )
    assert service.run(REQUEST, FAULTY, 60).status == ExecutionStatus.FAULT
    with service.reserve():
        assert not service._spare
    with pytest.raises(SandboxError, match="ZeroDivisionError"):
        service.run(REQUEST, TENSORS, 60)


def test_a_kernel_that_never_ends_is_killed(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"while floats(x, 1)[0] > 100: time.sleep(1)\n{RIGHT}")
    execution = service.run(REQUEST, FAULTY, 1)
    assert execution.status == ExecutionStatus.TIMED_OUT
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE


def test_a_job_that_kills_its_executor_twice_is_the_cause(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"if floats(x, 1)[0] > 100: os.kill(os.getpid(), 9)\n{RIGHT}")
    assert service.run(REQUEST, FAULTY, 60).status == ExecutionStatus.DIED
    assert used(tmp_path) == 2
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE


def test_a_job_is_not_blamed_for_an_executor_that_was_dead_before(gpus: Make, tmp_path: Path) -> None:
    once = tmp_path / "once"
    service = gpus(f"if not Path({str(once)!r}).exists(): Path({str(once)!r}).touch(); os._exit(3)\n{RIGHT}")
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE
    assert used(tmp_path) == 2


def test_a_gpu_that_is_lost_is_left_out(gpus: Make, tmp_path: Path) -> None:
    """The second GPU's executor dies during its first job and never restarts. No job is lost or sent to this GPU."""
    fallen = tmp_path / "fallen"
    body = f"""
        fallen = Path({str(fallen)!r})
        if sys.argv[2] == "1":
            fallen.touch()
            os._exit(3)
        {RIGHT}
    """
    service = gpus(body, (0, 1))
    script = tmp_path / "double.py"
    gone = (
        f"import sys; from pathlib import Path; sys.argv[2] == '1' and Path({str(fallen)!r}).exists() and sys.exit(4)"
    )
    script.write_text(f"{gone}\n{script.read_text()}")
    with ThreadPoolExecutor(4) as threads:
        ended = list(threads.map(lambda _: service.run(REQUEST, TENSORS, 60), range(12)))
    assert {execution.status for execution in ended} == {ExecutionStatus.DONE} and fallen.exists()
    before = used(tmp_path)
    with service.share() as ordinal:
        assert ordinal == 0
    assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE and used(tmp_path) == before


def test_the_busy_time_of_each_gpu_is_reported_once(gpus: Make) -> None:
    service = gpus(RIGHT)
    service.run(REQUEST, TENSORS, 60)
    assert service.busy_seconds()[0] > 0
    assert service.busy_seconds() == {0: 0.0}


def test_a_malformed_program(gpus: Make) -> None:
    service = gpus(RIGHT)
    execution = service.run(REQUEST | {"programs": [doubled_sum() | {"outputs": [{}]}]}, TENSORS, 60)
    assert execution.status == ExecutionStatus.MALFORMED and "expected" in execution.error


def test_a_slope_is_requested_in_the_same_way(gpus: Make) -> None:
    drawn = [{"shape": [6], "dtype": "float32", "low": 0, "high": 0}]
    request = {name: REQUEST[name] for name in ("kernels", "programs")} | {"drawn": drawn, "slopes": 3}
    execution = gpus(RIGHT).run(request, TENSORS | {"state.weight": TENSORS["state.0.weight"]}, 60)
    assert execution.status == ExecutionStatus.DONE and execution.reply["slope_s"] > 0


class Loans:
    """A log of the threads that hold the GPU."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: list[str] = []
        self.seen: list[str] = []

    def enter(self, name: str) -> None:
        with self._lock:
            self._holders.append(name)
            assert self._holders == ["alone"] or "alone" not in self._holders
            self.seen.append(name)

    def leave(self, name: str) -> None:
        with self._lock:
            self._holders.remove(name)


def test_a_reservation_excludes_guests_and_jobs(gpus: Make) -> None:
    """Jobs, guests and exclusive holders compete for one GPU: all of them get it in the end."""
    service, loans = gpus(RIGHT), Loans()

    def guest() -> None:
        with service.share():
            loans.enter("guest")
            os.sched_yield()
            loans.leave("guest")

    def job() -> None:
        assert service.run(REQUEST, TENSORS, 60).status == ExecutionStatus.DONE

    def alone() -> None:
        with service.reserve():
            loans.enter("alone")
            os.sched_yield()
            loans.leave("alone")

    with ThreadPoolExecutor(24) as threads:
        for future in [threads.submit(work) for work in [guest, job, alone, guest, guest, guest] * 8]:
            future.result(60)
    assert loans.seen.count("guest") == 32 and loans.seen.count("alone") == 8


def test_a_waiting_reservation_comes_before_later_guests(gpus: Make) -> None:
    service, order = gpus(RIGHT), list[str]()

    def alone() -> None:
        with service.reserve():
            order.append("alone")

    def guest() -> None:
        with service.share():
            order.append("guest")

    with ThreadPoolExecutor(2) as threads, service.share():
        threads.submit(alone)
        while not service._reserved:
            os.sched_yield()
        threads.submit(guest)
        assert order == []
    assert order == ["alone", "guest"]


def test_closing_wakes_waiting_threads(gpus: Make) -> None:
    service = gpus(RIGHT)

    def alone() -> None:
        with service.reserve():
            raise AssertionError("the GPU was not free")

    with ThreadPoolExecutor(1) as threads, service.share():
        waiting = threads.submit(alone)
        service.close()
        with pytest.raises(SandboxError, match="closed"):
            waiting.result(60)


def test_guests_spread_over_gpus() -> None:
    with Gpus([3, 5]) as service, service.share() as first, service.share() as second, service.share():
        assert {first, second} == {3, 5}


def test_no_gpu(tmp_path: Path) -> None:
    """On a machine without a GPU, the real executor process fails with one clear line."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with (
        Gpus([0]) as service,
        pytest.raises(SandboxError, match="no executor for GPU 0: RuntimeError: torch finds no such GPU"),
    ):
        service.run(REQUEST, TENSORS, 60)


def test_closing_leaves_no_process(gpus: Make, tmp_path: Path) -> None:
    service = gpus(f"Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n{RIGHT}", forked=False)
    service.run(REQUEST, TENSORS, 60)
    service.close()
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")
