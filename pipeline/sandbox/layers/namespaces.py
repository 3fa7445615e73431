"""Namespaces: a read-only file system, a network without devices, and a separate space of processes.

They need no privilege where the kernel lets users create them; most containers do not. A warm process enters its
namespaces once, so that all its guests are inside and die with it. Each guest adds a user namespace, in which the limit
on processes counts only its own, and a scratch folder in memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import signal
import struct
from typing import NoReturn

from . import linux

_FILES_PER_MB = 64  # of a scratch folder
_WARM_MB = 256  # for the files of a warm process
_GRACE_S = 10.0  # for the warm process to exit by itself after the host
_GPUS = ("/dev/nvidia*", "/dev/kfd", "/dev/dri")
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY = 1


def enter(folder: str, gpu: bool = False) -> None:
    """Move this process into new namespaces, in which only `folder` is writable, and GPUs are visible only if `gpu`.

    The caller continues in a new process, the first of its PID namespace; the old one waits for it and exits with its
    status.
    """
    user, group = os.geteuid(), os.getegid()
    linux.unshare(
        linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWPID
    )
    _map_identity(user, group)
    linux.make_mounts_private()
    if not gpu:
        _hide_gpus()
    _make_mounts_read_only()
    linux.mount_tmpfs(folder, _WARM_MB, _WARM_MB * _FILES_PER_MB)
    os.chdir(folder)
    pid = os.fork()
    if pid:
        _stand_by(pid)
    linux.die_with_parent(signal.SIGKILL)
    linux.mount_proc()


def enter_guest(scratch: str, size_mb: int) -> None:
    """Give this process a user namespace and a bounded file system in memory for its scratch folder."""
    user, group = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    _map_identity(user, group)
    linux.mount_tmpfs(scratch, size_mb, size_mb * _FILES_PER_MB)


def _map_identity(user: int, group: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _hide_gpus() -> None:
    """Hide the GPUs' device nodes: a driver that finds one starts a thread, after which forks fail."""
    for path in sorted(path for pattern in _GPUS for path in glob.glob(pattern)):
        if os.path.isdir(path):
            linux.mount_tmpfs(path, 1, 1)
        else:
            linux.mount_over(path, os.devnull)


def _make_mounts_read_only() -> None:
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0), 32)
    root = ctypes.create_string_buffer(b"/")
    linux.syscall(_MOUNT_SETATTR, _AT_FDCWD, root, _AT_RECURSIVE, attributes, 32, what="mount_setattr")


def _stand_by(pid: int) -> NoReturn:
    """Wait for the first process of the PID namespace and exit with its status; end it if the host is gone."""
    os.closerange(3, 1 << 16)  # the host must see the sockets close when the other process ends
    host = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    waited_s = 0.0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            os._exit(os.waitstatus_to_exitcode(status) & 0x7F)
        signal.sigtimedwait({signal.SIGCHLD}, 1.0)
        if os.getppid() != host:
            waited_s += 1.0
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if waited_s < _GRACE_S else signal.SIGKILL)
