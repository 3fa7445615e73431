"""A pool spreads work over processes, and reports failures of work and processes."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from dataclasses import dataclass
from threading import Barrier, Thread
from typing import Any

import pytest

from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome
from kernelquarry.recipes.judge.sandbox_pool import SandboxPool


@dataclass(frozen=True, slots=True)
class Item:
    id: str


def pid_of(item: Item, sandbox: Any) -> Outcome[tuple[str, int]]:
    if item.id == "wrong":
        raise ValueError("of no use")
    if item.id == "stop":
        raise UserError("nothing can be done")
    if item.id == "dies":
        os._exit(1)
    return Kept((item.id, os.getpid()))


PARENT = """
from tests.recipes.judge.test_sandbox_pool import Item, SandboxPool, SandboxSettings, pid_of
pool = SandboxPool(SandboxSettings(workers=4))
print(*{pool.run(pid_of, Item(str(place))).record[1] for place in range(8)}, flush=True)
input()
"""


def test_few_guests_run_in_this_process() -> None:
    with SandboxPool(SandboxSettings(workers=2)) as pool:
        assert pool.run(pid_of, Item("a")) == Kept(("a", os.getpid()))
    with SandboxPool(SandboxSettings(workers=7), exclusive=True) as pool:
        assert pool.run(pid_of, Item("a")) == Kept(("a", os.getpid()))


def test_many_guests_run_in_several_processes_that_report_failures() -> None:
    with SandboxPool(SandboxSettings(workers=4)) as pool:
        found = [pool.run(pid_of, Item(str(place))) for place in range(8)]
        assert [each.record[0] for each in found if isinstance(each, Kept)] == list("01234567")
        assert len({each.record[1] for each in found if isinstance(each, Kept)} - {os.getpid()}) == 2
        wrong = pool.run(pid_of, Item("wrong"))
        assert isinstance(wrong, Errored) and wrong.error == "ValueError" and "of no use" in wrong.message
        with pytest.raises(UserError, match="nothing can be done"):
            pool.run(pid_of, Item("stop"))


def test_a_dead_process_fails_only_its_own_work() -> None:
    with SandboxPool(SandboxSettings(workers=4)) as pool:
        found = [pool.run(pid_of, Item("dies")), pool.run(pid_of, Item("b"))]
        assert isinstance(found[0], Errored) and isinstance(found[1], Kept)


def test_processes_exit_with_their_parent() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        watched = [os.pidfd_open(int(each)) for each in parent.stdout.readline().split()]
        assert len(watched) == 2
        parent.kill()
    for each in watched:
        assert select.select([each], [], [], 60)[0], "it outlives its parent"
        os.close(each)


def test_threads_run_work_concurrently() -> None:
    with SandboxPool(SandboxSettings(workers=2)) as pool:
        both = Barrier(2, timeout=60)

        def wait(item: Item, sandbox: Any) -> Outcome[int]:
            return Kept(both.wait())

        threads = [Thread(target=pool.run, args=(wait, Item(name))) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not both.broken
