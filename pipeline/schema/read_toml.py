"""TOML files that people write: read, and checked against a type."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from .errors import UserError

T = TypeVar("T")
_MESSAGES = {  # for error types whose pydantic message speaks of Python or JSON
    "tuple_type": "should be a list: tables in a list are written [[teachers]]",
    "dataclass_type": "should be a section: write its name in brackets above its values",
    "extra_forbidden": "there is no such setting",
    "unexpected_keyword_argument": "there is no such setting",
}


def read_toml(path: Path, hint: str) -> dict[str, Any]:
    """The tables of a file. Raises: UserError: it is not TOML, or cannot be read: `hint` says what to give instead."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: {hint}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None


def validated(kind: type[T], values: Any, place: str) -> T:
    """Make a `kind` of parsed TOML or JSON. Raises: UserError: a value is wrong; the message names it and `place`."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        message = _MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise UserError(f"{place}: {name + ': ' if name else ''}{message}") from None
