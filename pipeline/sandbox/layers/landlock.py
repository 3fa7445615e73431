"""Landlock: limits the files that a process and its descendants can open, and the processes that they can signal.

Needs no privilege. Covers opening, creating, removing and renaming files. Does not cover `chmod`, `utime` and their
like, `stat`, and files that are already open. From ABI 4 it refuses TCP, from ABI 6 signals and abstract Unix sockets
to processes outside. See landlock(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from stat import S_ISDIR

from . import linux

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

(
    _EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR,
    _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER, _TRUNCATE, _IOCTL_DEV,
) = (1 << bit for bit in range(16))  # fmt: skip
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # number of rights that an ABI knows; from 5 on, all 16
_RIGHTS_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = _READ_FILE | _READ_DIR
READ_EXECUTE = READ | _EXECUTE
READ_WRITE = READ | _WRITE_FILE | _IOCTL_DEV
REWRITE = READ | _WRITE_FILE | _TRUNCATE
# In its scratch folder a guest may do anything except run programs and create devices and sockets.
OWN = ((1 << 16) - 1) & ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK | _MAKE_SOCK)

LEAST_ABI = 2  # the first that can permit moving a file between folders, as caches do
_ABI_NETWORK = 4
_ABI_SCOPES = 6


def abi() -> int:
    """Landlock's version in this kernel; 0 if it has none."""
    try:
        return linux.syscall(_CREATE_RULESET, 0, 0, _CREATE_RULESET_VERSION, what="landlock")
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def restrict(version: int, rules: Iterable[tuple[str, int]]) -> None:
    """Confine the calling thread to the given paths and the rights at and below each. Cannot be undone.

    Paths that do not exist are skipped. `no_new_privs` must be set.
    """
    handled = (1 << _RIGHTS.get(version, 16)) - 1
    attributes = struct.pack("=QQQ", handled, 3 if version >= _ABI_NETWORK else 0, 3 if version >= _ABI_SCOPES else 0)
    size = 24 if version >= _ABI_SCOPES else 16 if version >= _ABI_NETWORK else 8
    ruleset = linux.syscall(
        _CREATE_RULESET, ctypes.create_string_buffer(attributes, 24), size, 0, what="landlock_create_ruleset"
    )
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        linux.syscall(_RESTRICT_SELF, ruleset, 0, what="landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not S_ISDIR(os.fstat(fd).st_mode):
            rights &= _RIGHTS_OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd), 12)
        linux.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0, what="landlock_add_rule")
    finally:
        os.close(fd)
