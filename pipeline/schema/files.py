"""Atomic files, on the local disk and in object stores: a file appears whole or not at all.

A path in an object store is a `upath.UPath`, which has the methods of a `Path`; `parse_path` makes both.
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
_PERMANENT = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def parse_path(name: str | Path) -> Path:
    """A local path, or one in a file system of fsspec: `gs://`, `s3://`, `hdfs://`, `memory://`."""
    if "://" not in str(name):
        return Path(name)
    from upath import UPath

    return cast(Path, UPath(name))


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become `path` when the block ends, and are discarded when it raises.

    The temporary name starts with a dot and ends in `.tmp`, so that a listing of shards never finds it. Object stores
    need no temporary name: they show an object only when it is complete.
    """
    if not is_local(path):
        stream = io.BytesIO()
        yield stream
        retry(lambda: path.write_bytes(stream.getvalue()))
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


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8, as `replace_file` does."""
    with replace_file(path) as stream:
        stream.write(text.encode())


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises: OSError, for an object store only after all retries failed."""
    return path.read_bytes() if is_local(path) else retry(path.read_bytes)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    if not is_local(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_tree(path: Path) -> None:
    """Delete a folder and its content, if it exists."""
    if is_local(path):
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.rmdir(recursive=True)  # type: ignore[call-arg]  # a UPath's


def retry(operation: Callable[[], T]) -> T:
    """Run an operation on an object store, with retries. Raises: OSError after the last one."""
    for pause in PAUSES_S:
        try:
            return operation()
        except _PERMANENT:
            raise
        except OSError as error:
            log.warning("%s: trying again in %g s", error, pause)
            time.sleep(pause)
    return operation()


def _sync_directory(directory: Path) -> None:
    """Flush a directory to disk: only then does a new name in it survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
