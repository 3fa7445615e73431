"""The shards and the manifest of one stage in a run directory. Importing this module loads no Beam."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.files import digest, remove_tree

log = logging.getLogger(__name__)

LOST = "lost.parquet"
MANIFEST = "stage.json"


@dataclass(frozen=True, slots=True)
class StageDirectory:
    """The shards and manifest of one stage of one run."""

    path: Path

    @property
    def kept(self) -> list[Path]:
        return sorted(self.path.glob("kept-*.parquet"))

    @property
    def lost(self) -> Path:
        return self.path / LOST

    def empty(self) -> None:
        """Create the directory, or remove its contents."""
        remove_tree(self.path)
        self.path.mkdir(parents=True)

    def digests(self) -> dict[str, str]:
        """SHA-256 of each shard, by name."""
        return {path.name: digest(path) for path in sorted(self.path.glob("*.parquet"))}

    def finished(self, key: str, inputs: dict[str, str]) -> StageManifest | None:
        """The manifest, if key and inputs are equal, no record is to be tried again, and no shard was changed."""
        manifest = StageManifest.read(self.path / MANIFEST)
        if manifest is None or manifest.key != key or manifest.inputs != inputs:
            return None
        if manifest.has_errors and not manifest.merged:
            return None  # records that errored are tried again; the others have results in the store
        return self.unchanged(manifest)

    def unchanged(self, manifest: StageManifest) -> StageManifest | None:
        """The manifest, if every shard is as it was written; else None, with a warning."""
        changed = self.changed(manifest)
        if changed is not None:
            log.warning("%s: missing or changed since it was written: running the stage again", changed)
            return None
        return manifest

    def changed(self, manifest: StageManifest, names: Collection[str] | None = None) -> Path | None:
        """The first of these shards, or of all, whose digest differs from the manifest's; None if all agree."""
        for name, expected in manifest.outputs.items():
            path = self.path / name
            if (names is None or name in names) and (not path.is_file() or digest(path) != expected):
                return path
        return None
