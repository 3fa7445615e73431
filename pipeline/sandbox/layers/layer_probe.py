"""Probes of the layers: a process enters a layer and then tries what the layer forbids."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from . import landlock as _landlock
from . import linux, process_usage
from . import namespaces as _namespaces
from . import seccomp as _seccomp

_MOST = 4096  # bytes of a reason


class NotEffective(Exception):
    """A layer was entered without an error, but did not forbid an act that it should."""


def run(check: Callable[..., None], *arguments: Any) -> str:
    """Run the check in a new process. Returns "" if it passed, otherwise the reason that it failed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        reason = "failed"
        try:
            os.close(reader)
            check(*arguments)
            reason = ""
        except (OSError, NotEffective) as error:
            reason = str(error)
        finally:
            os.write(writer, reason.encode()[:_MOST] or b"\0")
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        answer = file.read().decode(errors="replace")
    os.waitpid(pid, 0)
    return "" if answer == "\0" else answer or "the process that tried it died"


@contextlib.contextmanager
def _forbidden(what: str) -> Any:
    """Raises `NotEffective` unless the block raises a permission error."""
    try:
        yield
    except PermissionError:
        return
    raise NotEffective(f"did not forbid {what}")


def user(user_id: int, folder: str, code: str) -> None:
    """Check that another user can run the interpreter, read its packages and the guests' code, and reach the folder."""
    above = os.path.dirname(os.path.dirname(folder))  # what is below will belong to that user
    needed = sorted(filter(os.path.exists, {sys.executable, os.__file__, code, above, *sys.path}))
    linux.become_user(user_id)
    for path in needed:
        if not os.access(path, os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK):
            raise NotEffective(f"other users cannot read {path}")


def namespaces(folder: str) -> None:
    """Check that the machine's network and processes are invisible, and that only the folder is writable."""
    _namespaces.enter(folder)
    if os.getpid() != 1 or [name for name in os.listdir("/proc") if name.isdigit()] != ["1"]:
        raise NotEffective("did not hide other processes")
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        raise NotEffective("did not hide the network")
    if os.access(os.path.dirname(folder), os.W_OK):
        raise NotEffective("left files outside writable")
    os.mkdir("inside")
    _namespaces.enter_guest("inside", size_mb=1)


def privileges() -> None:
    linux.drop_privileges()
    with _forbidden("a change of the host's name"):
        socket.sethostname(socket.gethostname())


def landlock(folder: str, abi: int) -> None:
    """Check that a file outside of the allowed folder can neither be read nor written."""
    inside, outside = os.path.join(folder, "inside"), os.path.join(folder, "outside")
    os.makedirs(inside, exist_ok=True)
    with open(outside, "w") as file:
        file.write("outside")
    linux.drop_privileges()
    _landlock.restrict(abi, [(inside, _landlock.OWN)])
    with open(os.path.join(inside, "file"), "w") as file:
        file.write("inside")
    with _forbidden("reading a file"):
        os.close(os.open(outside, os.O_RDONLY))
    with _forbidden("writing a file"):
        os.close(os.open(outside, os.O_WRONLY))


def landlock_signals(abi: int) -> None:
    linux.drop_privileges()
    _landlock.restrict(abi, [])
    with _forbidden("a signal to its parent"):
        os.kill(os.getppid(), 0)


def seccomp(folder: str) -> None:
    """Check that sockets and new sessions are refused, and that a change of a file's mode has no effect."""
    if not _seccomp.supported():
        raise NotEffective(f"there is no filter for {os.uname().machine}")
    linux.drop_privileges()
    _seccomp.restrict(_seccomp.build())
    with _forbidden("a socket"):
        socket.socket()
    with _forbidden("a session of its own"):
        os.setsid()
    before = os.stat(folder).st_mode
    os.chmod(folder, 0o777)
    if os.stat(folder).st_mode != before:
        raise NotEffective("did not forbid a change of mode")


def watch() -> None:
    """Check that /proc shows a process's children and their memory."""
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        if child not in process_usage.children(os.getpid()) or not process_usage.proportional_kb(child):
            raise NotEffective("/proc does not show a process's children and its memory")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
