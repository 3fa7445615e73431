"""What a finished stage leaves beside its shards, so that the next run knows that nothing is left to do."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from .funnel import StageCounts
from .schema.files import replace_file
from .schema.ids import canonical, sha256
from .schema.records import SCHEMA_VERSION

PACKAGE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class StageManifest:
    """Of one finished stage. Digests are sha256; paths are relative to the stage's directory."""

    stage: str
    key: str  # what was asked: code, versions, options
    inputs: dict[str, str]  # shard of the stage before, or source -> digest
    outputs: dict[str, str]  # shard -> digest
    counts: tuple[StageCounts, ...]
    seconds: float

    def write(self, path: Path) -> None:
        with replace_file(path) as stream:
            stream.write(json.dumps(asdict(self), indent=1, sort_keys=True).encode())

    @classmethod
    def read(cls, path: Path) -> StageManifest | None:
        """None where there is none, or one that another release or a hand has changed the form of."""
        try:
            fields = json.loads(path.read_bytes())
            return cls(**{**fields, "counts": tuple(StageCounts(**counts) for counts in fields["counts"])})
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fingerprint(code: tuple[str, ...], packages: tuple[str, ...], executes: bool = False) -> str:
    """Changes when a result could: the schema, the source of `code`, the versions of Python and `packages`.

    `code` names modules or packages of kernelquarry ("transforms.probe", "pipeline.sandbox.guest.probe"); `executes`
    says that kernels run on a GPU.
    """
    return sha256(
        canonical(
            {
                "schema": SCHEMA_VERSION,
                "python": list(sys.version_info[:2]),  # `ast` parses and prints as it does
                "code": {name: _source_digest(name) for name in code},
                "versions": {name: importlib.metadata.version(name) for name in packages},
                "executes": executes,
            }
        )
    )


def _source_digest(name: str) -> str:
    top, _, rest = name.partition(".")
    base = PACKAGE.parent / top if (PACKAGE.parent / top).is_dir() else PACKAGE / top
    path = base.joinpath(*rest.split(".")) if rest else base
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return sha256(canonical([[file.name, digest(file)] for file in files]))
