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
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from kernelquarry.filters.balance import CAPS, Caps
from kernelquarry.filters.licence_policy import AS_STATED, LicencePolicy
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import read_bytes, replace_file
from kernelquarry.transforms.decontaminate import DEFAULT, Thresholds
from kernelquarry.transforms.targets import TARGETS, Targets

NAME = "settings.json"  # in the run directory


@dataclass(frozen=True, slots=True)
class CutShare:
    share: float = 1.0  # of the modules: the more there are, the fewer of their pieces are new


@dataclass(frozen=True, slots=True)
class LowerSettings:
    constructor_sizes: bool = False  # sizes that follow from the constructor's arguments are arguments of the kernels


@dataclass(frozen=True, slots=True)
class TimedShare:
    share: float = 0.1  # of the rows: a GPU takes about two seconds to time one


S = TypeVar("S", CutShare, Caps, Thresholds, LowerSettings, Targets, TimedShare, LicencePolicy)


@dataclass(frozen=True, slots=True)
class Settings:
    slice: CutShare = field(default_factory=CutShare)
    decontaminate: Thresholds = DEFAULT
    caps: Caps = CAPS
    lower: LowerSettings = field(default_factory=LowerSettings)
    targets: Targets = field(default_factory=Targets)
    time: TimedShare = field(default_factory=TimedShare)
    licence: LicencePolicy = AS_STATED


def read_settings(path: Path) -> Settings:
    """Read a TOML file. Raises: UserError: it is not TOML, or names an unknown setting."""
    try:
        return from_plain(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: give the settings as a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid TOML ({error})") from None


def from_plain(given: Mapping[str, Any], place: str) -> Settings:
    """Build settings from parsed TOML or JSON. Raises: UserError: unknown name, or a value of the wrong type."""
    if unknown := given.keys() - Settings.__slots__:
        raise UserError(f"{place}: unknown section {min(unknown)}: the sections are {', '.join(Settings.__slots__)}")
    return Settings(
        _section(CutShare, given, "slice", place),
        _section(Thresholds, given, "decontaminate", place),
        _section(Caps, given, "caps", place),
        _section(LowerSettings, given, "lower", place),
        _section(Targets, given, "targets", place),
        _section(TimedShare, given, "time", place),
        check_licence(_section(LicencePolicy, given, "licence", place), place),
    )


def remember(root: Path, settings: Settings) -> None:
    """Keep the settings in the run directory."""
    with replace_file(root / NAME) as stream:
        stream.write(json.dumps(asdict(settings), indent=1).encode())


def remembered(root: Path) -> Settings:
    """The settings that the run was started with, else the defaults. Raises: UserError: the file is damaged."""
    path = root / NAME
    if not path.exists():
        return Settings()
    try:
        return from_plain(json.loads(read_bytes(path)), str(path))
    except ValueError:
        raise UserError(f"{path} is damaged: delete it, and give --settings again if there were any") from None


def _section(kind: type[S], given: Mapping[str, Any], name: str, place: str) -> S:
    values = given.get(name, {})
    if not isinstance(values, Mapping):
        raise UserError(f"{place}: {name} is not a section: write [{name}] above its values")
    defaults = kind()
    for key, value in values.items():
        if key not in {each.name for each in fields(kind)}:
            raise UserError(f"{place}: [{name}] has no {key}: it has {', '.join(f.name for f in fields(kind))}")
        default = getattr(defaults, key)
        if kind is Targets:
            if value is None:  # as a run directory keeps settings that name no targets
                continue
            _check_targets(value, place)
            continue
        if isinstance(default, bool | str):
            if type(value) is not type(default):
                form = "true or false" if isinstance(default, bool) else "text"
                raise UserError(f"{place}: {key} in [{name}] must be {form}")
            continue
        whole = isinstance(default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value < 0:
            raise UserError(f"{place}: {key} in [{name}] must be a {'whole ' if whole else ''}number of at least 0")
    found: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()}
    return kind(**found)


def check_licence(policy: LicencePolicy, place: str) -> LicencePolicy:
    """The policy, if the licence that it states is permissive. Raises: UserError."""
    if policy.stated:
        from kernelquarry.filters.spdx import PERMISSIVE, is_permissive

        if not is_permissive(policy.stated):
            raise UserError(
                f"{place}: {policy.stated} is no permissive SPDX expression: "
                f"give one of {', '.join(sorted(PERMISSIVE))}, or build for yourself with --private"
            )
    return policy


def _check_targets(value: Any, place: str) -> None:
    if not isinstance(value, list) or not all(name in TARGETS for name in value) or len(set(value)) < len(value):
        raise UserError(f"{place}: names in [targets] must be a list of {', '.join(TARGETS)}, each at most once")
