"""Attempts at acts that a guest must not be able to do. The job `script` runs this file as it would run mined code."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from typing import Any


def main(arguments: dict[str, Any], tensors: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Try all acts.

    Args:
        arguments: `outside`, a file of the host, and `host`, its process.

    Returns:
        For each act "allowed", or the name of the error.
    """
    outside, host = arguments["outside"], arguments["host"]
    acts: dict[str, Callable[[], Any]] = {
        "read a file of the host's": lambda: _open(outside, os.O_RDONLY),
        "write a file of the host's": lambda: _open(outside, os.O_WRONLY | os.O_APPEND),
        "create a file outside": lambda: _open(f"{outside}.new", os.O_WRONLY | os.O_CREAT),
        "delete a file of the host's": lambda: os.unlink(outside),
        "list the folder of users": lambda: os.listdir("/home"),
        "read the passwords' file": lambda: _open("/etc/shadow", os.O_RDONLY),
        "write to shared memory": lambda: _open("/dev/shm/guest", os.O_WRONLY | os.O_CREAT),
        "open a TCP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
        "open a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "open a Unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
        "open a socket to the hypervisor": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close(),
        "signal the host": lambda: os.kill(host, 0),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
        "read its parent's memory": lambda: _open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
        "read its parent's environment": lambda: _open(f"/proc/{os.getppid()}/environ", os.O_RDONLY),
        "leave its session": os.setsid,
        "run a program that it wrote": _run_own_program,
        "become root": lambda: os.setuid(0),
    }
    return {act: _outcome(attempt) for act, attempt in acts.items()}, {}


def _outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "allowed"


def _open(path: str, flags: int) -> None:
    os.close(os.open(path, flags, 0o600))


def _run_own_program() -> None:
    with open("program", "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod("program", 0o700)
    pid = os.posix_spawn("./program", ["program"], {})
    os.waitpid(pid, 0)
