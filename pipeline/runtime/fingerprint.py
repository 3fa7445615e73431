"""Fingerprints and manifests of stages: with them, the next run knows which stages are up to date."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelquarry.pipeline.schema.files import read_bytes, write_text
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.records import SCHEMA_VERSION

from .funnel import StageCounts
from .source_closure import package_versions, room_digests


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All that decides a stage's results besides its input. Results of another fingerprint are not reused."""

    schema: int
    python: list[int]  # version: `ast` parses and prints as it does
    root: str  # module whose imports decide the results ("transforms.probe.probe_module")
    code: dict[str, str]  # room of kernelquarry -> digest of those of its files that `root` reaches
    versions: dict[str, str]  # installed package -> version
    executes: bool  # kernels run on a GPU
    teachers: str | None = None  # digest of the table of teachers, "" for none; None: the stage calls no model

    @classmethod
    def of(cls, root: str, executes: bool = False) -> Fingerprint:
        """The fingerprint of this machine's code and packages."""
        return cls(
            SCHEMA_VERSION,
            list(sys.version_info[:2]),
            root,
            room_digests(root),
            package_versions(root),
            executes,
        )

    @property
    def key(self) -> str:
        """SHA-256 that changes when a result could change."""
        own = {name: value for name, value in asdict(self).items() if name != "teachers"}
        key = sha256(canonical(own))
        return key if self.teachers is None else sha256(canonical([key, self.teachers]))

    def agrees(self, other: Fingerprint) -> bool:
        """True if code and settings are equal; Python, packages and GPUs may be those of another machine."""
        return (self.schema, self.code, self.teachers) == (other.schema, other.code, other.teachers)

    @property
    def where(self) -> str:
        """The machine's part of the fingerprint, for people."""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        gpus = ", kernels executed on GPUs" if self.executes else ""
        return f"Python {'.'.join(map(str, self.python))}, {versions}{gpus}"

    def here(self) -> Fingerprint:
        """The fingerprint of the same stage on this machine, now."""
        return replace(Fingerprint.of(self.root, self.executes), teachers=self.teachers)

    def differences(self, now: Fingerprint) -> Iterator[str]:
        """One line for each difference that changes the key."""
        if self.schema != now.schema:
            yield f"schema version {self.schema} is now {now.schema}"
        if self.python != now.python:
            yield f"Python {'.'.join(map(str, self.python))} is now {'.'.join(map(str, now.python))}"
        yield from _changes("code", self.code, now.code, show=False)
        yield from _changes("package", self.versions, now.versions)
        if self.executes != now.executes:
            yield f"setting: kernels are {'now' if now.executes else 'no longer'} executed on GPUs"
        if self.teachers != now.teachers:
            yield "setting: the table of teachers changed"


@dataclass(frozen=True, slots=True)
class StageManifest:
    """The record of one finished stage. Digests are SHA-256; paths are relative to the stage's directory."""

    stage: str
    key: str  # of its fingerprint
    inputs: dict[str, str]  # shard of the stage before, or source -> digest
    outputs: dict[str, str]  # shard -> digest
    counts: tuple[StageCounts, ...]
    seconds: float
    core_s: float = 0.0  # CPU seconds of this process and of those that it started
    gpu_s: float = 0.0  # that GPUs were busy executing
    made_by: Fingerprint | None = None  # what `key` is made of, unless another machine made it
    merged: bool = False  # `merge` brought it from parts or from another run, so this run's store has no results of it

    @property
    def has_errors(self) -> bool:
        return any(count.errored for count in self.counts)

    def write(self, path: Path) -> None:
        write_text(path, json.dumps(asdict(self), indent=1, sort_keys=True))

    @classmethod
    def read(cls, path: Path) -> StageManifest | None:
        """The manifest at `path`; None if it is missing or unreadable."""
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
            yield f"{kind} {name} is no longer used"
        elif name not in was:
            yield f"{kind} {name} is used now"
        elif was[name] != now[name]:
            yield f"{kind} {name} {was[name]} is now {now[name]}" if show else f"{kind} {name} changed"
