"""seccomp: a filter on the system calls of a process and its descendants.

It is an allow-list: calls off the list fail with EPERM, and calls newer than the list with ENOSYS, for which the C
library has fallbacks. Calls that change the mode, owner or times of a file succeed without effect: compilers and
`shutil` make them, and Landlock does not cover them. x86-64 only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct

from . import linux
from .syscalls import ALLOWED, LAST, NUMBERS, PRETENDED

_ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
_X32 = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06  # BPF: A = word at k; A &= k; return k
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45  # BPF: jump if A == k, A >= k, A & k
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data

_SOCKET, _BIND, _LISTEN = 41, 49, 50

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_FAIL = 0x00050000  # | errno

_NEW_NAMESPACE = 0x7E020000  # the CLONE_NEW* flags that clone(2) takes
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # put characters into a terminal
_PRCTL_REFUSED = (1, 4, 35, 36, 0x59616D61)  # PDEATHSIG, DUMPABLE, MM, CHILD_SUBREAPER, PTRACER
_FCNTL_REFUSED = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: a signal to any process, by way of a file

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, k


def supported() -> bool:
    return platform.machine() == "x86_64"


def build(own_pid: int | None = None, alone: bool = False, gpu: bool = False) -> bytes:
    """Assemble the filter.

    Args:
        own_pid: if given, the process can signal only itself: for machines where neither Landlock nor a PID
            namespace confines its signals.
        alone: the process can start no other process and no thread.
        gpu: it can create Unix sockets, bind and listen, which CUDA's driver needs. It cannot connect them, and
            without `MAKE_SOCK` of Landlock it binds no file.
    """
    actions: dict[int, list[Instruction]] = {number: [_return(_FAIL | errno.EPERM)] for number in range(LAST + 1)}
    actions |= {NUMBERS[name]: [_return(_ALLOW)] for name in ALLOWED}
    actions |= {NUMBERS[name]: [_return(_FAIL)] for name in PRETENDED}
    actions |= {NUMBERS[name]: block for name, block in _conditions(own_pid).items()}
    if gpu:
        actions |= {number: [_return(_ALLOW)] for number in (_BIND, _LISTEN)}
        actions[_SOCKET] = _only(0, (socket.AF_UNIX,))
    if alone:
        actions |= {NUMBERS[name]: [_return(_FAIL | errno.EPERM)] for name in ("clone", "fork", "vfork")}
    program = [
        (_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, _ARCHITECTURE), _return(_KILL),
        (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), _return(_KILL),
    ]  # fmt: skip
    first = 0
    for number in range(LAST + 1):
        if number == LAST or actions[number + 1] != actions[first]:
            block = actions[first]
            program += [(_AT_LEAST, len(block), 0, number + 1), *block]
            first = number + 1
    program.append(_return(_FAIL | errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _conditions(own_pid: int | None) -> dict[str, list[Instruction]]:
    """Calls that are allowed depending on an argument."""
    conditions = {
        "clone": [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACE), _return(_FAIL | errno.EPERM), _return(_ALLOW)],
        "clone3": [_return(_FAIL | errno.ENOSYS)],  # its flags are in memory, where a filter cannot look
        "openat2": [_return(_FAIL | errno.ENOSYS)],
        "open": _no_truncating_read(1),
        "openat": _no_truncating_read(2),
        "ioctl": _unless(1, (_TIOCSTI, _TIOCLINUX)),
        "prctl": _unless(0, _PRCTL_REFUSED),
        "fcntl": _unless(1, _FCNTL_REFUSED),
        "prlimit64": _only(0, (0,)),  # of itself
        "sched_setaffinity": _only(0, (0,)),
        # A datagram pair could send to any address.
        "socketpair": [_argument(1), (_AND, 0, 0, 0xF), *_only(1, (socket.SOCK_STREAM,))[1:]],
    }
    if own_pid is not None:
        conditions |= {
            "kill": _only(0, (0, own_pid)),
            "tgkill": _only(0, (own_pid,)),
            "tkill": _only(0, (own_pid,)),
            "rt_sigqueueinfo": _only(0, (own_pid,)),
            "rt_tgsigqueueinfo": _only(0, (own_pid,)),
        }
    return conditions


def _no_truncating_read(argument: int) -> list[Instruction]:
    """Forbid O_TRUNC with O_RDONLY, which empties a file that is opened for reading; Landlock covers it from ABI 3."""
    flags = [_argument(argument), (_AND, 0, 0, os.O_TRUNC | os.O_ACCMODE), (_EQUAL, 0, 1, os.O_TRUNC | os.O_RDONLY)]
    return [*flags, _return(_FAIL | errno.EPERM), _return(_ALLOW)]


def _return(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)


def _argument(index: int) -> Instruction:
    """Load the low word of an argument: the kernel, too, reads these arguments as 32-bit integers."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _unless(argument: int, refused: tuple[int, ...]) -> list[Instruction]:
    tests = [(_EQUAL, len(refused) - place, 0, value) for place, value in enumerate(refused)]
    return [_argument(argument), *tests, _return(_ALLOW), _return(_FAIL | errno.EPERM)]


def _only(argument: int, allowed: tuple[int, ...]) -> list[Instruction]:
    tests = [(_EQUAL, len(allowed) - place, 0, value) for place, value in enumerate(allowed)]
    return [_argument(argument), *tests, _return(_FAIL | errno.EPERM), _return(_ALLOW)]


def restrict(program: bytes) -> None:
    """Put the calling thread and its descendants under a filter. Cannot be undone; needs `no_new_privs`."""
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions, and where
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions)))
    linux.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header), what=f"seccomp of {os.getpid()}")
