"""Files appear whole or not at all, whatever kills the process that writes them, here and in object stores.

A path of an object store is a `upath.UPath`, which has the methods of a `Path`; `place` makes it.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

T = TypeVar("T")
log = logging.getLogger(__name__)

PAUSES_S = (0.1, 0.5, 2.0, 5.0)  # between attempts to reach an object store
_FINAL = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def place(name: str | Path) -> Path:
    """A path, local or of a file system that fsspec knows: `gs://`, `s3://`, `hdfs://`, `memory://`."""
    if "://" not in str(name):
        return Path(name)
    from upath import UPath

    return cast(Path, UPath(name))


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become `path` when the block ends, and vanish when it raises.

    The temporary name starts with a dot and ends in `.tmp`, so that a listing of shards never finds it. An object
    store has no use for one: it shows an object when all of it is there.
    """
    if not is_local(path):
        stream = io.BytesIO()
        yield stream
        reach(lambda: path.write_bytes(stream.getvalue()))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def read_bytes(path: Path) -> bytes:
    """Raises: OSError, of an object store only when it failed again and again."""
    return path.read_bytes() if is_local(path) else reach(path.read_bytes)


def digest(path: Path) -> str:
    """Sha256 of a file."""
    if not is_local(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_tree(path: Path) -> None:
    """Whatever of it is there."""
    if is_local(path):
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.rmdir(recursive=True)  # type: ignore[call-arg]  # a UPath's


def reach(operation: Callable[[], T]) -> T:
    """Try an operation on an object store again when the store fails it."""
    for pause in PAUSES_S:
        try:
            return operation()
        except _FINAL:
            raise
        except OSError as error:
            log.warning("%s: trying again in %g s", error, pause)
            time.sleep(pause)
    return operation()


def _sync_directory(directory: Path) -> None:
    """The new name survives a power cut only once the directory is on the disk too."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
