"""Files of a tree -> an outcome for each Python file: decoded, with its licence. No code runs."""

from __future__ import annotations

import codecs
import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from kernelquarry.filters.licences import Licences, is_statement, read_licences
from kernelquarry.filters.objection import Objection
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import SourceRef
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import SourceFile

from .source import Contents, Tree

MAX_BYTES = 1_000_000
# Python would accept them; they can make text of anything, or take for ever.
_NO_FILE_ENCODINGS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
MAX_STATEMENT_BYTES = 200_000  # a licence text is much shorter


class _NotFit(Exception):
    """The file is dropped."""

    def __init__(self, reason: Reason, evidence: str) -> None:
        super().__init__(evidence)
        self.reason, self.evidence = reason, evidence


def read_tree(tree: Tree) -> Iterator[Outcome[SourceFile]]:
    """An outcome for each `.py` file of the tree, in the order of their paths.

    Raises:
        UserError: the tree as a whole cannot be read.
    """
    with tree.open() as contents:
        paths = sorted(contents.paths())
        licences = read_licences(_statements(contents, paths))
        seen: set[str] = set()
        for path in paths:
            if path.endswith(".py"):
                yield _read_file(tree, contents, path, licences, path in seen)
                seen.add(path)


def _statements(contents: Contents, paths: Iterable[str]) -> dict[str, str]:
    wanted = {path for path in paths if is_statement(path) and contents.size(path) <= MAX_STATEMENT_BYTES}
    return {path: _statement(contents, path) for path in sorted(wanted)}


def _statement(contents: Contents, path: str) -> str:
    """One that cannot be read permits nothing, as one that is not understood."""
    try:
        return contents.read(path).decode(errors="replace")
    except OSError as error:
        return f"unreadable: {error}"


def _read_file(tree: Tree, contents: Contents, path: str, licences: Licences, again: bool) -> Outcome[SourceFile]:
    unit = f"{tree.package}@{tree.revision}/{path}"
    try:
        if again or not _is_plain(path):
            raise _NotFit(Reason.NOT_PYTHON, "the path stands twice in the archive" if again else "unsafe path")
        size = contents.size(path)
        if size > MAX_BYTES:
            raise _NotFit(Reason.TOO_LARGE, f"{size} bytes")
        data = contents.read(path)
        text = decode(data)
    except _NotFit as unfit:
        return Dropped(unit, unfit.reason, unfit.evidence)
    except OSError as error:
        return Errored(unit, type(error).__name__, str(error))
    licence = licences.of(path, text)
    if isinstance(licence, Objection):
        return Dropped(unit, licence.reason, licence.evidence)
    return Kept(SourceFile(SourceRef(tree.corpus, tree.package, tree.revision, path, sha256(data)), licence, text))


def decode(data: bytes) -> str:
    """Text of a Python file in its declared encoding (PEP 263) or by its byte order mark.

    Raises:
        _NotFit: it is no text, or not in that encoding.
    """
    if b"\0" in data:
        raise _NotFit(Reason.NOT_PYTHON, "holds null bytes")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if codecs.lookup(encoding).name in _NO_FILE_ENCODINGS:
            raise _NotFit(Reason.UNDECODABLE, f"{encoding} is no encoding for files")
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise _NotFit(Reason.UNDECODABLE, str(error)[:200]) from None


def _is_plain(path: str) -> bool:
    """A path that stays below the root of its tree, on any system."""
    return not (path.startswith("/") or "\\" in path or ":" in path or ".." in PurePosixPath(path).parts)
