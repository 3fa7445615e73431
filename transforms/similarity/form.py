"""Forms: digests of a module's normal forms, and its shingles, with keys to find similar modules by."""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from kernelquarry.pipeline.schema.ids import sha256

from . import normal_form

SHINGLE = 5  # tokens
# Two sources of Jaccard similarity s share one of 25 bands of 5 rows with probability 1 - (1 - s^5)^25:
# 0.9998 at 0.78, 0.99 at 0.7, 0.06 at 0.3. Sources that share a band are then compared in full.
BANDS, ROWS = 25, 5
THRESHOLD = 0.78  # of copies: below 0.8 by 0.02, the difference that another tokenisation makes
KINSHIP = 0.7  # of modules that share a cluster, and so a split
Checksums = npt.NDArray[np.uint32]
_SEED = 1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+(?:\.\d+)?|[*/<>=!]{2}|[^\w\s]""")
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Form:
    """The part of a source that deduplication compares."""

    exact: str  # digest of the source up to formatting, comments, docstrings and annotations
    renamed: str  # the same, and up to names
    blind: str  # the same, and up to numbers and strings
    behaviour: str  # `Probed.behaviour`
    signature: str  # digest of the operator paths
    shingles: bytes  # checksums of all runs of SHINGLE tokens, uint32, sorted
    words: bytes = b""  # the same with strings split into words; b"" if that makes no difference
    is_slice: bool = False  # too short to be compared by its shingles: most of them are those of any module
    origin: str = ""  # of a slice: signature of the module that alone has its pattern; "": others have it too

    @property
    def bands(self) -> tuple[str, ...]:
        """MinHash bands: similar forms share at least one, with the probabilities given at BANDS. A slice has none."""
        if self.is_slice:
            return ()
        values = [f"{value:08x}" for value in minhash(self.shingles, BANDS * ROWS)]
        bands = ("".join(values[i * ROWS : (i + 1) * ROWS]) for i in range(BANDS))
        return tuple(f"band{i}:{band}" for i, band in enumerate(bands))


def form_of(python_code: str, behaviour: str = "", signature: str = "") -> Form:
    """The form of a source. Raises: SyntaxError, or RecursionError if the code is nested too deeply."""
    tree = normal_form.exact(python_code)
    text = ast.unparse(tree)
    names = ast.unparse(normal_form.renamed(tree))
    whole, cut = (shingles(words, SHINGLE) for words in (tokens(text), _WORD.findall(text)))
    return Form(
        exact=sha256(text),
        renamed=sha256(names),
        blind=sha256(normal_form.blind(names)),
        behaviour=behaviour,
        signature=signature,
        shingles=whole,
        words=cut if cut != whole else b"",
    )


def similarity(a: Form, b: Form) -> float:
    """Jaccard similarity of the shingles, the larger one with whole and with split strings; 1 for equal sources."""
    return max(_jaccard(ones, others) for ones, others in _tokenisations(a, b))


def _tokenisations(a: Form, b: Form) -> Iterator[tuple[bytes, bytes]]:
    yield a.shingles, b.shingles
    if a.words or b.words:
        yield a.words or a.shingles, b.words or b.shingles


def _jaccard(packed: bytes, other: bytes) -> float:
    ones, others = (np.frombuffer(shingles, np.uint32) for shingles in (packed, other))
    shared = len(np.intersect1d(ones, others, assume_unique=True))
    return float(shared / (len(ones) + len(others) - shared))


def _copy_keys(form: Form) -> tuple[str, ...]:
    behaviour = (f"behaviour:{form.behaviour}",) if form.behaviour else ()
    return (f"renamed:{form.renamed}", *behaviour)


def _kin_keys(form: Form) -> tuple[str, ...]:
    signature = (f"signature:{form.signature}",) if form.signature else ()
    origin = (f"signature:{form.origin}",) if form.origin else ()
    return (f"blind:{form.blind}", *signature, *origin)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that holds between two forms that share a key or have similar texts."""

    keys: Callable[[Form], tuple[str, ...]]
    threshold: float  # of the similarity

    def holds(self, a: Form, b: Form) -> bool:
        if not set(self.keys(a)).isdisjoint(self.keys(b)):
            return True
        if a.is_slice or b.is_slice:
            return False
        return any(self._is_near(ones, others) for ones, others in _tokenisations(a, b))

    def _is_near(self, packed: bytes, other: bytes) -> bool:
        shorter, longer = sorted((len(packed), len(other)))
        if shorter / longer < self.threshold:  # an upper bound of the similarity
            return False
        return _jaccard(packed, other) >= self.threshold


COPIES = Relation(_copy_keys, THRESHOLD)  # deduplication keeps one of them
KIN = Relation(_kin_keys, KINSHIP)  # they share a cluster


def tokens(code: str) -> list[str]:
    """Words, strings and operators of code written by `ast.unparse`."""
    return _TOKEN.findall(code)


def shingles(words: Sequence[str], length: int) -> bytes:
    """Distinct checksums of all runs of `length` words, or of all words if they are fewer: uint32, sorted."""
    return np.unique(runs(words, min(length, len(words)))).tobytes()


def runs(words: Sequence[str], length: int) -> Checksums:
    """Checksums of the runs of `length` words, in their order."""
    of_words = np.fromiter((zlib.crc32(word.encode()) for word in words), np.uint64, len(words))
    found = np.zeros(max(0, len(words) - length + 1), np.uint64)
    for place in range(length):  # a polynomial hash of the words' checksums, modulo 2^64
        found = found * _FACTOR + of_words[place : place + len(found)]
    mixed = (found ^ (found >> np.uint64(29))) * _FACTOR
    return (mixed >> np.uint64(32)).astype(np.uint32)


def minhash(packed: bytes, permutations: int) -> list[int]:
    """The MinHash signature of packed shingles."""
    sketch = RMinHash(num_perm=permutations, seed=_SEED)
    sketch.update([f"{shingle:08x}" for shingle in np.frombuffer(packed, np.uint32)])
    return [int(value) for value in sketch.digest()]
