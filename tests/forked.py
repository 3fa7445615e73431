"""Processes that are forks of one server with Beam and torch imported, in place of programs that import them each."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from types import ModuleType
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
# Not the command line, whose consoles look at the terminal when they are made, nor the client of the Hub, which reads
# its environment then.
_CONTEXT.set_forkserver_preload(
    [
        "pytest",  # the module that a test run starts with
        "kernelquarry.pipeline.run.build",
        "kernelquarry.pipeline.sandbox.executor.process",
    ]
)


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def run(function: Callable[..., None], *arguments: Any, timeout_s: float) -> Ended:
    """Call the function in a fork, and wait for its end."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = start(function, arguments, out.fileno(), err.fileno())
        process.join(timeout_s)
        status = process.exitcode
        process.kill()
        assert status is not None, f"{arguments}: still running after {timeout_s} s"
        out.seek(0)
        err.seek(0)
        return Ended(status, out.read(), err.read())


def run_code(code: str, *arguments: str, timeout_s: float) -> Ended:
    """Run `python -c CODE ARGUMENT...`."""
    return run(_execute, code, arguments, timeout_s=timeout_s)


def _execute(code: str, arguments: Sequence[str]) -> None:
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def start(function: Callable[..., None], arguments: Sequence[Any], stdout: int, stderr: int) -> BaseProcess:
    """Call the function in a fork of the server, with this process's environment and the file descriptors given."""
    process = _CONTEXT.Process(target=_call, args=(function, arguments, dict(os.environ), DupFd(stdout), DupFd(stderr)))
    process.start()
    return process


def _call(
    function: Callable[..., None], arguments: Sequence[Any], environment: dict[str, str], stdout: DupFd, stderr: DupFd
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for stream, given in ((1, stdout), (2, stderr)):
        os.dup2(given.detach(), stream)
    sys.modules["__main__"] = ModuleType("__main__")  # processes that this one starts import no pytest
    function(*arguments)


class Script:
    """The part of `subprocess.Popen` that `executor.service` uses, for the command `python SCRIPT FD ARGUMENT...`."""

    def __init__(self, command: Sequence[str], *, pass_fds: Sequence[int], stdout: int, **_: Any) -> None:
        _, script, fd, *arguments = command
        assert [int(fd)] == list(pass_fds)
        self._process = start(_run_script, (script, DupFd(int(fd)), arguments), stdout, stdout)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> None:
        self._process.join(timeout)

    def poll(self) -> int | None:
        return self._process.exitcode


def _run_script(script: str, control: DupFd, arguments: Sequence[str]) -> None:
    sys.argv = [script, str(control.detach()), *arguments]
    runpy.run_path(script, run_name="__main__")
