"""Several corpora as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .corpus import Corpus, Shard


@dataclass(frozen=True, slots=True)
class Joined:
    """A corpus of all that its parts hold; each shard stays of the part that it belongs to."""

    parts: tuple[Corpus, ...]

    @property
    def name(self) -> str:
        return "+".join(part.name for part in self.parts)

    def digests(self) -> dict[str, str]:
        return {shard: digest for part in self.parts for shard, digest in part.digests().items()}

    def shards(self) -> Iterator[Shard]:
        for part in self.parts:
            yield from part.shards()
