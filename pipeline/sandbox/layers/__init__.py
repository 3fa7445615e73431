"""The layers between a guest and the machine: each is probed, used where it works, and reported.

A layer counts as active only if a process under it was observed to fail at what the layer forbids; return codes and
version numbers do not count. `docs/explanation/sandbox.md` says what each layer covers. Host and guests import this
package.
"""

from __future__ import annotations

import glob
import os
import signal
import sys
from dataclasses import dataclass

from . import landlock, layer_probe, linux, namespaces, process_usage, seccomp
from . import limits as _limits

COVERS = {
    "user": "where the host is root: a guest is a user who owns nothing",
    "namespaces": "no network and no foreign processes; all but the scratch folder is read-only; nothing outlives it",
    "privileges": "no capabilities, and no program that gives any",
    "landlock": "files: read the interpreter and its packages, write the scratch folder; signals stay inside",
    "seccomp": "system calls: no sockets, sessions, tracing, mounts, keys, io_uring; no change of modes and owners",
    "limits": "CPU time, memory and descriptors of a process, size of files, number of processes",
    "watch": "memory and number of all processes of a guest together, looked at 20 times a second",
}
NAMES = tuple(COVERS)
OFF = "off: "  # prefix of the description of an inactive layer

_UNPRIVILEGED = 61_000  # first user id of guests where the host is root
_SPREAD = 4_000  # number of such user ids
_BACKSTOP = 8  # times a guest's limit on processes, where the kernel counts all processes of the user

_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FACTS = (
    "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/sys/vm",
    "/proc/sys/kernel", "/sys/devices/system", "/sys/kernel/mm",
)  # fmt: skip


_GPU_DEVICES, _GPU_FACTS = "/dev/nvidia*", "/proc/driver/nvidia"


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers that work on this machine, and the data with which a guest enters them."""

    report: dict[str, str]  # name of a layer -> its active parts, or the reason that it is off
    namespaces: bool
    landlock: int  # ABI; 0 for none
    seccomp: bytes  # filter; b"" for none
    signals_stay_inside: bool  # by Landlock or a PID namespace
    gpu: bool  # guests may use one
    readable: tuple[str, ...]  # folders of the interpreter, its packages, and the guests' code
    others: int  # other processes of the same user, where the kernel counts them with a guest's

    def confine(self, scratch: str, limits: _limits.Limits, data_kb: int) -> None:
        """Put the calling process, just forked and with one thread, under all layers, in its scratch folder.

        Cannot be undone. `data_kb`: private memory inherited from its parent, which does not count.
        """
        parent = os.getppid()
        linux.set_dumpable(True)  # its parent reads its usage in /proc
        if self.namespaces:
            namespaces.enter_guest(scratch, limits.file_mb)
        os.chdir(scratch)
        _limits.apply(limits, data_kb, self._most_processes(limits))
        linux.drop_privileges()
        linux.adopt_orphans()
        linux.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent died before it was watched
        if self.landlock:
            landlock.restrict(self.landlock, self._rules(scratch))
        if self.seccomp:
            alone, own_pid = limits.processes == 1, None if self.signals_stay_inside else os.getpid()
            seccomp.restrict(seccomp.build(own_pid, alone, self.gpu) if alone or own_pid else self.seccomp)

    def _most_processes(self, limits: _limits.Limits) -> int:
        """The kernel's limit on processes. Without a user namespace it only saves the watch from a fork bomb."""
        return limits.processes if self.namespaces else self.others + _BACKSTOP * limits.processes

    def _rules(self, scratch: str) -> list[tuple[str, int]]:
        own = f"/proc/{os.getpid()}"
        os.open(own, os.O_PATH | os.O_CLOEXEC)  # stays open: the rule ends when the kernel drops the directory entry
        rules = [
            *((path, landlock.READ_EXECUTE) for path in (*_PROGRAMS, *self.readable)),
            *((path, landlock.READ) for path in (*_FACTS, own)),
            *((path, landlock.READ_WRITE) for path in _DEVICES),
            (scratch, landlock.OWN),
        ]
        if self.gpu:
            devices = glob.glob(_GPU_DEVICES)
            rules += [*((path, landlock.READ_WRITE) for path in devices), (_GPU_FACTS, landlock.READ)]
            rules.append((own, landlock.REWRITE))  # the driver names its threads, and ends if it cannot
        return rules


def prepare(folder: str, code: str, gpu: bool = False) -> Layers:
    """Probe all layers, and enter those that the warm process itself can have. May continue in a new process.

    Args:
        folder: empty folder of the warm process; it and the guests write nowhere else.
        code: folder of the guests' code.
        gpu: the guests may use the GPUs; `docs/explanation/sandbox.md` says what each layer then permits.
    """
    user = _leave_root(folder, code)
    no_namespaces = layer_probe.run(layer_probe.namespaces, folder)
    if not no_namespaces:
        namespaces.enter(folder, gpu)
    abi, scoped, described = _landlock(folder)
    no_seccomp = layer_probe.run(layer_probe.seccomp, folder)
    linux.adopt_orphans()
    report = {
        "user": user,
        "namespaces": _described(no_namespaces, "user, mount, network, ipc, pid"),
        "privileges": _described(layer_probe.run(layer_probe.privileges), "no capabilities, no new ones"),
        "landlock": described,
        "seccomp": _described(no_seccomp, "allow-list"),
        "limits": "cpu, data, files, descriptors, processes",
        "watch": _described(layer_probe.run(layer_probe.watch), "memory, processes"),
    }
    linux.set_dumpable(False)  # no other process of the user may trace this one
    return Layers(
        report=report,
        namespaces=not no_namespaces,
        landlock=abi,
        seccomp=b"" if no_seccomp else seccomp.build(gpu=gpu),
        gpu=gpu,
        signals_stay_inside=scoped or not no_namespaces,
        others=process_usage.of_user(os.getuid()) if no_namespaces else 0,
        readable=tuple(sorted({sys.prefix, sys.base_prefix, code, *filter(os.path.exists, sys.path)})),
    )


def _described(reason: str, active: str) -> str:
    return f"{OFF}{reason}" if reason else active


def _leave_root(folder: str, code: str) -> str:
    if os.getuid() != 0:
        return f"{OFF}the host is not root"
    user = _UNPRIVILEGED + os.getppid() % _SPREAD  # one for all guests of a host
    reason = layer_probe.run(layer_probe.user, user, folder, code)
    if not reason:
        for path in (os.path.dirname(folder), folder):
            os.chown(path, user, user)
        linux.become_user(user)
    else:
        # Files are opened as root, without its capabilities. The kernel counts processes by the real user,
        # and would exempt root.
        os.setresuid(user, 0, 0)
    return _described(reason, "unprivileged")


def _landlock(folder: str) -> tuple[int, bool, str]:
    """Landlock's ABI, True if signals stay inside, and the description."""
    abi = landlock.abi()
    if abi < landlock.LEAST_ABI:
        return 0, False, f"{OFF}ABI {abi} refuses to move files" if abi else f"{OFF}the kernel has none"
    reason = layer_probe.run(layer_probe.landlock, folder, abi)
    if reason:
        return 0, False, f"{OFF}{reason}"
    scoped = not layer_probe.run(layer_probe.landlock_signals, abi)
    return abi, scoped, f"ABI {abi}" if scoped else f"ABI {abi}, signals not covered"
