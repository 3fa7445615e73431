"""Find all mutants of a pair, or choose an even sample over several pairs."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import Pair

from . import arithmetic, indexing, launching, masking, module_state, precision, reduction, synchronisation
from .operator import Fault, Operator
from .source_edits import Edit, Source

# In the order of their definition; the random choice of `choose` depends on this order.
OPERATORS = tuple(
    operator
    for module in (arithmetic, indexing, masking, reduction, precision, synchronisation, launching, module_state)
    for operator in vars(module).values()
    if isinstance(operator, Operator)
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A kernel's source with one mistake."""

    pair: str  # id of the row
    operator: str
    fault: Fault
    line: int
    what: str
    code: str

    @property
    def id(self) -> str:
        return f"mutant_{sha256(f'{self.pair} {self.code}')[:16]}"


def find_mutants(pair: Pair) -> list[Mutant]:
    """All mutants by operator, then by line. Each is valid Python, and no two have the same source."""
    source = _parse(pair)
    found: dict[str, Mutant] = {}
    for operator in OPERATORS:
        for edit in operator.edits(source):
            mutant = _apply(pair, source, operator, edit)
            if mutant is not None:
                found.setdefault(mutant.code, mutant)
    return list(found.values())


def choose(pairs: Sequence[Pair], number: int, seed: int) -> list[Mutant]:
    """At most `number` mutants, spread evenly over fault classes, rows and operators.

    The classes take turns; within a class the rows do, and within a row the operators. A smaller `number` gives the
    beginning of the list that a larger one gives.
    """
    order = random.Random(seed)
    rows = order.sample(list(pairs), len(pairs))
    queues: dict[Fault, list[Iterator[Mutant]]] = {fault: [] for fault in Fault}
    for pair in rows:
        for fault, queue in _shuffled_by_fault(pair, order).items():
            queues[fault].append(queue)
    turns = [_alternate(queue) for queue in queues.values()]
    chosen: dict[str, Mutant] = {}
    while turns and len(chosen) < number:
        for turn in list(turns):
            mutant = next((found for found in turn if found.code not in chosen), None)
            if mutant is None:
                turns.remove(turn)
            elif len(chosen) < number:
                chosen[mutant.code] = mutant
    return list(chosen.values())


def _parse(pair: Pair) -> Source:
    return Source(pair.triton_code, pair.workloads[0], pair.state)


def _shuffled_by_fault(pair: Pair, order: random.Random) -> dict[Fault, Iterator[Mutant]]:
    """For each fault class, the row's mutants in random order with alternating operators."""
    source = _parse(pair)
    edits: dict[Fault, list[list[tuple[Operator, Edit]]]] = {}
    for operator in OPERATORS:
        found = [(operator, edit) for edit in operator.edits(source)]
        order.shuffle(found)
        edits.setdefault(operator.fault, []).append(found)
    queues = {}
    for fault, lists in edits.items():
        order.shuffle(lists)
        rounds = range(max(map(len, lists)))
        if mixed := [found[place] for place in rounds for found in lists if place < len(found)]:
            queues[fault] = _apply_all(pair, mixed)
    return queues


def _apply_all(pair: Pair, edits: Sequence[tuple[Operator, Edit]]) -> Iterator[Mutant]:
    for operator, edit in edits:
        if (mutant := _apply(pair, _parse(pair), operator, edit)) is not None:  # many queues: none keeps a tree
            yield mutant


def _alternate(queues: Sequence[Iterator[Mutant]]) -> Iterator[Mutant]:
    """One mutant of each queue in turn, until all are empty."""
    left = list(queues)
    while left:
        for queue in list(left):
            mutant = next(queue, None)
            if mutant is None:
                left.remove(queue)
            else:
                yield mutant


def _apply(pair: Pair, source: Source, operator: Operator, edit: Edit) -> Mutant | None:
    """The mutant; None if the edit does not change the syntax tree, or leaves no valid Python."""
    code = source.apply(edit)
    try:
        same = ast.dump(parse(code)) == source.form
    except SyntaxError:
        return None
    if same:
        return None
    change = f"`{_short(source.between(edit.start, edit.end))}` becomes `{_short(edit.text)}`"
    return Mutant(pair.id, operator.name, operator.fault, source.line(edit), f"{operator.what}: {change}", code)


def _short(text: str, length: int = 60) -> str:
    words = " ".join(text.split())
    return words if len(words) <= length else words[: length - 3] + "..."


def diff(pair: Pair, mutant: Mutant) -> str:
    """The changed lines as a unified diff without context."""
    lines = difflib.unified_diff(pair.triton_code.splitlines(), mutant.code.splitlines(), lineterm="", n=0)
    return "\n".join(list(lines)[2:])
