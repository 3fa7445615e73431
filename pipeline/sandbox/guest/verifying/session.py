"""How launches are to run now, and what was seen of them. A guest runs one candidate, so there is one session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Session:
    skip: bool = False  # ghost replay: a launch does nothing
    reverse: bool = False  # run the programs of a grid from the last to the first, where their order is ours
    trial: int = 0  # its number; of autotuned kernels, each takes the next configuration
    launches: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)  # completed: kernel and grid
    failed: list[str] = field(default_factory=list)  # what the others raised

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is launched within is not counted."""
        recorded = len(self.launches)
        yield
        del self.launches[recorded:]


class Launched:
    """What a launch returns, wherever it runs: on a GPU it is the compiled kernel, so it is not None."""


session = Session()
