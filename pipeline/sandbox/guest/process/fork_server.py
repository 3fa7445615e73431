"""The warm process, a fork server: it does the slow work once, and each job runs in a fork of it.

It runs no code of a job, and has one thread and no CUDA context. A job arrives on a socket with its file descriptors,
one of them a channel on which the host learns how the guest ended. A guest is killed with all its processes when it
ends, when the host closes its side of the channel, when it exceeds a limit, or when the host dies.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from kernelquarry.pipeline.sandbox import layers
from kernelquarry.pipeline.sandbox.jobs import KINDS
from kernelquarry.pipeline.sandbox.jobs.kind import GuestKind
from kernelquarry.pipeline.sandbox.layers import linux, process_usage
from kernelquarry.pipeline.sandbox.layers.limits import Limits

_WATCH_S = 0.05  # between two checks of the guests' limits
_IDLE_S = 1.0  # between two checks that the host is alive
_SWEEP_S = 5.0  # for all processes of a dead guest to die
_MESSAGE = 1 << 16


@dataclass(slots=True)
class _Guest:
    pid: int
    channel: socket.socket
    scratch: str
    limits: Limits
    killed_by: str = ""  # why we killed it: "host", "memory" or "processes"


def main(control: socket.socket) -> NoReturn:
    """Get warm, report it, serve until the host is gone, and remove all files. Works in the current folder."""
    folder = _Folder(Path.cwd())
    try:
        message = control.recv(_MESSAGE)
        config: dict[str, Any] = json.loads(message) if message else {"host_pid": 0}
        if os.getppid() == config["host_pid"]:
            zygote = _warm_up(control, KINDS[config["kind"]])
            zygote.serve()
            zygote.kill_all()
    finally:
        folder.remove()
    os._exit(0)


def _warm_up(control: socket.socket, kind: GuestKind[Any, Any]) -> Zygote:
    """Set up the layers, import what guests need, and report to the host."""
    confinement = layers.prepare(str(Path.cwd()), str(Path(__file__).resolve().parents[2]), kind.gpu)
    child = importlib.import_module(".worker", __package__)  # imports torch
    importlib.import_module("triton")
    kinds = {}
    for each in (other for other in KINDS.values() if other.process == kind.name):
        module = importlib.import_module(f"..jobs.{each.module}", __package__)
        if hasattr(module, "warm"):
            module.warm()
        kinds[each.name] = each, module.run
    threads = [Path("/proc/self/task", thread, "comm").read_text().strip() for thread in os.listdir("/proc/self/task")]
    threads = [name for name in threads if not name.startswith("cuda")]  # threads of a GPU's driver
    if len(threads) != 1:
        raise RuntimeError(f"the warm process has several threads, {', '.join(threads)}: a fork of it could hang")
    gc.collect()
    gc.freeze()  # a collection in a guest would write to, and so copy, every page that holds an object
    gc.set_threshold(100_000, 50, 100)  # guests are short-lived: an eighth of a lowering went into collections
    linux.use_huge_pages()
    data_kb = process_usage.data_kb(os.getpid())
    zygote = Zygote(control, functools.partial(child.main, kinds, confinement, data_kb))
    with contextlib.suppress(BrokenPipeError):  # then the first look at the socket ends it
        control.send(json.dumps({"ready": confinement.report}).encode())
    return zygote


class _Folder:
    """The folder of this process and its guests, held open from before the mounts became read-only."""

    def __init__(self, path: Path) -> None:
        self._path, self._name, self._root = str(path), path.name, path.parent.name
        self._in = os.open(path.parent, os.O_PATH)
        self._above = os.open(path.parent.parent, os.O_PATH)

    def remove(self) -> None:
        """Remove it, and the folder of the whole sandbox if it was the last in there."""
        with contextlib.suppress(OSError):  # without namespaces nothing is mounted there
            linux.unmount(self._path)
        shutil.rmtree(self._name, ignore_errors=True, dir_fd=self._in)
        with contextlib.suppress(OSError):
            os.rmdir(self._root, dir_fd=self._above)


class Zygote:
    """Starts guests, watches them, and reports to the host how each ended."""

    def __init__(self, control: socket.socket, main: Callable[..., NoReturn]) -> None:
        """`main(job, request, reply, output)` is what a forked process runs."""
        self._control = control
        self._main = main
        self._parent = os.getppid()
        self._guests: dict[int, _Guest] = {}
        self._baseline_kb = process_usage.private_kb(os.getpid())
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._wakeup, select.POLLIN)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

    def serve(self) -> None:
        """Start, watch and reap guests until the host closes the control socket or dies."""
        next_watch = 0.0
        while True:
            ready = {fd for fd, _ in self._poll.poll(1000 * (_WATCH_S if self._guests else _IDLE_S))}
            if os.getppid() != self._parent:
                return
            if self._wakeup in ready and signal.SIGTERM in os.read(self._wakeup, 4096):
                return
            self._reap()
            for guest in list(self._guests.values()):
                if guest.channel.fileno() in ready:
                    self._kill(guest, "host")
            if time.monotonic() >= next_watch:
                next_watch = time.monotonic() + _WATCH_S
                self._watch()
            if self._control.fileno() in ready and not self._start():
                return

    def _start(self) -> bool:
        """Fork a guest for the job that waits in the control socket; False if the host is gone."""
        message, fds, _, _ = socket.recv_fds(self._control, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        channel, files = socket.socket(fileno=fds[0]), fds[1:]
        job = json.loads(message)
        try:
            os.mkdir(job["scratch"], 0o700)
            pid = os.fork()
        except OSError as error:
            _answer(channel, {"failed": str(error)})
        else:
            if pid == 0:
                self._main(job, *files)
            self._guests[pid] = _Guest(pid, channel, job["scratch"], Limits(**job["limits"]))
            self._poll.register(channel, select.POLLIN)
        for fd in files:
            os.close(fd)
        return True

    def _kill(self, guest: _Guest, why: str) -> None:
        if not guest.killed_by:
            guest.killed_by = why
            self._poll.unregister(guest.channel)
        _signal_group(guest.pid)

    def _watch(self) -> None:
        for guest in self._guests.values():
            if guest.killed_by:
                continue
            pids = process_usage.tree(guest.pid, guest.limits.processes)
            if len(pids) > guest.limits.processes:
                self._kill(guest, "processes")
            elif process_usage.exceeds(pids, guest.limits.memory_mb * 1024, self._baseline_kb):
                self._kill(guest, "memory")

    def _reap(self) -> None:
        """Report the guests that have ended, each after the last process that it started is dead."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            guest = self._guests.pop(pid, None)
            if guest is None:
                continue  # an orphan of a guest
            if not guest.killed_by:
                self._poll.unregister(guest.channel)
            self._sweep(pid)
            with contextlib.suppress(OSError):  # not empty: the host removes it, this process has no time
                os.rmdir(guest.scratch)
            cpu_s = used.ru_utime + used.ru_stime
            ended = {"status": status, "killed_by": guest.killed_by, "cpu_s": cpu_s, "peak_kb": used.ru_maxrss}
            _answer(guest.channel, ended)

    def _sweep(self, group: int) -> None:
        """Kill the processes that a dead guest left. Its orphans are children of this process in any session."""
        deadline = time.monotonic() + _SWEEP_S
        while time.monotonic() < deadline:
            alive = _signal_group(group)
            strays = process_usage.children(os.getpid()) - self._guests.keys()
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            if not alive and not strays:
                return
            time.sleep(0.005)

    def kill_all(self) -> None:
        for guest in self._guests.values():
            self._kill(guest, "host")
        guests, self._guests = self._guests, {}
        for pid in guests:
            self._sweep(pid)


def _answer(channel: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the host may have hung up
        channel.send(json.dumps(message).encode())
    channel.close()


def _signal_group(group: int) -> bool:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
