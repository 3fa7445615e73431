"""What a finished stage leaves beside its shards, so that the next run knows that nothing is left to do."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelquarry.pipeline.schema.files import read_bytes, replace_file
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.records import SCHEMA_VERSION

from .funnel import StageCounts
from .source_closure import room_digests


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What decides a stage's results beside its input. A result that was made by another one is made anew."""

    schema: int
    python: list[int]  # version: `ast` parses and prints as it does
    root: str  # module whose imports decide the results ("transforms.probe.probe_module")
    code: dict[str, str]  # room of kernelquarry -> digest of those of its files that `root` reaches
    versions: dict[str, str]  # installed package -> version
    executes: bool  # kernels run on a GPU
    asks: str | None = None  # digest of the table of teachers, "" for none; None: the stage asks no model

    @classmethod
    def of(cls, root: str, packages: Iterable[str], executes: bool = False) -> Fingerprint:
        """The fingerprint of this machine's code and packages."""
        return cls(
            SCHEMA_VERSION,
            list(sys.version_info[:2]),
            root,
            room_digests(root),
            {name: importlib.metadata.version(name) for name in packages},
            executes,
        )

    @property
    def key(self) -> str:
        """Changes when a result could."""
        own = {name: value for name, value in asdict(self).items() if name != "asks"}
        key = sha256(canonical(own))
        return key if self.asks is None else sha256(canonical([key, self.asks]))

    def agrees(self, other: Fingerprint) -> bool:
        """Whether the same code was asked for the same; Python, packages and GPUs may be another machine's."""
        return (self.schema, self.code, self.asks) == (other.schema, other.code, other.asks)

    @property
    def where(self) -> str:
        """What it ran on."""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        gpus = ", kernels executed on GPUs" if self.executes else ""
        return f"Python {'.'.join(map(str, self.python))}, {versions}{gpus}"

    def here(self) -> Fingerprint:
        """The same on this machine, as its code and packages are now."""
        return replace(Fingerprint.of(self.root, self.versions, self.executes), asks=self.asks)

    def differences(self, now: Fingerprint) -> Iterator[str]:
        """What makes the key of `now` another one, a line each."""
        if self.schema != now.schema:
            yield f"schema version {self.schema} is now {now.schema}"
        if self.python != now.python:
            yield f"Python {'.'.join(map(str, self.python))} is now {'.'.join(map(str, now.python))}"
        yield from _changes("code", self.code, now.code, show=False)
        yield from _changes("package", self.versions, now.versions)
        if self.executes != now.executes:
            yield f"setting: kernels are {'now' if now.executes else 'no longer'} executed on GPUs"
        if self.asks != now.asks:
            yield "setting: the table of teachers changed"


@dataclass(frozen=True, slots=True)
class StageManifest:
    """Of one finished stage. Digests are sha256; paths are relative to the stage's directory."""

    stage: str
    key: str  # what was asked: code, versions, options
    inputs: dict[str, str]  # shard of the stage before, or source -> digest
    outputs: dict[str, str]  # shard -> digest
    counts: tuple[StageCounts, ...]
    seconds: float
    core_s: float = 0.0  # CPU seconds of this process and of those that it started
    gpu_s: float = 0.0  # that GPUs were busy executing
    made_by: Fingerprint | None = None  # what `key` is made of, unless another machine made it

    def write(self, path: Path) -> None:
        with replace_file(path) as stream:
            stream.write(json.dumps(asdict(self), indent=1, sort_keys=True).encode())

    @classmethod
    def read(cls, path: Path) -> StageManifest | None:
        """None where there is none, or one that another release or a hand has changed the form of."""
        try:
            fields = json.loads(read_bytes(path))
            counts = tuple(StageCounts(**counts) for counts in fields["counts"])
            made_by = Fingerprint(**fields["made_by"]) if fields.get("made_by") else None
            return cls(**{**fields, "counts": counts, "made_by": made_by})
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None


def _changes(kind: str, was: Mapping[str, str], now: Mapping[str, str], show: bool = True) -> Iterator[str]:
    for name in sorted({*was, *now}):
        if name not in now:
            yield f"{kind} {name} decides no longer"
        elif name not in was:
            yield f"{kind} {name} decides now too"
        elif was[name] != now[name]:
            yield f"{kind} {name} {was[name]} is now {now[name]}" if show else f"{kind} {name} changed"
