"""Replays many rows, several at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from kernelquarry.transforms.verify.replay import Replayed, replay_pair

from .sandbox import Sandbox, SandboxSettings
from .schema.records import Pair


def replay_rows(pairs: Iterable[Pair], settings: SandboxSettings) -> Iterator[Replayed]:
    """Each pair verified again, in the order given, `settings.workers` at once."""
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(settings.workers) as threads:
        yield from threads.map(lambda pair: replay_pair(pair, sandbox), pairs)
