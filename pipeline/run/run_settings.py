"""Settings of a run: slices, thresholds of decontamination, caps, lowering, targets, timing, and the licence policy.

    [slice]
    share = 0.25

    [decontaminate]
    ngrams = 0.8

    [caps]
    cluster = 20

    [lower]
    constructor_sizes = true

    [targets]
    names = ["sm_80", "sm_90"]

    [time]
    share = 1.0

    [licence]
    stated = "MIT"

`docs/guides/configuration.md` lists all of them. The run directory keeps them, and the dataset's manifest names them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, NonNegativeFloat

from kernelquarry.filters.balance import CAPS, Caps
from kernelquarry.filters.licence_policy import AS_STATED, LicencePolicy
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import read_bytes, write_text
from kernelquarry.pipeline.schema.read_toml import read_toml, validated
from kernelquarry.transforms.decontaminate import DEFAULT, Thresholds
from kernelquarry.transforms.targets import Targets

NAME = "settings.json"  # in the run directory


@dataclass(frozen=True, slots=True)
class CutShare:
    share: NonNegativeFloat = 1.0  # of the modules: the more there are, the fewer of their pieces are new


@dataclass(frozen=True, slots=True)
class LowerSettings:
    constructor_sizes: bool = False  # sizes that follow from the constructor's arguments are arguments of the kernels


@dataclass(frozen=True, slots=True)
class TimedShare:
    share: NonNegativeFloat = 0.1  # of the rows: a GPU takes about two seconds to time one


@dataclass(frozen=True, slots=True)
class Settings:
    slice: CutShare = field(default_factory=CutShare)
    decontaminate: Thresholds = DEFAULT
    caps: Caps = CAPS
    lower: LowerSettings = field(default_factory=LowerSettings)
    targets: Targets = field(default_factory=Targets)
    time: TimedShare = field(default_factory=TimedShare)
    licence: LicencePolicy = AS_STATED

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")


def read_settings(path: Path) -> Settings:
    """Read a TOML file. Raises: UserError: it is not TOML, names an unknown setting, or a value is wrong."""
    return _checked(read_toml(path, "give the settings as a TOML file"), str(path))


def _checked(given: Any, place: str) -> Settings:
    settings = validated(Settings, given, place)
    check_licence(settings.licence, place)
    return settings


def remember(root: Path, settings: Settings) -> None:
    """Keep the settings in the run directory."""
    write_text(root / NAME, json.dumps(asdict(settings), indent=1))


def remembered(root: Path) -> Settings:
    """The settings that the run was started with, else the defaults. Raises: UserError: the file is damaged."""
    path = root / NAME
    if not path.exists():
        return Settings()
    try:
        return _checked(json.loads(read_bytes(path)), str(path))
    except ValueError:
        raise UserError(f"{path} is damaged: delete it, and give --settings again if there were any") from None


def check_licence(policy: LicencePolicy, place: str) -> None:
    """Raises: UserError: the licence that the policy states is not permissive."""
    if policy.stated:
        from kernelquarry.filters.spdx import PERMISSIVE, is_permissive

        if not is_permissive(policy.stated):
            raise UserError(
                f"{place}: {policy.stated} is no permissive SPDX expression: "
                f"give one of {', '.join(sorted(PERMISSIVE))}, or build for yourself with --private"
            )
