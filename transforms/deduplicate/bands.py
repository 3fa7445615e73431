"""Bands of MinHash as numbers, so that grouping moves pairs of integers in place of whole forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np

from kernelquarry.transforms.similarity.form import Form

_BUCKETS = 1024  # groups of bands


def bands_by_bucket(sources: Sequence[tuple[str, Form]]) -> list[tuple[int, bytes]]:
    """(bucket, its pairs of band and source as uint64). One element for each band would dominate the shuffled data."""
    pairs = np.array([(_band_number(band), int(key, 16)) for key, form in sources for band in form.bands], np.uint64)
    buckets = pairs[:, 0] % np.uint64(_BUCKETS)
    return [(int(bucket), pairs[buckets == bucket].tobytes()) for bucket in np.unique(buckets)]


def _band_number(band: str) -> int:
    return int.from_bytes(blake2b(band.encode(), digest_size=8).digest())


def shared_bands(parts: Iterable[bytes]) -> list[tuple[str, str]]:
    """(source, band) for each band that several sources share, and each of these sources."""
    pairs = np.concatenate([np.frombuffer(part, np.uint64).reshape(-1, 2) for part in parts])
    bands, holders = np.unique(pairs[:, 0], return_counts=True)
    shared = pairs[np.isin(pairs[:, 0], bands[holders > 1])]
    return [(f"{source:016x}", f"{band:016x}") for band, source in shared.tolist()]
