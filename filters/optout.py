"""Opt-out list: people who do not want their code in a dataset, and the files and rows that this affects.

A build skips the listed files; rows of them are withdrawn from published datasets. The list is a text file with one
entry a line; `#` starts a comment:

    repository  owner/name
    repository  owner/*             every repository of an owner
    package     some-package        a distribution of a package index
    author      Jane Doe            named in `__author__`, `@author` or a copyright line, or the owner of the repository
    author      jane@example.org    an address anywhere in the file

Case does not matter. Package names match in any spelling (`Some_Package`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import resources
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import SourceRef
from kernelquarry.pipeline.schema.reasons import Reason

from .objection import Objection

KINDS = ("repository", "package", "author")
_NAMING = re.compile(r"^.*(?:__author__|@author|\bauthors?\b\s*[:=]|copyright|\(c\)).*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class OptOut:
    """Entries of an opt-out list in lower case."""

    repositories: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    authors: frozenset[str] = frozenset()

    def __or__(self, other: OptOut) -> OptOut:
        return OptOut(
            self.repositories | other.repositories, self.packages | other.packages, self.authors | other.authors
        )

    def lines(self) -> list[str]:
        """Sorted lines of the list: equal lists have equal lines."""
        entries = (("repository", self.repositories), ("package", self.packages), ("author", self.authors))
        return [f"{kind} {name}" for kind, names in entries for name in sorted(names)]

    @property
    def digest(self) -> str:
        """SHA-256 of the list, independent of its order and spelling."""
        return sha256("\n".join(self.lines()))

    def __call__(self, source: SourceRef, text: str) -> Objection | None:
        """Object to a file, or to a row made from it, if an entry matches its source or its `text`."""
        package = source.package.lower()
        owner, slash, _ = package.partition("/")
        if slash:
            for pattern in sorted(self.repositories):
                if fnmatchcase(package, pattern):
                    return _objection(f"repository {pattern}")
            if owner in self.authors:
                return _objection(f"author {owner}")
        elif canonical_package(package) in self.packages:
            return _objection(f"package {canonical_package(package)}")
        return self._author(text)

    def _author(self, text: str) -> Objection | None:
        if self._addresses is not None and (match := self._addresses.search(text)):
            return _objection(f"author {match.group().lower()}")
        if self._names is not None:
            for line in _NAMING.finditer(text):
                if match := self._names.search(line.group()):
                    return _objection(f"author {match.group().lower()}")
        return None

    @cached_property
    def _addresses(self) -> re.Pattern[str] | None:
        return _any_of(sorted(author for author in self.authors if "@" in author))

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        return _any_of(sorted(author for author in self.authors if "@" not in author))


def parse_opt_out(text: str, place: str) -> OptOut:
    """Parse a list. Raises: UserError: a line is not an entry. Skipping it would lose an opt-out to a typing error."""
    entries: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].split(maxsplit=1)
        if not entry:
            continue
        if len(entry) != 2 or entry[0] not in KINDS or (entry[0] == "repository" and "/" not in entry[1]):
            raise UserError(
                f"{place}, line {number}: expected `repository owner/name`, `package name` or `author name`, "
                f"got `{line.strip()}`"
            )
        kind, name = entry[0], " ".join(entry[1].lower().split())
        entries[kind].add(canonical_package(name) if kind == "package" else name)
    return OptOut(frozenset(entries["repository"]), frozenset(entries["package"]), frozenset(entries["author"]))


def read_opt_out(path: Path | None = None) -> OptOut:
    """Read the shipped list and add the list in `path`. Raises: UserError: `path` cannot be read or parsed."""
    shipped = parse_opt_out(resources.files("kernelquarry.filters").joinpath("opt-out.txt").read_text(), "opt-out.txt")
    if path is None:
        return shipped
    try:
        return shipped | parse_opt_out(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise UserError(f"{path}: {problem}: give the opt-out list as a text file") from None


def canonical_package(name: str) -> str:
    """Normalise a package name as package indexes do (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _any_of(names: list[str]) -> re.Pattern[str] | None:
    if not names:
        return None
    joined = "|".join(r"\s+".join(map(re.escape, name.split())) for name in names)
    return re.compile(rf"(?<![\w.-])(?:{joined})(?![\w-])", re.IGNORECASE)


def _objection(evidence: str) -> Objection:
    return Objection(Reason.OPTED_OUT, evidence)
