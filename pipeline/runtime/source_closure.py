"""The source files and packages that decide a stage's results, found by following imports from its own module."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import sys
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
    "transforms.stage_transform",
    "pipeline.sandbox.layers",
    *(
        f"pipeline.sandbox.{name}"
        for name in "ending exchange executor.service job kernel_cache launcher pool protocol settings".split()
    ),
)

_PLUMBING = frozenset({"apache_beam", "fsspec", "pyarrow", "pydantic", "upath"})  # they decide no result either
_GUEST_PACKAGES = ("numpy", "torch", "triton")  # that every guest imports, or torch for it


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


def package_versions(module: str) -> dict[str, str]:
    """Installed package -> version, of the packages that the closure of `module` imports."""
    closure = source_closure(module)
    names = {name for each in closure for name in _external(each)}
    if any(name.startswith(_JOBS) for name in closure):
        names.update(_GUEST_PACKAGES)
    return {name: importlib.metadata.version(name) for name in sorted(names - _PLUMBING) if _is_distribution(name)}


@functools.cache
def _is_distribution(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False  # optional, or a module of another name than its package
    return True


@functools.cache
def _external(module: str) -> frozenset[str]:
    """Top-level names that `module` imports from packages outside of this project and the standard library."""
    names = set()
    for node in ast.walk(_parsed(module)):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name.partition(".")[0] for alias in aliases}
            case ast.ImportFrom(level=0, module=str(target)):
                names.add(target.partition(".")[0])
    return frozenset(names - sys.stdlib_module_names - {"kernelquarry"})


@functools.cache
def _imported(module: str) -> tuple[str, ...]:
    """Modules of this project that `module` imports, inside functions too, and the guest jobs that it names."""
    is_package = _path(module).name == "__init__.py"
    found = dict.fromkeys(_references(_parsed(module), module.split(".")[: None if is_package else -1]))
    if module.startswith(f"{_REQUESTS}."):
        found |= dict.fromkeys(filter(_exists, [module.replace(_REQUESTS, _JOBS)]))
    return tuple(found)


@functools.cache
def _parsed(module: str) -> ast.Module:
    return parse(_path(module).read_text(encoding="utf-8"))


def _references(tree: ast.Module, package: list[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(level=level, module=target, names=names):
                base = package[: len(package) - level + 1] if level else []
                origin = ".".join([*base, *filter(None, [target])]).removeprefix("kernelquarry.")
                for alias in names:
                    submodule = f"{origin}.{alias.name}"
                    if _exists(found := submodule if _exists(submodule) else origin):
                        yield found


def _exists(module: str) -> bool:
    return module.split(".")[0] in _PACKAGES and _path(module).is_file()


def _path(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
