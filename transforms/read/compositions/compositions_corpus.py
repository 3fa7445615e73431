"""Composed modules as a corpus: they are read, mined and probed like any others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernelquarry.filters.licences import Licences
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.records import Module, Probed
from kernelquarry.transforms.read.corpus import CorpusFile

from .compose import Composition, compose
from .mined_modules import Mined, parts

PACKAGE = "compose"  # package of composed modules in source references
NUMBERS_A_PIECE = 500
OURS = Licence("Apache-2.0", "composed by kernelquarry")
_KEYS = {"compose", "seed", "modules"}


@dataclass(frozen=True, slots=True)
class Compositions:
    """A corpus of `number` compositions, and its only shard.

    Compositions contain operators, and the probed modules of `run` if it is set.
    """

    number: int
    seed: int = 0
    run: Path | None = None
    first: int = 0

    @property
    def name(self) -> str:
        return PACKAGE

    @property
    def corpus(self) -> str:
        return PACKAGE

    def digests(self) -> dict[str, str]:
        digests = {PACKAGE: f"{self.number} of seed {self.seed}"}
        if self.run is not None:
            digests[str(self.run)] = sha256(_manifest(self.run).read_bytes())
        return digests

    def shards(self) -> tuple[Compositions]:
        return (self,)

    def pieces(self) -> Iterable[Compositions]:
        for first in range(self.first, self.first + self.number, NUMBERS_A_PIECE):
            yield replace(self, first=first, number=min(NUMBERS_A_PIECE, self.first + self.number - first))

    def files(self) -> Iterator[CorpusFile]:
        mined = _probed(_manifest(self.run)) if self.run is not None else ()
        for number in range(self.first, self.first + self.number):
            yield self._found(number, compose(self.seed, number, mined))

    def _found(self, number: int, made: Composition) -> CorpusFile:
        """Make the file of a composition.

        A composition with a mined part belongs to the part's package, whose licence and opt-outs apply to it. Any other
        composition is a tree of its own, as it shares no definitions with other files.
        """
        package, revision, licence = PACKAGE, f"{self.seed}.{number}", OURS
        if made.mined is not None:
            package, revision = made.mined.source.package, made.mined.source.revision
            licence = _joint(made.mined)
        code, path = made.code.encode(), f"{made.path}/{self.seed}.{number}.py"
        return CorpusFile(package, revision, path, len(code), lambda: code, Licences(licence, (), ()))


def is_composed(module: Module) -> bool:
    """True if the module was mined from a composition."""
    return module.licence.evidence.startswith(OURS.evidence)


def open_compositions(entries: Mapping[str, Any], place: str, base: Path) -> Compositions:
    """Open the compositions that a source file describes. Raises: UserError: an entry is wrong."""
    if unknown := sorted(entries.keys() - _KEYS):
        raise UserError(f"{place}: does not know {', '.join(unknown)}: give {', '.join(sorted(_KEYS))}")
    number, seed, modules = entries["compose"], entries.get("seed", 0), entries.get("modules", "")
    if type(number) is not int or type(seed) is not int or number < 1 or not isinstance(modules, str):
        raise UserError(f"{place}: a wrong value: `compose` and `seed` are numbers, `modules` is a run directory")
    return Compositions(number, seed, (base / modules).resolve() if modules else None)


def parse_compositions(name: str) -> Compositions:
    """Open `compose:NUMBER` or `compose:NUMBER:SEED`. Raises: UserError: the name has another form."""
    _, *numbers = name.split(":")
    if not numbers or len(numbers) > 2 or not all(number.isdigit() for number in numbers) or int(numbers[0]) < 1:
        raise UserError(f"{name}: not a corpus of compositions: give compose:NUMBER or compose:NUMBER:SEED")
    return Compositions(int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0)


def _joint(mined: Mined) -> Licence:
    spdx = mined.licence.spdx
    terms = sorted({OURS.spdx, f"({spdx})" if " OR " in spdx else spdx})
    return Licence(" AND ".join(terms), f"{OURS.evidence}; {mined.source.path}: {mined.licence.evidence}")


def _manifest(run: Path) -> Path:
    """Manifest of the run's probe stage. Raises: UserError: the stage has not run."""
    found = sorted(run.glob("stages/*-probe/stage.json"))
    if not found:
        raise UserError(f"{run}: has no probed modules: give a run directory whose stage `probe` has finished")
    return found[0]


@lru_cache(maxsize=1)
def _probed(manifest: Path) -> tuple[Mined, ...]:
    return parts(
        record for path in sorted(manifest.parent.glob("kept-*.parquet")) for record in read_records(path, Probed)
    )
