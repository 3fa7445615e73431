"""Measured figures and their goals: one file, appended to by the commands that measure, printed by `make figures`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import replace_file

ROOT = Path(__file__).resolve().parent.parent  # the checkout, also where the package is a link to it
FIGURES = ROOT / "docs" / "results" / "figures.json"
GOALS = ROOT / "docs" / "results" / "goals.toml"
_PACKAGES = ("torch", "triton", "apache-beam", "pyarrow")


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a figure: `at_least` or `at_most` in `unit`, and the reason if it is missed."""

    id: str
    what: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    missed: str = ""

    def met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement. Earlier measurements of the figure stay in the file."""

    id: str
    value: float
    unit: str
    goal: str
    command: str
    machine: str
    versions: dict[str, str]
    commit: str
    date: str
    note: str = ""


def goals() -> dict[str, Goal]:
    """Goals by figure id. Raises: UserError: this is an installed package, which has no measurements."""
    if not GOALS.exists():
        raise UserError("figures are measured and kept in a clone of the repository: run `make figures` there")
    entries = tomllib.loads(GOALS.read_text())
    return {id: Goal(id=id, **fields) for id, fields in entries.items()}


def measured() -> list[Figure]:
    return [Figure(**entry) for entry in json.loads(FIGURES.read_text())] if FIGURES.exists() else []


def record(
    id: str,
    value: float,
    command: str,
    note: str = "",
    where: str = "",
    versions: Mapping[str, str] | None = None,
    checkout: Path = ROOT,
) -> Figure:
    """Append a measurement of the figure `id`, which `goals.toml` must know, on the code in `checkout`, and return it.

    `where` (see `machine`) and `versions` default to this machine without a GPU. A figure of several numbers has one id
    for each, with a suffix; a suffix needs no goal of its own.
    """
    goal = goals()[id]
    figure = Figure(
        id=id,
        value=round(value, 4),
        unit=goal.unit,
        goal=str(goal),
        command=command,
        machine=where or machine(),
        versions=dict(versions or installed()),
        commit=_commit(checkout),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        note=note,
    )
    entries = [asdict(f) for f in (*measured(), figure)]
    with replace_file(FIGURES) as stream:
        stream.write((json.dumps(entries, indent=1) + "\n").encode())
    return figure


def machine(gpu: str = "no GPU") -> str:
    """Description of this machine in figures."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {gpu}"


def installed() -> dict[str, str]:
    """Versions of the installed packages that measurements depend on; some machines lack Beam."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def _commit(checkout: Path) -> str:
    """The commit of `checkout`, marked if files other than measurements have changed."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/results")
    return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def render_figures() -> Table:
    """A table of the latest measurement of each figure with its goal, and the goals without a measurement."""
    latest = {figure.id: figure for figure in measured()}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("figure", "measured", "goal", "", "what", "date", "machine", "note"):
        table.add_column(name, justify="right" if name in ("measured", "goal") else "left")
    for id, goal in goals().items():
        figure = latest.get(id)
        if figure is None:
            table.add_row(id, "-", str(goal), "", goal.what, "not measured", "", "")
            continue
        mark = "[green]met[/]" if goal.met(figure.value) else "[red]missed[/]"
        value = f"{figure.value:g} {figure.unit}"
        table.add_row(id, value, str(goal), mark, goal.what, figure.date, figure.machine, figure.note)
    return table


if __name__ == "__main__":
    from rich.console import Console

    Console().print(render_figures())
