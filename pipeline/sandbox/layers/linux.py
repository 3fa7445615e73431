"""System calls that the standard library lacks. Imports the standard library only: it runs before torch is imported."""

from __future__ import annotations

import ctypes
import os
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000

_MNT_DETACH = 2

_MADV_COLLAPSE = 25
_HUGE_PAGE = 2 << 20

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char], what: str) -> int:
    """Make a system call by number. Raises OSError that names `what`."""
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_LIBC.syscall(ctypes.c_long(number), *converted), what)


def prctl(option: int, *arguments: int, what: str = "prctl") -> int:
    padded = [*arguments, *[0] * (4 - len(arguments))]  # the kernel refuses some options if the rest is not zero
    return _checked(_LIBC.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)), what)


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send the signal when the thread that forked this process ends."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def set_dumpable(dumpable: bool) -> None:
    """Allow or forbid processes of the same user to trace this one and to read its memory through /proc."""
    prctl(_PR_SET_DUMPABLE, int(dumpable))


def become_user(user: int) -> None:
    """Change from root to a user, with only the group of the same number. Cannot be undone."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    set_dumpable(True)  # the change of user reset it


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def unshare(flags: int) -> None:
    _checked(_LIBC.unshare(ctypes.c_int(flags)), "unshare")


def drop_privileges() -> None:
    """Drop all capabilities, also those through exec and set-user-id programs. Cannot be undone."""
    for capability in range(_MOST_CAPABILITIES):
        if _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
            break  # the last capability, or this process may not change its bounding set
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    _checked(_LIBC.capset(header, ctypes.create_string_buffer(24)), "capset")
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def make_mounts_private() -> None:
    """Keep this namespace's mounts to itself."""
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, b"")


def mount_proc() -> None:
    _mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, b"")


def mount_tmpfs(folder: str, size_mb: int, files: int) -> None:
    """Mount a file system in memory, bounded in bytes and files. It ends with this mount namespace."""
    options = f"size={size_mb}m,nr_inodes={files},mode=0700"
    _mount(b"tmpfs", os.fsencode(folder), b"tmpfs", _MS_NOSUID | _MS_NODEV, options.encode())


def mount_over(path: str, source: str) -> None:
    """Mount `source` over `path`, which must exist and be of the same kind."""
    _mount(os.fsencode(source), os.fsencode(path), None, _MS_BIND, b"")


def unmount(folder: str) -> None:
    """Remove a mount from this namespace, even while it is in use."""
    _checked(_LIBC.umount2(os.fsencode(folder), _MNT_DETACH), f"unmount {folder}")


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes) -> None:
    _checked(_LIBC.mount(source, target, kind, ctypes.c_ulong(flags), options), f"mount {os.fsdecode(target)}")


def use_huge_pages() -> None:
    """Move this process's memory to huge pages, from Linux 6.1 on: a fork is then about five times faster.

    A fork copies an entry for each page. A guest that writes still copies only 4 KiB.
    """
    for start, end in _anonymous():
        start, end = -(-start // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
        if start < end:
            _LIBC.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_COLLAPSE)  # else it stays


def _anonymous() -> list[tuple[int, int]]:
    """First address and end of each piece of private writable memory that no file backs."""
    with open("/proc/self/maps") as file:
        mappings = [line.split() for line in file]
    spans = [fields[0].split("-") for fields in mappings if fields[1] == "rw-p" and fields[4] == "0"]
    return [(int(start, 16), int(end, 16)) for start, end in spans]
