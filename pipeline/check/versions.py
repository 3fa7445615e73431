"""The versions of torch and triton that a check needs."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from kernelquarry.pipeline.schema.errors import UserError

NEEDED = {"torch": (2, 11), "triton": (3, 6)}  # as pyproject.toml


def check_versions() -> None:
    """Raises: UserError: torch or triton is missing, or too old."""
    for package, least in NEEDED.items():
        needs = f"kernelquarry needs {package} {'.'.join(map(str, least))} or newer: pip install -U {package}"
        try:
            found = version(package)
        except PackageNotFoundError:
            raise UserError(f"{package} is not installed: {needs}") from None
        if tuple(map(int, re.findall(r"\d+", found)[:2])) < least:
            raise UserError(f"{package} {found} is installed: {needs}")
