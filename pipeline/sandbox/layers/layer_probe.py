"""Whether a layer works, found out by a process that takes it on and then tries what it forbids."""

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
    """The layer was taken on without an error, and did not forbid what it should."""


def run(check: Callable[..., None], *arguments: Any) -> str:
    """Run the check in a process of its own; "" if it went through, else why not."""
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
    """Expect the block to be refused."""
    try:
        yield
    except PermissionError:
        return
    raise NotEffective(f"did not forbid {what}")


def user(user_id: int, folder: str, code: str) -> None:
    """Another user can run this interpreter, read its packages and the guests' code, and get to the folder."""
    above = os.path.dirname(os.path.dirname(folder))  # what is below will belong to that user
    needed = sorted(filter(os.path.exists, {sys.executable, os.__file__, code, above, *sys.path}))
    linux.become_user(user_id)
    for path in needed:
        if not os.access(path, os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK):
            raise NotEffective(f"other users cannot read {path}")


def namespaces(folder: str) -> None:
    """Nothing of the machine's network and processes is seen, nothing outside the folder can be written."""
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
    """A file outside the allowed folder can neither be read nor written."""
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
    """No socket, no new session, and a change of a file's mode that changes nothing."""
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
    """The processes that a process starts are seen, and what they use."""
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        if child not in process_usage.children(os.getpid()) or not process_usage.proportional_kb(child):
            raise NotEffective("/proc does not show a process's children and its memory")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
