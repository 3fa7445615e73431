"""Group forms into connected components of a relation.

Forms are compared if they share a band of MinHash. Bands are numbers, so that grouping moves pairs of integers in place
of whole forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from kernelquarry.transforms.similarity.form import Form, Relation

_BUCKETS = 1024  # groups of bands


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """Two related sources, named by their `exact` digests."""

    a: str
    b: str


class Components:
    """Union-find over nodes. The name of a component is its smallest node."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._parent = {node: node for node in nodes}

    def join(self, a: str, b: str) -> None:
        low, high = sorted((self.of(a), self.of(b)))
        self._parent[high] = low

    def of(self, node: str) -> str:
        while (parent := self._parent[node]) != node:
            self._parent[node] = self._parent[parent]  # path halving
            node = parent
        return node

    def all(self) -> dict[str, str]:
        """Map each node to its component. The order of nodes and joins does not matter."""
        return {node: self.of(node) for node in self._parent}


def link_key_holders(exacts: Sequence[str]) -> list[Link]:
    """Links that connect all sources that share one key of the relation."""
    first, *others = sorted(exacts)
    return [Link(first, other) for other in others]


def link_similar(group: Iterable[Form], relation: Relation) -> list[Link]:
    """Links that connect every related pair among forms that share a band.

    Forms that are already connected are not compared again, so a thousand copies cost a thousand comparisons.
    """
    remaining = sorted(group, key=lambda form: form.exact)
    components = Components(form.exact for form in remaining)
    links = []
    while len({components.of(form.exact) for form in remaining}) > 1:
        first, *remaining = remaining
        for other in remaining:
            if components.of(first.exact) != components.of(other.exact) and relation.holds(first, other):
                components.join(first.exact, other.exact)
                links.append(Link(first.exact, other.exact))
    return links


def connect(links: Iterable[Link]) -> dict[str, str]:
    """Map each source that a link names to its component. Sources without a link are components of their own."""
    links = list(links)
    components = Components(exact for link in links for exact in (link.a, link.b))
    for link in links:
        components.join(link.a, link.b)
    return components.all()


def component_of(form: Form, components: Mapping[str, str]) -> str:
    return components.get(form.exact, form.exact)


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
