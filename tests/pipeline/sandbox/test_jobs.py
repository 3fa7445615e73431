"""The request of a job and its report."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from scripts import Run, script

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxError, SandboxSettings, Status
from kernelquarry.pipeline.sandbox.jobs import KINDS
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, ScriptRequest
from kernelquarry.pipeline.sandbox.protocol import ProtocolError


def test_a_reply_comes_back_with_its_tensors(run: Run) -> None:
    report = run(
        """
        print("seen")
        return {"sum": arguments["a"] + 1}, {"y": tensors["x"] * 2, "n": tensors["x"].to(torch.bfloat16)}
        """.replace("print", "import torch; print"),
        {"a": 1},
        {"x": torch.arange(6.0).reshape(2, 3)},
    )
    assert report.status is Status.OK, report.error
    assert report.reply == {"sum": 2}
    assert report.tensors["y"].equal(torch.arange(6.0).reshape(2, 3) * 2)
    assert report.tensors["n"].dtype == torch.bfloat16
    assert (report.error, report.traceback, report.stderr) == ("", "", "seen\n")
    assert 0 < report.wall_s < 20 and report.cpu_s > 0 and report.peak_mb > 1


def test_an_exception_is_described(run: Run) -> None:
    report = run("raise ValueError('no such size')")
    assert report.status is Status.RAISED
    assert report.error == "ValueError: no such size"
    assert 'File "/scratch/script.py", line 2, in main' in report.traceback
    assert report.reply is None and not report.tensors


def test_the_same_failure_reads_the_same_each_time(run: Run) -> None:
    """Each job has another scratch folder, whose name must not appear in the texts that records keep."""
    body = "import os, sys; print(os.getcwd(), file=sys.stderr); open('missing/file')"
    first, second = run(body), run(body)
    assert (first.error, first.traceback, first.stderr) == (second.error, second.traceback, second.stderr)
    assert first.stderr == "/scratch\n"


def test_inputs_are_the_guests_own(run: Run) -> None:
    given = torch.zeros(3)
    assert run("tensors['x'].fill_(1)", tensors={"x": given}).status is Status.OK
    assert given.equal(torch.zeros(3))


def test_sets_have_one_order(run: Run, tmp_path: Path) -> None:
    """Guests of different warm processes iterate over a set in the same order."""
    body = "return {'order': list({'alpha', 'beta', 'gamma', 'delta', 'epsilon'})}, {}"
    with Sandbox(SandboxSettings(workers=1, scratch=str(tmp_path))) as other:
        report = other.run(script(body))
    assert report.reply == run(body).reply is not None


def test_a_guest_sees_no_traces_of_earlier_guests(run: Run) -> None:
    assert run("import torch, os; torch.relu = None; os.environ['LEFT'] = '1'; open('left', 'w')").status is Status.OK
    report = run("import torch, os; return {'left': 'LEFT' in os.environ, 'files': os.listdir(), 'relu': "
                 "torch.relu(torch.tensor([-1.0])).item()}, {}")  # fmt: skip
    assert report.reply == {"left": False, "files": ["script.py"], "relu": 0}


def test_jobs_run_side_by_side(sandbox: Sandbox) -> None:
    """Several threads run jobs on one sandbox, and each gets the reply to its own job."""
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(lambda n: sandbox.run(script(f"return {{'n': {n}}}, {{}}")), range(12)))
    assert [report.reply for report in reports] == [{"n": n} for n in range(12)]


def test_no_more_guests_than_workers() -> None:
    """With one worker, a second job starts only when the first has ended."""
    with Sandbox(SandboxSettings(workers=1)) as sandbox, ThreadPoolExecutor(2) as threads:
        body = "import time; start = time.monotonic(); time.sleep(0.1); return {'at': [start, time.monotonic()]}, {}"
        reports = list(threads.map(sandbox.run, [script(body)] * 2))
    (_, first_end), (second_start, _) = sorted(report.reply["at"] for report in reports if report.reply)
    assert first_end <= second_start


def test_a_request_that_is_no_json_is_the_callers_error(sandbox: Sandbox) -> None:
    with pytest.raises(ProtocolError, match="not JSON"):
        sandbox.run(Job(SCRIPT, ScriptRequest("", float("nan"))))


def test_an_interpreter_without_torch_is_named(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    settings = SandboxSettings(workers=1, python=str(tmp_path / "bin" / "python"))
    with Sandbox(settings) as sandbox, pytest.raises(SandboxError, match="No module named"):
        sandbox.run(script("pass"))


def test_a_closed_sandbox_refuses() -> None:
    sandbox = Sandbox()
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(script("pass"))


def test_overhead_is_small(sandbox: Sandbox, run: Run) -> None:
    """A trivial job takes about 15 ms on a quiet machine; the limit leaves room for a busy one."""
    times = sorted(run("pass").wall_s for _ in range(20))
    assert times[0] < 0.1


def test_a_deadline_does_not_wait_for_the_guest(run: Run) -> None:
    started = time.monotonic()
    assert run("while True: pass", wall_s=0.3).status is Status.TIMED_OUT
    assert time.monotonic() - started < 5


def test_a_job_has_the_default_limits() -> None:
    assert Job(SCRIPT, ScriptRequest("")).limits == Limits()


def test_kinds_that_share_a_warm_process_have_its_environment() -> None:
    for kind in KINDS.values():
        own = KINDS[kind.process]
        assert (own.environment, own.gpu, own.shares) == (kind.environment, kind.gpu, ""), kind.name
