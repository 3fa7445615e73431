"""The origin of a dataset: the code, settings and packages that built it."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from kernelquarry.filters import FILTERS
from kernelquarry.pipeline.runtime.source_closure import ROOT
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.transforms.split import Shares

_FOLDERS = ("filters", "pipeline", "transforms")


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """The settings that decide which rows a dataset has."""

    filters: tuple[str, ...]  # in order, each with its thresholds
    shares: dict[str, float]  # split -> share of the clusters


@dataclass(frozen=True, slots=True)
class Origin:
    """The code and machine of a build. Holds no date, path or host name, so that equal builds have equal origins."""

    release: str  # version of kernelquarry
    commit: str  # of the clone, with "-dirty" after local changes; "" if the package is installed
    code: str  # SHA-256 over every file of the package
    settings: BuildSettings
    python: str
    machine: str  # processor and operating system
    packages: dict[str, str]  # direct requirement -> version


def origin() -> Origin:
    """The origin of a dataset that this process builds."""
    return Origin(
        release=importlib.metadata.version("kernelquarry"),
        commit=_commit(),
        code=_code(),
        settings=BuildSettings(
            filters=tuple(map(repr, FILTERS)),
            shares=asdict(Shares()),
        ),
        python=platform.python_version(),
        machine=f"{platform.machine()} {platform.system()}",
        packages=_packages(),
    )


@cache
def _code() -> str:
    files = sorted(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return sha256(canonical([[path.relative_to(ROOT).as_posix(), digest(path)] for path in files]))


@cache
def _commit(checkout: Path = ROOT) -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    if not (checkout / ".git").exists():
        return ""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *_FOLDERS)
    return git("rev-parse", "HEAD") + ("-dirty" if changed else "")


def _packages() -> dict[str, str]:
    required = importlib.metadata.requires("kernelquarry") or []
    names = {re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in required if "extra ==" not in line}
    return {name: importlib.metadata.version(name) for name in sorted(names)}
