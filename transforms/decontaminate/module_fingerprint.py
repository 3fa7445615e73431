"""Fingerprints of rows and of benchmark problems: digests and checksums, without any text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.similarity import normal_form
from kernelquarry.transforms.similarity.form import SHINGLE, minhash, shingles, tokens
from kernelquarry.transforms.similarity.operator_signature import Paths, paths_of

NGRAMS = (10, 13)  # tokens
PERMUTATIONS = 128


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The values that the ladder compares."""

    exact: str  # digest of the source up to formatting, comments, docstrings, annotations and imports
    renamed: str  # digest of the source up to names
    erased: str  # digest of the source up to names, numbers and strings
    ngrams: tuple[bytes, ...]  # for each of NGRAMS, checksums of all runs of so many tokens: uint32, sorted
    sketch: tuple[int, ...]  # MinHash signature of the runs of SHINGLE tokens
    paths: Paths = field(default_factory=Paths)  # operator paths of the graph; empty if the module did not run
    behaviours: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One task of a benchmark."""

    benchmark: str
    name: str
    fingerprint: Fingerprint

    @property
    def id(self) -> str:
        return f"{self.benchmark}/{self.name}"


def fingerprint_of(code: str, graph: str = "[]", behaviours: Sequence[str] = ()) -> Fingerprint:
    """The fingerprint of a module's source and of its probed graph and behaviours.

    Raises: SyntaxError if the code does not parse, RecursionError if it is nested too deeply.
    """
    tree = normal_form.exact(code)
    text = ast.unparse(_without_imports(tree))
    names = ast.unparse(normal_form.renamed(tree))
    words = tokens(text)
    return Fingerprint(
        exact=sha256(text),
        renamed=sha256(names),
        erased=sha256(normal_form.blind(names)),
        ngrams=tuple(shingles(words, length) for length in NGRAMS),
        sketch=tuple(minhash(shingles(words, SHINGLE), PERMUTATIONS)),
        paths=paths_of(graph),
        behaviours=tuple(behaviours),
    )


def fingerprint_all(modules: Iterable[Probed]) -> list[tuple[Probed, Fingerprint]]:
    """Each module with its fingerprint."""
    return [(module, fingerprint_of(module.python_code, module.graph, module.behaviours)) for module in modules]


def _without_imports(tree: ast.Module) -> ast.Module:
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.Module(body=body, type_ignores=[])
