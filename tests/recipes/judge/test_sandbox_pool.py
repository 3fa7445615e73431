"""Work for sandboxes goes to as many processes as keep the guests busy, and what fails there is told here."""

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
from kernelquarry.recipes.judge.sandbox_pool import Benches


@dataclass(frozen=True, slots=True)
class Asked:
    id: str


def where(asked: Asked, sandbox: Any) -> Outcome[tuple[str, int]]:
    if asked.id == "wrong":
        raise ValueError("of no use")
    if asked.id == "stop":
        raise UserError("nothing can be done")
    if asked.id == "dies":
        os._exit(1)
    return Kept((asked.id, os.getpid()))


ASKER = """
from tests.recipes.judge.test_sandbox_pool import Asked, Benches, SandboxSettings, where
benches = Benches(SandboxSettings(workers=8))
print(*{benches.run(where, Asked(str(place))).record[1] for place in range(8)}, flush=True)
input()
"""


def test_few_guests_are_of_this_process() -> None:
    with Benches(SandboxSettings(workers=6)) as benches:
        assert benches.run(where, Asked("a")) == Kept(("a", os.getpid()))
    with Benches(SandboxSettings(workers=7), alone=True) as benches:
        assert benches.run(where, Asked("a")) == Kept(("a", os.getpid()))


def test_many_are_of_several_and_what_fails_there_is_told() -> None:
    with Benches(SandboxSettings(workers=8)) as benches:
        found = [benches.run(where, Asked(str(place))) for place in range(8)]
        assert [each.record[0] for each in found if isinstance(each, Kept)] == list("01234567")
        assert len({each.record[1] for each in found if isinstance(each, Kept)} - {os.getpid()}) == 2
        wrong = benches.run(where, Asked("wrong"))
        assert isinstance(wrong, Errored) and wrong.error == "ValueError" and "of no use" in wrong.message
        with pytest.raises(UserError, match="nothing can be done"):
            benches.run(where, Asked("stop"))


def test_a_process_that_dies_costs_what_it_was_asked() -> None:
    with Benches(SandboxSettings(workers=8)) as benches:
        found = [benches.run(where, Asked("dies")), benches.run(where, Asked("b"))]
        assert isinstance(found[0], Errored) and isinstance(found[1], Kept)


def test_processes_end_with_the_one_that_asked() -> None:
    command = [sys.executable, "-c", ASKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        watched = [os.pidfd_open(int(each)) for each in asker.stdout.readline().split()]
        assert len(watched) == 2
        asker.kill()
    for each in watched:
        assert select.select([each], [], [], 60)[0], "it outlives the process that it works for"
        os.close(each)


def test_threads_are_served_at_the_same_time() -> None:
    with Benches(SandboxSettings(workers=2)) as benches:
        both = Barrier(2, timeout=60)

        def wait(asked: Asked, sandbox: Any) -> Outcome[int]:
            return Kept(both.wait())

        threads = [Thread(target=benches.run, args=(wait, Asked(name))) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not both.broken
