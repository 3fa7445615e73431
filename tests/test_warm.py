"""Warm processes are lent until they die, also to forks, and end with the tests."""

from __future__ import annotations

from pathlib import Path

import forked
import pytest
import warm
from warm import Loan, Warm

from kernelquarry.pipeline.sandbox import Job, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.exchange import WarmProcessDied
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, ScriptRequest


def test_one_is_lent_to_every_sandbox_until_it_dies(tmp_path: Path) -> None:
    folders = (tmp_path / sandbox / "script-1" for sandbox in "abcd")
    with Warm() as warm:
        first = warm.lend(SCRIPT, next(folders), SandboxSettings(workers=1))
        first.close()  # as its sandbox does
        assert warm.lend(SCRIPT, next(folders), SandboxSettings(workers=2)) is first
        assert warm.lend(SCRIPT, next(folders), SandboxSettings(kernels=str(tmp_path / "kernels"))) is first
        first._process.kill()
        with pytest.raises(WarmProcessDied):
            first.run(Job(SCRIPT, ScriptRequest("")))
        first.close()
        second = warm.lend(SCRIPT, next(folders), SandboxSettings())
        assert second is not first and second._process.poll() is None
    assert {first._process.returncode, second._process.returncode} == {-9, 0}


def test_a_sandbox_that_is_set_up_otherwise_has_its_own(tmp_path: Path) -> None:
    settings = SandboxSettings(scratch=str(tmp_path))
    with Warm() as warm:
        own = warm.lend(SCRIPT, tmp_path / "script-1", settings)
        own.close()
        assert own._process.returncode == 0 and not (tmp_path / "script-1").exists()


def test_a_fork_borrows_the_warm_processes_that_have_started(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        sandbox.start(["script"])
        (lent,) = sandbox._warm_processes.values()
    assert warm.SHARED is not None
    for _ in range(2):
        ended = forked.run(_run_job, warm.SHARED.loans(), timeout_s=60)
        assert (ended.status, ended.out) == (0, "{'done': 1} by Borrowed\n")
    assert lent._process.poll() is None


def _run_job(loans: list[Loan]) -> None:
    warm.borrow(loans, pytest.MonkeyPatch())
    with Sandbox() as sandbox:
        code = "def main(arguments, tensors): return {'done': 1}, {}"
        reply = sandbox.run(Job(SCRIPT, ScriptRequest(code))).reply
        print(reply, "by", type(sandbox._warm_processes["script"]).__name__)
