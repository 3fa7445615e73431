"""All mutants of a pair, and a fair choice among those of many."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import StateSpec, Workload

from . import arithmetic, indexing, launching, masking, module_state, precision, reduction, synchronisation
from .operator import Fault, Operator
from .source_edits import Edit, Source

_OPERATORS = (
    *arithmetic.OPERATORS,
    *indexing.OPERATORS,
    *masking.OPERATORS,
    *reduction.OPERATORS,
    *precision.OPERATORS,
    *synchronisation.OPERATORS,
    *launching.OPERATORS,
)


class Original(Protocol):
    """What mutants are made of: a published row, or a candidate on its way to be one."""

    @property
    def id(self) -> str: ...
    @property
    def triton_code(self) -> str: ...
    @property
    def workloads(self) -> tuple[Workload, ...]: ...
    @property
    def state(self) -> tuple[StateSpec, ...]: ...


@dataclass(frozen=True, slots=True)
class Mutant:
    """A candidate with one mistake."""

    pair: str  # id of the row that it is made from
    operator: str
    fault: Fault
    line: int
    what: str
    code: str

    @property
    def id(self) -> str:
        return f"mutant_{sha256(f'{self.pair} {self.code}')[:16]}"


def operators(pair: Original) -> tuple[Operator, ...]:
    """All that there are, for this row."""
    return _OPERATORS + module_state.operators({spec.name: spec for spec in pair.state})


def find_mutants(pair: Original) -> list[Mutant]:
    """All mutants of the row: in the order of operators, then of lines; each valid Python, no two alike."""
    source = Source(pair.triton_code, pair.workloads[0])
    found: dict[str, Mutant] = {}
    for operator in operators(pair):
        for edit in sorted(set(operator.find(source))):
            mutant = _mutant(pair, source, operator, edit)
            if mutant is not None:
                found.setdefault(mutant.code, mutant)
    return list(found.values())


def choose(pairs: Sequence[Original], number: int, seed: int) -> list[Mutant]:
    """`number` mutants, spread evenly over classes, rows and operators, or all if there are fewer.

    The classes take turns; within a class the rows do, and within a row the operators. A smaller number
    gives the beginning of the list that a larger one gives.
    """
    order = random.Random(seed)
    rows = order.sample(list(pairs), len(pairs))
    queues: dict[Fault, list[_Queue]] = {fault: [] for fault in Fault}
    for pair in rows:
        for fault, queue in _queues(pair, order).items():
            queues[fault].append(queue)
    turns = [_in_turns(queue) for queue in queues.values()]
    chosen: dict[str, Mutant] = {}
    while turns and len(chosen) < number:
        for turn in list(turns):
            mutant = next((found for found in turn if found.code not in chosen), None)
            if mutant is None:
                turns.remove(turn)
            elif len(chosen) < number:
                chosen[mutant.code] = mutant
    return list(chosen.values())


# Operators whose mutants are wrong, but for very few: of 2,200 mutants of all operators (`benchmarks/mutants.py`), four
# of these had one each for which no witness was found, `argument_order`, `stride`, `only_last_block`, `parameter_kept`.
_LIKELY = frozenset(
    "inverse_operator other_operator term_dropped negated function_dropped truncated divisor modulo_for_division "
    "off_by_one stride strides_swapped argument_order launch_missing parameter_ignored parameter_initial "
    "parameter_kept parameter_of_another parameter_transposed accumulators loads stores first_block_missing "
    "only_last_block division_missing count_one_off argument_fixed size_fixed".split()
)


def choose_likely(original: Original, number: int) -> list[Mutant]:
    """`number` mutants of one original, or fewer, each of another operator whose mutants are hardly ever equivalent.

    Which operators is decided by its id, so that rows differ.
    """
    source = Source(original.triton_code, original.workloads[0])
    likely = [operator for operator in operators(original) if operator.name in _LIKELY]
    found: list[Mutant] = []
    for operator in sorted(likely, key=lambda operator: sha256(f"{original.id} {operator.name}")):
        if len(found) == number:
            break
        edits = sorted(set(operator.find(source)))
        if edits:
            edit = edits[int(sha256(original.id)[:8], 16) % len(edits)]
            mutant = _mutant(original, source, operator, edit)
            found += [mutant] if mutant is not None else []
    return found


@dataclass(slots=True)
class _Queue:
    """What is left of a row's edits of one class, the next last."""

    pair: Original
    edits: list[tuple[Operator, Edit]]

    def next(self) -> Mutant | None:
        """The next that is valid."""
        while self.edits:
            operator, edit = self.edits.pop()
            mutant = _mutant(self.pair, Source(self.pair.triton_code, self.pair.workloads[0]), operator, edit)
            if mutant is not None:
                return mutant
        return None


def _queues(pair: Original, order: random.Random) -> dict[Fault, _Queue]:
    """Of each class that the row has edits of; operators alternate."""
    source = Source(pair.triton_code, pair.workloads[0])
    edits: dict[Fault, list[list[tuple[Operator, Edit]]]] = {}
    for operator in operators(pair):
        found = [(operator, edit) for edit in sorted(set(operator.find(source)))]
        order.shuffle(found)
        edits.setdefault(operator.fault, []).append(found)
    queues = {}
    for fault, lists in edits.items():
        order.shuffle(lists)
        rounds = range(max(map(len, lists)))
        mixed = [found[place] for place in rounds for found in lists if place < len(found)]
        if mixed:
            queues[fault] = _Queue(pair, mixed[::-1])
    return queues


def _in_turns(queues: Sequence[_Queue]) -> Iterator[Mutant]:
    left = list(queues)
    while left:
        for queue in list(left):
            mutant = queue.next()
            if mutant is None:
                left.remove(queue)
            else:
                yield mutant


def _mutant(pair: Original, source: Source, operator: Operator, edit: Edit) -> Mutant | None:
    """None if the edit changes nothing but the text, or leaves no Python."""
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


def diff(pair: Original, mutant: Mutant) -> str:
    """What was changed, as a unified diff with no context."""
    lines = difflib.unified_diff(pair.triton_code.splitlines(), mutant.code.splitlines(), lineterm="", n=0)
    return "\n".join(list(lines)[2:])
