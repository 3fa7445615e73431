"""The warm process: everything that is slow is done once, then each job gets a fork of it.

It never runs code that it was given, has one thread and no CUDA context, and talks to the host over a
socket: a job comes in with its file descriptors, one of them a channel on which the host learns how the
guest ended. The guest is killed, with all that it started, when it ends, when the host closes its side
of that channel, when it uses too much, or when the host is gone.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

from . import child, usage

_WATCH_S = 0.05  # between two looks at what the guests use
_IDLE_S = 1.0  # between two looks at whether the host is still there
_SWEEPS = 400  # attempts to find a guest's processes all dead, 5 ms apart
_MESSAGE = 1 << 16


@dataclass(slots=True)
class _Guest:
    pid: int
    channel: socket.socket
    memory_kb: int
    processes: int
    ended_by: str = ""  # why we killed it: "host", "memory" or "processes"


def main(control: socket.socket) -> None:
    """Get warm, say so, serve until the host is gone. Does not return."""
    config = json.loads(control.recv(_MESSAGE))
    module = importlib.import_module(f".{config['kind']}", __package__)
    if hasattr(module, "warm"):
        module.warm()
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"the warm process has {threads} threads: a fork of it could hang")
    gc.collect()
    gc.freeze()  # a collection in a guest would write to, and so copy, every page that holds an object
    control.send(json.dumps({"ready": {}}).encode())
    zygote = Zygote(control, module, config)
    zygote.serve()
    zygote.end()


class Zygote:
    def __init__(self, control: socket.socket, module: Any, config: dict[str, Any]) -> None:
        self._control = control
        self._module = module
        self._folder: str = config["folder"]
        self._host_pid: int = config["host_pid"]
        self._guests: dict[int, _Guest] = {}
        self._baseline_kb = usage.private_kb(os.getpid())
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._wakeup, select.POLLIN)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Start, watch and reap guests until the host closes the control socket or dies."""
        next_watch = 0.0
        while True:
            ready = {fd for fd, _ in self._poll.poll(1000 * (_WATCH_S if self._guests else _IDLE_S))}
            if os.getppid() != self._host_pid:
                return
            if self._wakeup in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wakeup, 4096)
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
        """Fork a guest for the job that waits on the control socket; False if the host is gone."""
        message, ancillary, _, _ = self._control.recvmsg(_MESSAGE, socket.CMSG_SPACE(4 * array.array("i").itemsize))
        if not message:
            return False
        fds = array.array("i")
        for _, _, data in ancillary:
            fds.frombytes(data)
        channel_fd, request, reply, output = fds
        job = json.loads(message)
        pid = os.fork()
        if pid == 0:
            child.main(self._module, job, request, reply, output)
        for fd in (request, reply, output):
            os.close(fd)
        channel = socket.socket(fileno=channel_fd)
        limits = job["limits"]
        self._guests[pid] = _Guest(pid, channel, limits["memory_mb"] * 1024, limits["processes"])
        self._poll.register(channel, select.POLLIN)
        return True

    def _kill(self, guest: _Guest, why: str) -> None:
        if not guest.ended_by:
            guest.ended_by = why
            self._poll.unregister(guest.channel)
        _signal_group(guest.pid)

    def _watch(self) -> None:
        for guest in self._guests.values():
            if guest.ended_by:
                continue
            pids = usage.tree(guest.pid)
            if len(pids) > guest.processes:
                self._kill(guest, "processes")
            elif usage.exceeds(pids, guest.memory_kb, self._baseline_kb):
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
            if not guest.ended_by:
                self._poll.unregister(guest.channel)
            self._sweep(pid)
            ended = {
                "status": status,
                "by": guest.ended_by,
                "cpu_s": used.ru_utime + used.ru_stime,
                "peak_kb": used.ru_maxrss,
            }
            with contextlib.suppress(OSError):  # the host may have hung up
                guest.channel.send(json.dumps(ended).encode())
            guest.channel.close()

    def _sweep(self, group: int) -> None:
        """Kill what a dead guest left. Its orphans are children of this process, whatever session they are in."""
        for _ in range(_SWEEPS):
            alive = _signal_group(group)
            strays = usage.children(os.getpid()) - self._guests.keys()
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            if not alive and not strays:
                return
            time.sleep(0.005)

    def end(self) -> None:
        """Kill all guests, remove their files, exit."""
        for guest in self._guests.values():
            self._kill(guest, "host")
        guests, self._guests = self._guests, {}
        for pid in guests:
            self._sweep(pid)
        shutil.rmtree(self._folder, ignore_errors=True)
        sys.stderr.flush()
        os._exit(0)


def _signal_group(group: int) -> bool:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
