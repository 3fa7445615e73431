"""Contents that a table names by id, such as those that The Stack v2 leaves in Software Heritage's bucket."""

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
THREADS = 16  # requests at once: each waits far longer than it works
_TIMEOUT_S = 60
_REFUSALS = (401, 403, 404, 410, 451)
_LONGEST_WAIT_S = 120.0
MAX_BYTES = 20_000_000  # of one content, unpacked


class Refused(Exception):
    """The archive does not give this content out, and will not."""


class Throttled(Exception):
    """The archive asks to come back later."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class UrlOpener:
    """Gets contents by HTTP, unpacks those that are gzip, and checks those whose id is their hash."""

    url: str  # with {blob} where the id goes

    def __call__(self, blob: str) -> bytes:
        name = urllib.parse.quote(blob, safe="", errors="replace")
        request = urllib.request.Request(self.url.format(blob=name))
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                packed = answer.read(MAX_BYTES + 1)
                if answer.length and len(packed) <= MAX_BYTES:
                    raise Throttled("the answer ends in the middle")
        except urllib.error.HTTPError as error:
            if error.code in _REFUSALS:
                raise Refused(f"HTTP {error.code}") from None
            raise Throttled(f"HTTP {error.code}", _seconds(error.headers.get("Retry-After"))) from None
        except (OSError, ValueError, http.client.HTTPException) as error:  # a connection that is refused, or breaks off
            raise Throttled(str(error)) from None
        return _checked(blob, _unpacked(packed))


def fetch(blobs: Sequence[str], opener: Opener, wait: Callable[[float], None] = time.sleep) -> list[bytes | Exception]:
    """The content of each, or the `Refused` or `OSError` that stands in its place.

    Raises: UserError: the archive cannot be reached, or keeps asking to come back later.
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
    raise UserError(f"blob {blob}: {last}, {ATTEMPTS} times in a row: run again later, what was read is kept")


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacking.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise gzip.BadGzipFile(str(error)) from None
    if not unpacking.eof:
        raise OSError("the content ends in the middle, or is too large")
    return unpacked


def _checked(blob: str, data: bytes) -> bytes:
    """An id of 40 hexadecimal digits is the content's SHA-1, alone or as git has it."""
    if len(blob) == 40 and not set(blob) - set("0123456789abcdef"):
        as_git = b"blob %d\0" % len(data)
        if blob not in (hashlib.sha1(data).hexdigest(), hashlib.sha1(as_git + data).hexdigest()):
            raise OSError("the content is not that of its id")
    return data


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdigit() else 0.0
