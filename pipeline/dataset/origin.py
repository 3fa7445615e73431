"""What a dataset was built with: the code, its settings, and the packages."""

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
from kernelquarry.transforms.verify.task import VerifySettings

_FOLDERS = ("filters", "pipeline", "transforms")


@dataclass(frozen=True, slots=True)
class Settings:
    """What could be chosen otherwise."""

    filters: tuple[str, ...]  # in their order, each with its thresholds
    shares: dict[str, float]  # of the clusters, by split
    targets: tuple[str, ...]  # that kernels are compiled for
    mutants: int  # of each kernel, that its checks must tell from it


@dataclass(frozen=True, slots=True)
class Origin:
    """The same code on the same machine gives the same origin; it holds no date, no path and no host name."""

    release: str  # of kernelquarry
    commit: str  # of the clone that it ran from, "" if it was installed; "-dirty" if files were changed
    code: str  # sha256 over every file of the package
    settings: Settings
    python: str
    machine: str  # processor and operating system
    packages: dict[str, str]  # direct requirement -> version


def origin() -> Origin:
    return Origin(
        release=importlib.metadata.version("kernelquarry"),
        commit=_commit(),
        code=_code(),
        settings=_settings(),
        python=platform.python_version(),
        machine=f"{platform.machine()} {platform.system()}",
        packages=_packages(),
    )


def _settings() -> Settings:
    verify = VerifySettings()
    return Settings(
        filters=tuple(map(repr, FILTERS)),
        shares=asdict(Shares()),
        targets=verify.targets,
        mutants=verify.mutants,
    )


@cache
def _code() -> str:
    top = ROOT
    files = sorted(path for folder in _FOLDERS for path in (top / folder).rglob("*.py"))
    return sha256(canonical([[path.relative_to(top).as_posix(), digest(path)] for path in files]))


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
