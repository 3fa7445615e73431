"""The host's side of one warm process: starts it, sends it jobs, and ends it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from . import ending
from .exchange import Exchange, SandboxError
from .job import Job, Report
from .jobs.kind import GuestKind, Reply, Request
from .layers import OFF
from .settings import SandboxSettings

_BOOT = Path(__file__).resolve().parent / "guest" / "process" / "bootstrap.py"
_START_S = 180.0  # for importing torch from a cold disk
_END_S = 10.0
_MESSAGE = 1 << 16  # bytes
_LOG = 2000  # bytes

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "guest",
    "LOGNAME": "guest",
    "PYTHONHASHSEED": "0",  # sets have the same order in every run
    "PYTHONUNBUFFERED": "1",  # output before a crash is kept
    "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "1",  # also where a guest requests two threads, to try code that depends on their number
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # a query for GPUs must not start CUDA, after which forks fail
    # Memory of tensors is reused, and in huge pages: page faults took most of the CPU time of long trials.
    # 32 MiB is the largest threshold that mallopt(3) allows.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=4294967295",
}


class WarmProcess:
    """One warm process, from which guests are forked. Thread-safe."""

    def __init__(self, kind: GuestKind[Any, Any], folder: Path, settings: SandboxSettings) -> None:
        """Start the process and wait until it is ready.

        Raises:
            SandboxError: the process did not start, or a layer that the settings require is missing.
        """
        self.kind = kind
        self._folder = folder
        folder.mkdir(parents=True)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = os.memfd_create("log")
        own = dict.fromkeys(("HOME", "TMPDIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR"), str(folder))
        try:
            with theirs:
                self._process = subprocess.Popen(
                    # -P, -s: no imports from the current folder or the user's packages.
                    [settings.python, "-P", "-s", "-W", "ignore", str(_BOOT), str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env={**_ENVIRONMENT, **kind.environment, **own},
                    cwd=folder,
                    start_new_session=True,  # Ctrl-C must not reach it
                )
            self.layers = self._greet(log)
            self._require(settings.require)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(log)

    def _greet(self, log: int) -> dict[str, str]:
        """Send the configuration and wait until the process is ready. Returns its layers of isolation."""
        config = {"kind": self.kind.name, "host_pid": os.getpid()}
        self._control.settimeout(_START_S)
        try:
            self._control.send(json.dumps(config).encode())
            message = self._control.recv(_MESSAGE)
        except OSError as error:
            raise SandboxError(f"the warm process for {self.kind.name!r} did not start: {error}") from error
        if not message:
            text = os.pread(log, _LOG, max(0, os.fstat(log).st_size - _LOG)).decode(errors="replace")
            raise SandboxError(f"the warm process for {self.kind.name!r} did not start: {text}")
        self._control.settimeout(None)
        answer: dict[str, Any] = json.loads(message)
        return dict(answer["ready"])

    def _require(self, names: tuple[str, ...]) -> None:
        missing = [f"{name} is {self.layers[name]}" for name in names if self.layers[name].startswith(OFF)]
        if missing:
            raise SandboxError(f"layers that the configuration requires are missing: {'; '.join(missing)}")

    def run(self, job: Job[Request, Reply]) -> Report[Reply]:
        """Run one job in a fresh guest.

        Raises:
            WarmProcessDied: the job's outcome is unknown.
            SandboxError: no guest could be started.
            ProtocolError: the request is not strict JSON, or a tensor has no plain memory.
        """
        with Exchange(job) as exchange:
            scratch = str(self._folder / exchange.nonce.hex())
            try:
                ended, output, wall_s = exchange.run(self._control, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            return ending.report(job, ended, exchange.reply, exchange.nonce, scratch, output, wall_s)

    def close(self) -> None:
        """End the process and its guests, and remove their files."""
        self._control.close()
        if hasattr(self, "_process"):
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_END_S)
        shutil.rmtree(self._folder, ignore_errors=True)
