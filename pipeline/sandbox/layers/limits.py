"""Limits on the resources of one guest. `apply` sets those that the kernel enforces, see getrlimit(2)."""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass

_DESCRIPTORS = 256
_LOCKED_BYTES = 1 << 20
_CPU_GRACE_S = 2  # between SIGXCPU, which a process may ignore, and SIGKILL
_KIBIBYTE, _MEBIBYTE = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one guest and all processes that it starts."""

    wall_s: float = 60.0
    cpu_s: int = 60  # of each process
    memory_mb: int = 4096  # beyond the memory inherited from the warm process
    file_mb: int = 256  # of its scratch folder, where namespaces provide one in memory; otherwise of each file
    output_mb: int = 512  # of its reply
    processes: int = 64  # and threads, where namespaces let the kernel count those; 1: no other process and no thread


def apply(limits: Limits, data_kb: int, processes: int) -> None:
    """Limit this process and its descendants. Cannot be undone.

    Args:
        data_kb: private memory inherited from the parent process, which does not count.
        processes: number of the user's processes at which the kernel refuses another.
    """
    hard = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: max(limits.file_mb, limits.output_mb) * _MEBIBYTE,  # the reply is a file too
        resource.RLIMIT_NOFILE: _DESCRIPTORS,
        resource.RLIMIT_DATA: data_kb * _KIBIBYTE + limits.memory_mb * _MEBIBYTE,
        resource.RLIMIT_MEMLOCK: _LOCKED_BYTES,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NPROC: processes,
    }
    for name, value in hard.items():
        _lower(name, value, value)
    _lower(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + _CPU_GRACE_S)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # out of memory, the kernel takes a guest first


def _lower(name: int, soft: int, hard: int) -> None:
    _, present = resource.getrlimit(name)
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    resource.setrlimit(name, (soft, hard))
