"""Download file contents that a table names by id, as The Stack v2 does with Software Heritage's bucket."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from kernelquarry.pipeline.schema.errors import UserError

Opener: TypeAlias = Callable[[str], bytes]  # id -> content. Raises: Refused, Throttled, OSError

ATTEMPTS = 8
THREADS = 16  # concurrent requests: each mostly waits
_TIMEOUT_S = 60
_REFUSALS = (401, 403, 404, 410, 451)
_LONGEST_WAIT_S = 120.0
MAX_BYTES = 20_000_000  # of one content, decompressed


class Refused(Exception):
    """The archive permanently refuses this content."""


class Throttled(Exception):
    """The archive is temporarily unavailable: retry later."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class UrlOpener:
    """Downloads contents by HTTP, decompresses gzip, and checks contents whose id is their hash."""

    url: str  # contains {blob} as the place of the id

    def __call__(self, blob: str) -> bytes:
        name = urllib.parse.quote(blob, safe="", errors="replace")
        request = urllib.request.Request(self.url.format(blob=name))
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                packed = response.read(MAX_BYTES + 1)
                if response.length and len(packed) <= MAX_BYTES:
                    raise Throttled("the response is incomplete")
        except urllib.error.HTTPError as error:
            if error.code in _REFUSALS:
                raise Refused(f"HTTP {error.code}") from None
            raise Throttled(f"HTTP {error.code}", _seconds(error.headers.get("Retry-After"))) from None
        except (OSError, ValueError, http.client.HTTPException) as error:  # refused or lost connections
            raise Throttled(str(error)) from None
        return _checked(blob, _unpacked(packed))


def fetch(blobs: Sequence[str], opener: Opener, wait: Callable[[float], None] = time.sleep) -> list[bytes | Exception]:
    """Download contents; a content that cannot be downloaded is replaced by its `Refused` or `OSError`.

    Raises:
        UserError: the archive is still unavailable after all retries.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda blob: _fetch(blob, opener, wait), blobs))


def _fetch(blob: str, opener: Opener, wait: Callable[[float], None]) -> bytes | Exception:
    for attempt in range(ATTEMPTS):
        try:
            return opener(blob)
        except (Refused, OSError) as error:
            return error
        except Throttled as error:
            last = error
            if attempt + 1 < ATTEMPTS:
                wait(min(_LONGEST_WAIT_S, max(error.after_s, 2.0**attempt * random.uniform(0.5, 1.0))))
    raise UserError(f"blob {blob}: {last} in {ATTEMPTS} attempts: run again later, finished pieces are not read again")


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacking.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise gzip.BadGzipFile(str(error)) from None
    if not unpacking.eof:
        raise OSError("the content is incomplete, or too large")
    return unpacked


def _checked(blob: str, data: bytes) -> bytes:
    """Check the content if its id is a SHA-1 of 40 hexadecimal digits, plain or in git's form."""
    if len(blob) == 40 and not set(blob) - set("0123456789abcdef"):
        as_git = b"blob %d\0" % len(data)
        if blob not in (hashlib.sha1(data).hexdigest(), hashlib.sha1(as_git + data).hexdigest()):
            raise OSError("the content does not match its id")
    return data


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdigit() else 0.0
