"""Open files by path or URL on any file system that fsspec supports: `hf://`, `https://`, `s3://`, local.

Errors of the Hub's client, object stores and the network become a `UserError` of one line.
"""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import fsspec
import httpx2
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import canonical, sha256

_VERSION = ("commit_hash", "blob_id", "lfs", "ETag", "etag", "sha256", "last_modified", "LastModified", "mtime")
_RETRY = "check the network and run again: finished pieces are not read again"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file, with a digest of its version."""

    url: str
    size: int  # bytes
    digest: str

    @property
    def is_local(self) -> bool:
        return "://" not in self.url

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file, decompressed by its suffix. Raises: UserError."""
        with convert_errors(self.url), fsspec.open(self.url, "rb", compression="infer") as stream:
            yield stream


def find_files(pattern: str) -> list[RemoteFile]:
    """List the files that a path, URL or pattern with `*` names, sorted. Raises: UserError: there are none."""
    with convert_errors(pattern):
        system, path = fsspec.core.url_to_fs(pattern)
        infos = system.glob(path, detail=True) if "*" in path else {path: system.info(path)}
    files = [
        RemoteFile(_url(system, name), int(info.get("size") or 0), _digest(info))
        for name, info in sorted(infos.items())
        if info.get("type") == "file"
    ]
    if not files:
        raise UserError(f"{pattern}: no such file: correct the path, URL or pattern")
    return files


@contextmanager
def convert_errors(place: str) -> Iterator[None]:
    """Convert errors of opening or reading `place` to a UserError."""
    try:
        yield
    except ImportError as error:  # the package for this kind of URL is not installed
        raise UserError(f"{place}: {_line(error)}") from None
    except (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError, httpx2.HTTPError) as error:
        raise UserError(f"{place}: {_explain(error, place)}") from error


def _explain(error: Exception, place: str) -> str:
    causes = list(_chain(error))
    status = next((cause.response.status_code for cause in causes if isinstance(cause, HfHubHTTPError)), 0)
    if any(isinstance(cause, GatedRepoError) for cause in causes):
        if not _has_token():
            return "needs a token: accept its terms on its page, then set HF_TOKEN to a token of that account"
        return "access was not granted to the account of HF_TOKEN: accept its terms on its page, or wait for its owner"
    if any(isinstance(cause, RepositoryNotFoundError) for cause in causes):
        return "no such repository, or it is private and no HF_TOKEN opens it"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if status in (401, 403):
        return "the Hub does not accept HF_TOKEN: set it to a token that can read"
    if any(isinstance(cause, OfflineModeIsEnabled) for cause in causes):
        return "the Hub is switched off by HF_HUB_OFFLINE: unset it"
    if any(isinstance(cause, httpx2.TransportError | ConnectionError | TimeoutError) for cause in causes):
        return f"cannot be reached ({_line(error)}): {_RETRY}"
    if isinstance(error, HfHubHTTPError):
        return f"the Hub returned an error ({_line(error)}): {_RETRY}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}"
    return f"cannot be read ({type(error).__name__}: {_line(error)}): fetch it again, or take it out of the corpus"


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]


def _url(system: Any, name: str) -> str:
    protocols = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    return name if "file" in protocols else str(system.unstrip_protocol(name))


def _digest(info: dict[str, Any]) -> str:
    """Digest of a file's size and version, found without a download."""
    return sha256(canonical([int(info.get("size") or 0), *(str(info[key]) for key in _VERSION if info.get(key))]))


def absolute(pattern: str, base: Path) -> str:
    """Make a local pattern absolute: patterns in a source file are relative to the file's folder."""
    return pattern if "://" in pattern else os.path.abspath(base / pattern)
