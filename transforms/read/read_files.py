"""Read the Python files of a shard: decode them and determine their licences. No code runs."""

from __future__ import annotations

import codecs
import io
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from kernelquarry.filters.licence_policy import AS_STATED, LicencePolicy
from kernelquarry.filters.objection import Objection
from kernelquarry.filters.optout import OptOut
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import SourceRef
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import SourceFile

from .corpus import CorpusFile, Shard

MAX_BYTES = 1_000_000
# Python accepts these encodings, but they decode any bytes, or take very long.
_FORBIDDEN_ENCODINGS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})


class _Unfit(Exception):
    """Raised when a file must be dropped; holds the reason."""

    def __init__(self, reason: Reason, evidence: str) -> None:
        super().__init__(evidence)
        self.reason, self.evidence = reason, evidence


def read_shard(
    shard: Shard, opt_out: OptOut | None = None, policy: LicencePolicy = AS_STATED
) -> Iterator[Outcome[SourceFile]]:
    """Read each Python file of the shard.

    Raises:
        UserError: the shard as a whole cannot be read.
    """
    opt_out, seen = opt_out or OptOut(), set[str]()
    for file in shard.files():
        if isinstance(file, CorpusFile):
            yield _read_file(shard.corpus, file, file.id in seen, opt_out, policy)
            seen.add(file.id)
        else:
            yield file


def _read_file(
    corpus: str, file: CorpusFile, is_repeated: bool, opt_out: OptOut, policy: LicencePolicy
) -> Outcome[SourceFile]:
    unit = file.id.encode(errors="backslashreplace").decode()  # file names may hold bytes that are not text
    try:
        if is_repeated or unit != file.id or not _is_plain(file.path):
            raise _Unfit(Reason.NOT_PYTHON, "the source has this path twice" if is_repeated else "unsafe path")
        if file.size > MAX_BYTES:
            raise _Unfit(Reason.TOO_LARGE, f"{file.size} bytes")
        data = file.read()
        text = decode(data, file.encoding)
    except _Unfit as unfit:
        return Dropped(unit, unfit.reason, unfit.evidence)
    except OSError as error:
        return Errored(unit, type(error).__name__, str(error))
    source = SourceRef(corpus, file.package, file.revision, file.path, sha256(data))
    objection = opt_out(source, text)
    if objection is None:
        licence = policy.resolve(file.licences.of(file.path, text))
        if not isinstance(licence, Objection):
            return Kept(SourceFile(source, licence, text))
        objection = licence
    return Dropped(unit, objection.reason, objection.evidence)


def decode(data: bytes, encoding: str = "") -> str:
    """Decode a Python file by `encoding`, or by its declared encoding (PEP 263) or byte order mark.

    Raises:
        _Unfit: the bytes are not text in that encoding.
    """
    if b"\0" in data:
        raise _Unfit(Reason.NOT_PYTHON, "holds null bytes")
    try:
        name = encoding or tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        if codecs.lookup(name).name in _FORBIDDEN_ENCODINGS:
            raise _Unfit(Reason.UNDECODABLE, f"{name} is not an encoding for files")
        return data.decode(name).removeprefix("\ufeff")
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise _Unfit(Reason.UNDECODABLE, str(error)[:200]) from None


def _is_plain(path: str) -> bool:
    """True if the path stays below the root of its tree, on any operating system."""
    return not (path.startswith("/") or any(c in path for c in "\0\\:") or ".." in PurePosixPath(path).parts)
