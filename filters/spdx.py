"""Convert licence statements to SPDX expressions, and decide which expressions are permissive."""

from __future__ import annotations

import re

from license_expression import ExpressionError, LicenseWithExceptionSymbol, get_spdx_licensing
from licenseclassifier import identify_license

PERMISSIVE = frozenset(
    """
    0BSD Apache-2.0 BSD-1-Clause BSD-2-Clause BSD-2-Clause-Patent BSD-2-Clause-Views BSD-3-Clause BSD-3-Clause-Clear
    BSL-1.0 CC0-1.0 HPND ISC MIT MIT-0 NCSA PostgreSQL PSF-2.0 Python-2.0 Unlicense WTFPL X11 Zlib
    """.split()
)

# Names that packages use instead of SPDX identifiers, without "the", "license", "software" and punctuation.
_NAMES = {
    "mit": "MIT",
    "mit expat": "MIT",
    "expat": "MIT",
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 20": "Apache-2.0",
    "apache version 20": "Apache-2.0",
    "asl 20": "Apache-2.0",
    "bsd 2 clause": "BSD-2-Clause",
    "bsd 3 clause": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "modified bsd": "BSD-3-Clause",
    "isc": "ISC",
    "isc iscl": "ISC",
    "unlicense": "Unlicense",
    "unlicense unlicense": "Unlicense",
    "public domain cc0": "CC0-1.0",
    "gpl": "GPL-1.0-or-later",
    "gplv3": "GPL-3.0-only",
    "gnu general public": "GPL-1.0-or-later",
    "gnu general public v2 gplv2": "GPL-2.0-only",
    "gnu general public v3 gplv3": "GPL-3.0-only",
    "gnu affero general public v3": "AGPL-3.0-only",
    "gnu lesser general public v3 lgplv3": "LGPL-3.0-only",
    "mozilla public 20 mpl 20": "MPL-2.0",
    "otherproprietary": "LicenseRef-Proprietary",
    "proprietary": "LicenseRef-Proprietary",
}
_REFERENCE = re.compile(r"LicenseRef-[\w.-]+")
_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([^\n*#]+)")
_LONGEST_NAME = 80  # characters; longer statements are texts
_COVERED = 0.5  # share of a text that known licences must cover
_HEADER = re.compile(r'(?:[ \t]*(?:#.*)?\n)*(?:[rR]?(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'))?')
_COMMENT = re.compile(r"^[ \t]*#+[ \t]?", re.MULTILINE)
_GRANTS = re.compile(r"licen[cs]e|permission is hereby granted|redistribution and use", re.IGNORECASE)
_LONGEST_HEADER = 8000  # characters
_COVERED_HEADER = 20.0  # percent; lower than for a text, as a header may also describe the file
_SPDX = get_spdx_licensing()


def from_statement(statement: str) -> str | None:
    """SPDX expression of a metadata field, a classifier or a licence text, None if unknown."""
    statement = statement.strip()
    if len(statement) > _LONGEST_NAME:
        return from_text(statement)
    return _from_expression(statement) or _NAMES.get(_plain(statement))


def from_text(text: str) -> str | None:
    """SPDX expression of the licences that cover most of `text`, and of its SPDX tags; None if unknown."""
    matches = identify_license(text)
    covered = sum(match.end - match.start for match in matches)
    if covered < _COVERED * len(text.strip()):
        return _NAMES.get(_plain(text)) if len(text) <= _LONGEST_NAME else None
    return " AND ".join(sorted({match.id for match in matches} | set(tags(text))))


def from_header(text: str) -> str | None:
    """SPDX expression of the licences in the leading comments and docstring of a Python file, None without any."""
    match = _HEADER.match(text[:_LONGEST_HEADER])
    header = _COMMENT.sub("", match.group()) if match else ""
    if not _GRANTS.search(header):
        return None
    ids = {match.id for match in identify_license(header, coverage_threshold=_COVERED_HEADER)}
    return " AND ".join(sorted(ids)) or None


def tags(text: str) -> list[str]:
    """The expressions of the `SPDX-License-Identifier` lines."""
    return [match.strip().rstrip("-/> ") for match in _TAG.findall(text)]


def is_permissive(expression: str) -> bool:
    """True if an alternative of the expression has only permissive terms."""
    try:
        return _permits(_SPDX.parse(expression))
    except ExpressionError:
        return False


def _permits(node: object) -> bool:
    if isinstance(node, _SPDX.OR | _SPDX.AND):
        return (any if isinstance(node, _SPDX.OR) else all)(map(_permits, node.args))
    if isinstance(node, LicenseWithExceptionSymbol):
        node = node.license_symbol
    return getattr(node, "key", "") in PERMISSIVE


def _from_expression(statement: str) -> str | None:
    if _REFERENCE.fullmatch(statement):
        return statement
    try:
        parsed = _SPDX.parse(statement, validate=True)
    except ExpressionError:
        return None
    return str(parsed) if parsed is not None else None


def _plain(statement: str) -> str:
    name = statement.rpartition("::")[2].lower()
    words = re.sub(r"[^\w\s-]", "", name).replace("-", " ").split()
    return " ".join(word for word in words if word not in ("the", "license", "licence", "licensed", "software"))
