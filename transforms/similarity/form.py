"""What is compared of a module: digests of its normal forms, and its shingles, with keys to find neighbours by."""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rensa import RMinHash

from kernelquarry.pipeline.schema.ids import sha256

from . import normal_form

SHINGLE = 5  # tokens
# Two sources of Jaccard similarity s share one of 25 bands of 5 rows with probability 1 - (1 - s^5)^25:
# 0.9998 at 0.78, 0.99 at 0.7, 0.06 at 0.3. Candidates are then compared in full.
BANDS, ROWS = 25, 5
THRESHOLD = 0.78  # copies; another reading of tokens differs by up to 0.02, and nobody shall find 0.8
KINSHIP = 0.7  # one split
_SEED = 1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+(?:\.\d+)?|[*/<>=!]{2}|[^\w\s]""")


_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Form:
    """Everything that deduplication knows of one source."""

    exact: str  # digest of the source up to formatting, comments, docstrings and annotations
    renamed: str  # digest of the source up to names, beyond that
    blind: str  # digest of the source up to numbers and strings, beyond that
    behaviour: str  # `Probed.behaviour`
    signature: str  # digest of its operators' paths
    shingles: bytes  # checksums of all runs of SHINGLE tokens, uint32, sorted
    words: bytes = b""  # the same where strings are cut into words too, b"" if that changes nothing

    @property
    def bands(self) -> tuple[str, ...]:
        """Forms that share none are not similar, but for the misses that BANDS and ROWS allow."""
        values = [f"{value:08x}" for value in minhash(self.shingles, BANDS * ROWS)]
        bands = ("".join(values[i * ROWS : (i + 1) * ROWS]) for i in range(BANDS))
        return tuple(f"band{i}:{band}" for i, band in enumerate(bands))


def form_of(python_code: str, behaviour: str = "", signature: str = "") -> Form:
    """Raises: SyntaxError if the code does not parse, RecursionError if it is nested too deeply."""
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
    """Jaccard similarity of the shingles, 1 for equal sources: the larger one of both ways to cut strings."""
    return max(_jaccard(ones, others) for ones, others in _readings(a, b))


def _readings(a: Form, b: Form) -> Iterator[tuple[bytes, bytes]]:
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
    return (f"blind:{form.blind}", *signature)


@dataclass(frozen=True, slots=True)
class Relation:
    """What two forms may be to each other: they share a key, or their texts are similar."""

    keys: Callable[[Form], tuple[str, ...]]
    least: float  # similarity

    def holds(self, a: Form, b: Form) -> bool:
        if not set(self.keys(a)).isdisjoint(self.keys(b)):
            return True
        return any(self._is_near(ones, others) for ones, others in _readings(a, b))

    def _is_near(self, packed: bytes, other: bytes) -> bool:
        shorter, longer = sorted((len(packed), len(other)))
        return shorter / longer >= self.least and _jaccard(packed, other) >= self.least  # no more than the first


COPIES = Relation(_copy_keys, THRESHOLD)  # one of them stays
KIN = Relation(_kin_keys, KINSHIP)  # not in two splits


def tokens(code: str) -> list[str]:
    """Words, strings and signs of code that `ast.unparse` wrote."""
    return _TOKEN.findall(code)


def shingles(words: Sequence[str], length: int) -> bytes:
    """Checksums of all runs of `length` words, or of the one shorter run there is: uint32, sorted, each once."""
    of_words = np.fromiter((zlib.crc32(word.encode()) for word in words), np.uint64, len(words))
    length = min(length, len(words))
    runs = np.zeros(len(words) - length + 1, np.uint64)
    for place in range(length):  # a polynomial of the words' checksums, modulo 2^64
        runs = runs * _FACTOR + of_words[place : place + len(runs)]
    mixed = (runs ^ (runs >> np.uint64(29))) * _FACTOR
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32)).tobytes()


def minhash(packed: bytes, permutations: int) -> list[int]:
    """The MinHash signature of packed shingles."""
    sketch = RMinHash(num_perm=permutations, seed=_SEED)
    sketch.update([f"{shingle:08x}" for shingle in np.frombuffer(packed, np.uint32)])
    return [int(value) for value in sketch.digest()]
