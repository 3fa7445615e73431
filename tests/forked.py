"""Python scripts in forks of one server that has torch imported, in place of processes that import torch each."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Sequence
from multiprocessing.reduction import DupFd
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", "torch", "kernelquarry.pipeline.sandbox.executor.process"])


class Forked:
    """The part of `subprocess.Popen` that `executor.service` uses, for the command `python SCRIPT FD ARGUMENT...`."""

    def __init__(self, command: Sequence[str], *, pass_fds: Sequence[int], stdout: int, **_: Any) -> None:
        _, script, fd, *arguments = command
        assert [int(fd)] == list(pass_fds)
        self._process = _CONTEXT.Process(target=_run, args=(script, DupFd(int(fd)), arguments, DupFd(stdout)))
        self._process.start()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> None:
        self._process.join(timeout)

    def poll(self) -> int | None:
        return self._process.exitcode


def _run(script: str, control: DupFd, arguments: Sequence[str], output: DupFd) -> None:
    log = output.detach()
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.argv = [script, str(control.detach()), *arguments]
    runpy.run_path(script, run_name="__main__")
