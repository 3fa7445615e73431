"""Hosts: several processes that judge the records of one worker."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kernelquarry.pipeline.runtime.hosts import Host, open_hosts
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome
from kernelquarry.pipeline.schema.records import Module
from tests.factories import make_module

MODULES = [replace(make_module(), id=module_id(str(n)), code=str(n)) for n in range(24)]
GUESTS = 7  # more than one host has


def with_process(module: Module, sandbox: Sandbox) -> Outcome[Module]:
    """The module, with the process that treated it."""
    match int(module.code):
        case 5:
            raise KeyError(module.code)
        case 6:
            raise UserError("a driver is missing: install it")
        case 7:
            os.kill(os.getpid(), signal.SIGKILL)
    return Kept(replace(module, name=f"P{os.getpid()}"))


@contextmanager
def hosts(scratch: Path) -> Iterator[Host]:
    with open_hosts(with_process, (), SandboxSettings(workers=GUESTS, scratch=str(scratch))) as host:
        host.start()
        yield host


def test_records_are_spread_over_several_processes(tmp_path: Path) -> None:
    with hosts(tmp_path) as host, ThreadPoolExecutor(GUESTS) as threads:
        outcomes = list(threads.map(host.run, MODULES[8:]))
    kept = [outcome.record for outcome in outcomes if isinstance(outcome, Kept)]
    assert [module.id for module in kept] == [module.id for module in MODULES[8:]]
    processes = {module.name for module in kept}
    assert len(processes) == 2
    assert f"P{os.getpid()}" not in processes
    assert not list(tmp_path.iterdir()), "hosts remove their files"


def test_exceptions_and_deaths_of_hosts_reach_the_caller(tmp_path: Path) -> None:
    with hosts(tmp_path) as host:
        outcome = host.run(MODULES[5])
        assert isinstance(outcome, Errored) and outcome.error == "KeyError"
        with pytest.raises(UserError, match="a driver is missing: install it"):
            host.run(MODULES[6])
        assert isinstance(host.run(MODULES[8]), Kept)
        with pytest.raises(UserError, match=f"worked on {MODULES[7].id}.*fewer --workers"):
            host.run(MODULES[7])  # kills its process


def test_few_guests_need_no_other_process() -> None:
    with open_hosts(with_process, (), SandboxSettings(workers=2)) as host:
        host.start()
        outcome = host.run(MODULES[8])
    assert isinstance(outcome, Kept) and outcome.record.name == f"P{os.getpid()}"
