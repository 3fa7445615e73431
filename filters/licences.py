"""Determine the licence of a file from package metadata, licence texts, notices and the file itself.

Metadata alone is not enough: packages have a GPL text under a permissive classifier, folders with other terms, and
files whose headers forbid commercial use. The most specific statement decides; a statement that is not permissive wins
over a permissive one; an unrecognised text permits nothing. Copied files without any statement cannot be detected.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import lru_cache
from itertools import chain
from pathlib import PurePosixPath

from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.reasons import Reason

from . import spdx
from .licence_policy import UNSTATED
from .objection import Objection

# Names of licence texts, and of notices, which list exceptions. Licences of weights do not cover code.
_TEXT = re.compile(r"(un)?licen[cs]e(?!s)|copying|.*[-_.]licen[cs]e$", re.IGNORECASE)
_NOTICE = re.compile(r"notice|licen[cs]es|third[-_ ]?party", re.IGNORECASE)
_NOT_CODE = re.compile(r"weight|model|data", re.IGNORECASE)
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA|PKG-INFO")
_RECORD = re.compile(r"[^/]+\.dist-info/RECORD")  # lists the installed files of a package
_LICENCE_FILES = re.compile(r"[^/]+\.dist-info/(?:licen[cs]es/)?")  # PEP 639

# Words with which a file revokes the permission of its package.
_DENIAL = re.compile(
    r"""
      (?i:non[-\s]?commercial)
    | (?i:\bcc[-\ ]by[-\ ](?:nc|nd|sa))
    | (?i:GNU\s+(?:lesser\s+|library\s+|affero\s+)?general\s+public\s+licen[cs]e)
    | (?<![\w-])(?:[AL]?GPL|MPL)(?:[-\s]?v?[123][.\d]*)?(?![\w-])
    | (?i:mozilla\s+public\s+licen[cs]e)
    | (?i:nvidia\s+source\s+code\s+licen[cs]e)
    | \bS-Lab\s+Licen[cs]e
    | (?i:(?:for|academic)\s+research\s+(?:purposes?\s+|use\s+)?only)
    | (?i:research\s+(?:purposes?|use)\s+only)
    | (?i:without\s+an\s+express\s+licen[cs]e\s+agreement)
    | (?i:github\.com/(?:NVlabs/stylegan|ultralytics/))  # copied code keeps its licence
    """,
    re.VERBOSE,
)
# Every match of `_DENIAL` contains one of these, so only the text around them is searched: the pattern is slow.
_AROUND = 200  # characters before and after a hint; matches are shorter by far
_HINTS = "commercial,cc by,cc-by,public,gpl,mpl,nvidia,s-lab,research,express,nvlabs,ultralytics".split(",")
# Lines about the licence of weights or data, which do not concern the code.
_OF_WEIGHTS = re.compile(r"""weights?\b|checkpoint|dataset|['"]?licen[cs]e['"]?\s*[:=]\s*['"]""", re.IGNORECASE)
_OF_CODE = re.compile(r"\b(?:source|code|this file|this software|class)\b", re.IGNORECASE)
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:\.py\b|/(?!\w))")
_URL = re.compile(r"https?://\S+")
_TAGGED_HEAD = 4000  # characters in which a file's SPDX tag is searched


@dataclass(frozen=True, slots=True)
class Licences:
    """Licence statements of a package."""

    package: Licence | Objection
    folders: tuple[tuple[str, Licence | Objection], ...]  # deepest first; paths end with "/"
    denied: tuple[tuple[str, str], ...]  # (path that a notice excludes, the notice); folders end with "/"

    def of(self, path: str, text: str) -> Licence | Objection:
        """Licence of one file, or the objection to its use."""
        if (denial := _denial(text)) is not None:
            return _objection(f"the file says: {denial}")
        for denied, notice in self.denied:
            if path == denied or (denied.endswith("/") and path.startswith(denied)):
                return _objection(f"{notice} excludes {denied}")
        for expression in spdx.tags(text[:_TAGGED_HEAD]):
            if not spdx.is_permissive(expression):
                return _objection(f"the file's tag says {expression}")
            return Licence(expression, "the file's SPDX tag")
        if (header := spdx.from_header(text)) is not None:
            if not spdx.is_permissive(header):
                return _objection(f"the file's header says {header}")
            if isinstance(self._of_folder(path), Licence):  # a header cannot override an objection to its package
                return Licence(header, f"the file's header: {header}")
        return self._of_folder(path)

    def _of_folder(self, path: str) -> Licence | Objection:
        """Licence of the deepest folder with a statement, else of the package."""
        for folder, licence in self.folders:
            if path.startswith(folder):
                return licence
        return self.package


def read_licences(files: Mapping[str, str]) -> Licences:
    """Judge the licence statements of a package.

    Args:
        files: path -> text of every file for which `is_statement` holds.
    """
    installed = sorted({path.partition("/")[0] for path in files if _METADATA.fullmatch(path) and "/" in path})
    if len(installed) > 1:
        return _side_by_side(files, installed)
    metadata = next((text for path, text in sorted(files.items()) if _METADATA.fullmatch(path)), "")
    texts: dict[str, list[tuple[str, str]]] = {}
    denied: list[tuple[str, str]] = []
    for path, text in sorted(files.items()):
        place = PurePosixPath(_LICENCE_FILES.sub("", path, count=1))
        folder = "" if place.parent == PurePosixPath() else f"{place.parent}/"
        if _NOTICE.match(place.name):
            denied += [(folder + name, path) for name in _denied_paths(text)]
        elif _TEXT.match(place.name) and not _NOT_CODE.search(place.name) and text.strip():
            texts.setdefault(folder, []).append((path, text))
    package = _judge([*_texts(texts.pop("", [])), *_declared(metadata)])
    folders = {folder: _judge(_texts(group)) for folder, group in texts.items()}
    return Licences(package, _deepest_first(folders), tuple(denied))


def _side_by_side(files: Mapping[str, str], installed: Sequence[str]) -> Licences:
    """Licences of packages that are installed into one folder: each covers the files in its RECORD, and no others."""
    rest = read_licences({path: text for path, text in files.items() if path.partition("/")[0] not in installed})
    folders, denied = dict(rest.folders), list(rest.denied)
    for info in installed:
        own = read_licences({path: text for path, text in files.items() if path.startswith(f"{info}/")})
        denied += own.denied
        for root in _roots(files.get(f"{info}/RECORD", "")) - {f"{info}/"}:
            if not isinstance(folders.get(root), Objection):
                folders[root] = own.package
    return Licences(rest.package, _deepest_first(folders), tuple(denied))


def _roots(record: str) -> set[str]:
    """Top-level folders (ending with "/") and files of a RECORD."""
    paths = [PurePosixPath(line[0]) for line in csv.reader(record.splitlines()) if line]
    return {f"{path.parts[0]}/" if len(path.parts) > 1 else path.name for path in paths if ".." not in path.parts}


def _deepest_first(folders: Mapping[str, Licence | Objection]) -> tuple[tuple[str, Licence | Objection], ...]:
    return tuple(sorted(folders.items(), key=lambda item: (-len(item[0]), item[0])))


@lru_cache(maxsize=4096)
def read_claims(claims: tuple[tuple[str, str], ...]) -> Licence | Objection:
    """Judge the (column, licence) pairs of a table row. All licences must be recognised and permissive."""
    statements = [_Statement(column, spdx.from_statement(licence), binding=True) for column, licence in claims]
    judged = _judge(statements)
    if isinstance(judged, Objection):
        return judged
    terms = sorted({statement.expression for statement in statements if statement.expression})
    return Licence(" AND ".join(f"({term})" if " OR " in term else term for term in terms), judged.evidence)


def is_statement(path: str) -> bool:
    """True if the name of a file is that of metadata, a licence text or a notice."""
    name = PurePosixPath(path).name
    match = _METADATA.fullmatch(path) or _RECORD.fullmatch(path) or _TEXT.match(name) or _NOTICE.match(name)
    return not name.endswith(".py") and bool(match)


@dataclass(frozen=True, slots=True)
class _Statement:
    where: str
    expression: str | None  # None: not recognised
    binding: bool  # True: a text, which must be recognised; False: a field, which may be vague


def _texts(texts: Iterable[tuple[str, str]]) -> Iterable[_Statement]:
    for path, text in texts:
        yield _Statement(path, spdx.from_text(text), binding=True)


def _declared(metadata: str) -> Iterable[_Statement]:
    headers = HeaderParser().parsestr(metadata)
    fields = [("License-Expression", headers.get("License-Expression")), ("License", headers.get("License"))]
    fields += [("Classifier", c) for c in headers.get_all("Classifier") or () if c.startswith("License ::")]
    for name, value in fields:
        if value and value.strip():
            denied = _DENIAL.search(value) if len(value) < 1000 else None
            expression = spdx.from_statement(value) or (f"LicenseRef-{name}" if denied else None)
            yield _Statement(name, expression, binding=False)


def _judge(statements: Iterable[_Statement]) -> Licence | Objection:
    """Licence of the first recognised statement, or an objection if any statement has one."""
    recognised: list[_Statement] = []
    for statement in statements:
        if statement.expression is None and statement.binding:
            return _objection(f"{statement.where} is not recognised")
        if statement.expression is not None:
            if not spdx.is_permissive(statement.expression):
                return _objection(f"{statement.where} says {statement.expression}")
            recognised.append(statement)
    if not recognised:
        return UNSTATED
    evidence = dict.fromkeys(f"{statement.where}: {statement.expression}" for statement in recognised)
    precise = next((s for s in recognised if s.where == "License-Expression"), recognised[0])
    return Licence(precise.expression or "", "; ".join(evidence))


def _denial(text: str) -> str | None:
    """Line with which a file denies permission, None if there is none."""
    for match in chain.from_iterable(_DENIAL.finditer(text, start, end) for start, end in _around_hints(text)):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        line = text[start : end if end >= 0 else len(text)].strip()
        if not _OF_WEIGHTS.search(line) or _OF_CODE.search(line):
            return line[:200]
    return None


def _around_hints(text: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that have a hint, in order and apart from each other."""
    lower = text.lower()
    if len(lower) != len(text):  # as for a capital I with a dot: places in `lower` are not those in `text`
        yield 0, len(text)
        return
    places = sorted(place for hint in _HINTS for place in _places(lower, hint))
    start = end = -1
    for place in places:
        if place - _AROUND > end:
            if end >= 0:
                yield start, end
            start = max(0, place - _AROUND)
        end = place + _AROUND
    if end >= 0:
        yield start, end


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _denied_paths(notice: str) -> list[str]:
    """Files and folders named in the sections of a notice that deny permission."""
    paths: list[str] = []
    for section in re.split(r"\n(?=#|\d+\.\s|={5,}|-{5,})", _URL.sub("", notice)):
        if _DENIAL.search(section):
            paths += [path for path in _PATH.findall(section) if "/" in path]
    return sorted(set(paths))


def _objection(evidence: str) -> Objection:
    return Objection(Reason.LICENCE_NOT_PERMISSIVE, evidence)
