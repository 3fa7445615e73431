"""Cache of compiled kernels, shared by candidates and by runs: one file for each kernel in a folder of the host.

Only the host reads and writes it, and only with the replies of the job `codegen`. That job gets the text of a kernel
from the host and runs no code of a candidate. An entry is filed under the text that the host sent, so a candidate can
at most add a correct binary of a kernel of its own, and no candidate can change the binary of another one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.ids import canonical, sha256

from .jobs.codegen import Compiled, KernelSource

log = logging.getLogger(__name__)

_FORMAT = 1
_MAX_BYTES = 2 << 30
_KEPT = 0.8  # share of the limit that remains after the oldest entries were removed
_PUTS = 1000  # between two looks at the size


@dataclass(frozen=True, slots=True)
class Binary:
    """A compiled kernel."""

    warps: int
    shared: int  # bytes of dynamic shared memory
    scratch: tuple[int, int]  # bytes of global memory for each block: for the kernel, for its profile
    data: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class KernelCache:
    """Thread-safe; several processes may share the folder. Without a folder it is empty and stays empty."""

    def __init__(self, folder: Path | None, max_bytes: int = _MAX_BYTES) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        self._lock, self._puts = threading.Lock(), 0

    def get(self, source: KernelSource, triton: str) -> Binary | None:
        """The binary that this version of Triton made of the source, if it is there and undamaged."""
        if self._folder is None:
            return None
        try:
            header, _, data = self._path(source, triton).read_bytes().partition(b"\n")
            fields = json.loads(header)
            found = Binary(fields["warps"], fields["shared"], (fields["scratch"][0], fields["scratch"][1]), data)
            return found if found.digest == fields["sha256"] else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            log.warning("%s: damaged entry: compiling its kernel again (%s)", self._path(source, triton), error)
            return None

    def put(self, source: KernelSource, triton: str, kernel: Compiled, data: bytes) -> Binary:
        """Keep what the job `codegen` made of the source."""
        made = Binary(kernel.warps, kernel.shared, kernel.scratch, data)
        if self._folder is None:
            return made
        header = {"warps": made.warps, "shared": made.shared, "scratch": made.scratch, "sha256": made.digest}
        try:
            _write(self._path(source, triton), json.dumps(header).encode() + b"\n" + data)
        except OSError as error:
            log.warning("%s: cannot be written: compiled kernels are not kept (%s)", self._folder, error)
            return made
        with self._lock:
            self._puts += 1
            look = self._puts % _PUTS == 1
        if look:
            self.shrink()
        return made

    def shrink(self) -> None:
        """Remove the oldest entries if all together exceed the limit."""
        entries = []
        for path in self._folder.glob("*/*") if self._folder is not None else ():
            try:
                found = path.stat()
            except FileNotFoundError:  # another process removed or renamed it
                continue
            entries.append((found.st_mtime, found.st_size, path))
        size = sum(each for _, each, _ in entries)
        if size <= self._max_bytes:
            return
        for _, each, path in sorted(entries):
            path.unlink(missing_ok=True)
            size -= each
            if size <= _KEPT * self._max_bytes:
                return

    def _path(self, source: KernelSource, triton: str) -> Path:
        assert self._folder is not None
        key = sha256(canonical([_FORMAT, triton, asdict(source)]))
        return self._folder / key[:2] / key


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. An entry that a power cut damages is a cache miss, so nothing is flushed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
