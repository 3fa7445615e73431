"""Fingerprints of rows and of benchmark problems: digests and checksums, without any text."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.similarity import normal_form
from kernelquarry.transforms.similarity.form import Checksums, runs, tokens
from kernelquarry.transforms.similarity.operator_signature import (
    paths_of,
    signature_of,
    signatures_without_one,
    size,
)

RUN = 10  # tokens
LEAST = 8  # runs of a sample, else it is empty: fewer are no evidence


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The values that the ladder compares."""

    source: str  # digest of the source up to names, numbers, strings and formatting
    runs: bytes  # checksums of the runs of RUN tokens, uint32: all of a row's, a sample of a problem's
    signatures: tuple[str, ...] = ()  # of the operator graphs; empty if the module did not run
    size: int = 0  # operators of the smallest graph, where a layer is one
    operators: int = 0  # the same; 1 if the problem's benchmark calls it a single operator
    shortened: tuple[str, ...] = ()  # of a row only: signatures of its graph without one operator
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


def fingerprint_of(
    code: str, graphs: Sequence[str] = (), behaviours: Iterable[str] = (), is_row: bool = True
) -> Fingerprint:
    """The fingerprint of a module's source and of its probed graphs and behaviours.

    Raises: SyntaxError if the code does not parse, RecursionError if it is nested too deeply.
    """
    tree = normal_form.exact(code)
    text = ast.unparse(_without_imports(tree))
    signed = {signature: size(graph) for graph in graphs if (signature := signature_of(paths_of(graph)))}
    smallest = min(signed.values(), default=0)
    return Fingerprint(
        source=sha256(normal_form.blind(ast.unparse(normal_form.renamed(tree)))),
        runs=runs(tokens(text), RUN).tobytes(),
        signatures=tuple(sorted(signed)),
        size=smallest,
        operators=smallest,
        shortened=tuple(sorted({one for graph in graphs if is_row for one in signatures_without_one(graph)})),
        behaviours=tuple(sorted(set(behaviours))),
    )


def fingerprint_all(modules: Iterable[Probed]) -> list[tuple[Probed, Fingerprint]]:
    """Each module with its fingerprint."""
    return [(module, fingerprint_of(module.python_code, (module.graph,), module.behaviours)) for module in modules]


def problems_of(benchmark: str, fingerprints: Mapping[str, Fingerprint]) -> tuple[Problem, ...]:
    """The problems of a benchmark, by name, with a sample of their runs.

    The sampled runs of a problem do not overlap: whoever finds the tokens of one learns nothing about the next.
    Runs that several problems share are left out, and so are samples of fewer than LEAST runs.
    """
    found = {name: np.frombuffer(one.runs, np.uint32).tolist() for name, one in fingerprints.items()}
    shared = Counter(run for of_one in found.values() for run in set(of_one))
    return tuple(
        Problem(benchmark, name, replace(one, runs=_sample(found[name], shared), shortened=()))
        for name, one in sorted(fingerprints.items())
    )


def _sample(ordered: Sequence[int], shared: Mapping[int, int]) -> bytes:
    sample = np.unique(np.fromiter(_apart(ordered, shared), np.uint32))
    return bytes(sample.tobytes()) if len(sample) >= LEAST else b""


def _apart(ordered: Sequence[int], shared: Mapping[int, int]) -> Iterator[int]:
    """The first run that no other problem has, and each next one that starts behind the end of the last."""
    start = 0
    for place, run in enumerate(ordered):
        if place >= start and shared[run] == 1:
            start = place + RUN
            yield run


def packed(values: bytes) -> Checksums:
    """The runs of a fingerprint as an array."""
    return np.frombuffer(values, np.uint32)


def _without_imports(tree: ast.Module) -> ast.Module:
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.Module(body=body, type_ignores=[])
