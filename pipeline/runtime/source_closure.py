"""The source files that decide a stage's results, found by following imports from the stage's own module."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.parse_python import parse

ROOT = Path(__file__).parents[2]  # folder of the packages `pipeline`, `transforms` and `filters`
_PACKAGES = ("pipeline", "transforms", "filters")
# The request of a job, and the module of the guest that does it, have one name.
_REQUESTS, _JOBS = "pipeline.sandbox.jobs", "pipeline.sandbox.guest.jobs"
# Concurrency, storage, the sandbox's processes and the records' types: the first three decide no result, and a change
# of the last raises `SCHEMA_VERSION`.
_MACHINERY = (
    "pipeline.runtime",
    "pipeline.schema",
    "pipeline.sandbox.layers",
    *(
        f"pipeline.sandbox.{name}"
        for name in "ending exchange executor.service job launcher pool protocol settings".split()
    ),
)


@functools.cache
def source_closure(module: str) -> tuple[str, ...]:
    """Modules that `module` imports, directly or not, and the guest jobs that they run; machinery left out.

    Names are relative to `kernelquarry` ("transforms.probe.transform"), sorted, `module` included.
    """
    found: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in found and not _is_machinery(name):
            found.add(name)
            pending += _imported(name)
    return tuple(sorted(found))


def room_digests(module: str) -> dict[str, str]:
    """Room (folder) -> SHA-256 of those of its files that are in the closure of `module`."""
    rooms: dict[str, list[list[str]]] = {}
    for name in source_closure(module):
        path = _path(name)
        room = ".".join(path.parent.relative_to(ROOT).parts)
        rooms.setdefault(room, []).append([path.name, digest(path)])
    return {room: sha256(canonical(files)) for room, files in sorted(rooms.items())}


def _is_machinery(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _MACHINERY)


@functools.cache
def _imported(module: str) -> tuple[str, ...]:
    """Modules of this project that `module` imports, inside functions too, and the guest jobs that it names."""
    path = _path(module)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = dict.fromkeys(_references(parse(path.read_text(encoding="utf-8")), package))
    if module.startswith(f"{_REQUESTS}."):
        found |= dict.fromkeys(filter(_exists, [module.replace(_REQUESTS, _JOBS)]))
    return tuple(found)


def _references(tree: ast.Module, package: list[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(level=level, module=target, names=names):
                base = package[: len(package) - level + 1] if level else []
                origin = ".".join([*base, *filter(None, [target])]).removeprefix("kernelquarry.")
                for alias in names:
                    yield from filter(_exists, (f"{origin}.{alias.name}", origin))


def _exists(module: str) -> bool:
    return module.split(".")[0] in _PACKAGES and _path(module).is_file()


def _path(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
