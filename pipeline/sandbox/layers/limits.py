"""What one guest may use, and the part of it that the kernel enforces by itself: see getrlimit(2)."""

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
    """What one guest, with all processes that it starts, may use."""

    wall_s: float = 60.0
    cpu_s: int = 60  # of each process
    memory_mb: int = 4096  # above what it has from the warm process
    file_mb: int = 256  # of its scratch folder where namespaces give it one in memory; else of one file
    output_mb: int = 512  # of its reply
    processes: int = 64  # where namespaces let the kernel count them: processes and threads; 1: no other, no thread


def apply(limits: Limits, data_kb: int, processes: int) -> None:
    """Limit this process and its descendants, for good.

    Args:
        data_kb: private memory that the process has from its parent, not counted as its own.
        processes: how many the kernel may count for the user before it refuses another.
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
