"""What is compared of a module: digests of its normal forms, and its shingles, with keys to find neighbours by."""

from __future__ import annotations

import ast
import io
import tokenize
import zlib
from dataclasses import dataclass

from rensa import RMinHash

from kernelquarry.pipeline.schema.ids import sha256

from . import normal

SHINGLE = 5  # tokens
# Two sources of Jaccard similarity s share one of 25 bands of 5 rows with probability 1 - (1 - s^5)^25:
# 0.99995 at the threshold, 0.54 at 0.5, 0.06 at 0.3. Candidates are then compared in full.
BANDS, ROWS = 25, 5
THRESHOLD = 0.8
_SEED = 1
_LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True, slots=True)
class Form:
    """Everything that deduplication knows of one source."""

    exact: str  # digest of the source up to formatting, comments, docstrings and annotations
    renamed: str  # digest of the source up to names, beyond that
    shingles: frozenset[int]  # checksums of all runs of SHINGLE tokens

    @property
    def keys(self) -> tuple[str, ...]:
        """Grouping keys: forms that share none are no copies, but for the misses that BANDS and ROWS allow."""
        sketch = RMinHash(num_perm=BANDS * ROWS, seed=_SEED)
        sketch.update([f"{shingle:08x}" for shingle in self.shingles])
        values = [f"{value:08x}" for value in sketch.digest()]
        bands = ("".join(values[i * ROWS : (i + 1) * ROWS]) for i in range(BANDS))
        return (f"renamed:{self.renamed}", *(f"band{i}:{band}" for i, band in enumerate(bands)))


def form_of(python_code: str) -> Form:
    """Raises: SyntaxError if the code does not parse, RecursionError if it is nested too deeply."""
    tree = normal.exact(python_code)
    text = ast.unparse(tree)
    return Form(
        exact=sha256(text),
        renamed=sha256(ast.unparse(normal.renamed(tree))),
        shingles=frozenset(zlib.crc32(shingle.encode()) for shingle in _shingles(text)),
    )


def similarity(a: Form, b: Form) -> float:
    """Jaccard similarity of the shingles, 1 for equal sources."""
    return len(a.shingles & b.shingles) / len(a.shingles | b.shingles)


def are_copies(a: Form, b: Form) -> bool:
    return a.renamed == b.renamed or similarity(a, b) >= THRESHOLD


def _shingles(text: str) -> list[str]:
    tokens = [t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in _LAYOUT]
    windows = range(max(1, len(tokens) - SHINGLE + 1))
    return [" ".join(tokens[i : i + SHINGLE]) for i in windows]
