"""Smaller and other sizes of a problem in KernelBench's form, by other integers in its source.

The sizes of such a problem are integers that its module-level statements, `get_inputs` and `get_init_inputs` contain.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernelquarry.pipeline.sandbox.jobs.describe_problem import SizeLimits

_FUNCTIONS = ("get_inputs", "get_init_inputs")
_LEAST = 3  # smaller integers are strides, kernel sizes and axes rather than sizes
_STEPS = 200  # tries to make a problem smaller

Size = tuple[tuple[int, int, int], ...]  # places of one size in the source: line, and first and last column in bytes
Sizes = dict[Size, int]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a module and one call of it."""

    parameters: int
    elements: int
    flops: int

    def exceeds(self, limits: SizeLimits) -> bool:
        return self.parameters > limits.parameters or self.elements > limits.elements or self.flops > limits.flops

    def is_less(self, other: Cost) -> bool:
        mine, theirs = (self.parameters, self.elements, self.flops), (other.parameters, other.elements, other.flops)
        return mine != theirs and all(one <= two for one, two in zip(mine, theirs, strict=True))


def sizes_of(code: str) -> Sizes:
    """The integers that may be sizes. Equal integers in the bodies of the two functions are one size."""
    sizes: Sizes = {}
    inside: dict[int, Size] = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS:
            for value, place in _integers(node):
                inside[value] = (*inside.get(value, ()), place)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            sizes |= {(place,): value for value, place in _integers(node)}
    return sizes | {places: value for value, places in inside.items()}


def _integers(tree: ast.AST) -> Iterator[tuple[int, tuple[int, int, int]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
            assert node.end_col_offset is not None
            yield node.value, (node.lineno, node.col_offset, node.end_col_offset)


def with_sizes(code: str, sizes: Mapping[Size, int]) -> str:
    """The source with these integers at their places."""
    lines = code.split("\n")
    edits = [(place, value) for places, value in sizes.items() for place in places]
    for (line, start, end), value in sorted(edits, reverse=True):
        text = lines[line - 1].encode()
        lines[line - 1] = (text[:start] + str(value).encode() + text[end:]).decode()
    return "\n".join(lines)


def shrink(
    sizes: Sizes,
    cost: Callable[[Sizes], Cost | None],
    limits: SizeLimits,
    least: Mapping[Size, int] = MappingProxyType({}),
) -> Sizes:
    """Halve sizes, the largest first, until the cost is within the limits, or no size makes it smaller.

    Where a size cannot be halved alone, all sizes that are equal to it are halved together. Sizes that differ stay
    different where the module and the limits allow it, since a module may do another thing if they are equal.

    Args:
        cost: of the problem with these sizes; None if it does not run.
        least: the smallest value of a size, where it is not 1.
    """
    shrunk = _halved(sizes, cost, limits, least)
    return _apart(sizes, shrunk, cost, limits, least)


def _halved(sizes: Sizes, cost: Callable[[Sizes], Cost | None], limits: SizeLimits, least: Mapping[Size, int]) -> Sizes:
    now = cost(sizes)
    fixed = {size for size, n in sizes.items() if n // 2 < least.get(size, 0)}
    for _ in range(_STEPS):
        if now is None or not now.exceeds(limits):
            break
        largest = max((n for size, n in sizes.items() if size not in fixed), default=0)
        if largest <= _LEAST:
            break
        equal = [size for size, n in sizes.items() if n == largest]
        for group in ([next(size for size in equal if size not in fixed)], equal):
            smaller = sizes | dict.fromkeys(group, largest // 2)
            less = cost(smaller) if all(largest // 2 >= least.get(size, 0) for size in group) else None
            if less is not None and less.is_less(now):
                sizes, now = smaller, less
                break
        else:
            fixed.add(next(size for size in equal if size not in fixed))
    return sizes


def _apart(
    given: Sizes,
    shrunk: Sizes,
    cost: Callable[[Sizes], Cost | None],
    limits: SizeLimits,
    least: Mapping[Size, int],
) -> Sizes:
    """The shrunk sizes, of which those that only became equal differ again: the smaller is halved, or the larger
    doubled."""
    sizes = shrunk
    for one, other in itertools.combinations(sorted(sizes, key=lambda size: -given[size]), 2):
        if given[one] == given[other] or sizes[one] != sizes[other]:
            continue
        for size, n in ((other, sizes[other] // 2), (one, 2 * sizes[one])):
            like = [each for each in sizes if given[each] == given[size] and sizes[each] == sizes[size]]
            changed = sizes | dict.fromkeys(like, n)
            found = cost(changed) if max(1, least.get(size, 0)) < n <= given[size] else None
            if found is not None and not found.exceeds(limits):
                sizes = changed
                break
    return sizes


def capped(sizes: Sizes, most: int) -> Sizes:
    """Each size halved until it is at most `most`."""
    return {size: n if n <= most else capped({size: n // 2}, most)[size] for size, n in sizes.items()}


def variations(sizes: Sizes, runs: Callable[[Sizes], bool], number: int, unit: int = 1) -> list[Sizes]:
    """Up to `number` other sizes at which the same module runs; each size takes other values than it has before.

    Args:
        runs: True if these sizes give other inputs, on which the module runs with the same constructor arguments.
        unit: other sizes are multiples of it, or of the part of it that divides the size.
    """
    free = _free_groups(sizes, runs)
    found: list[Sizes] = []
    for turn in range(number):
        current, taken = dict(sizes), [sizes, *found]
        for place, group in enumerate(free):
            for n in _other_values(sizes[group[0]], turn, place, unit):
                changed = current | dict.fromkeys(group, n)
                if n not in [each[group[0]] for each in taken] and runs(changed):
                    current = changed
                    break
        if current not in taken:
            found.append(current)
    return found


def _free_groups(sizes: Sizes, runs: Callable[[Sizes], bool]) -> list[list[Size]]:
    """The sizes that can change, alone or together with all sizes that are equal to them."""

    def changes(group: list[Size]) -> bool:
        return any(runs(sizes | dict.fromkeys(group, n)) for n in _other_values(sizes[group[0]], 0, 0))

    alone = [[size] for size in sizes if changes([size])]
    others = [size for size in sizes if [size] not in alone]
    groups = [[size for size in others if sizes[size] == n] for n in dict.fromkeys(sizes[size] for size in others)]
    return [*alone, *(group for group in groups if len(group) > 1 and changes(group))]


def _other_values(size: int, turn: int, place: int, unit: int = 1) -> list[int]:
    """Other values for a size: odd multiples of the unit, different for each place, then even ones."""
    step = math.gcd(size, unit)
    odd = ((size * 3 // 4 // step | 1, size * 5 // 4 // step | 1)[turn] + 2 * place) * step
    others = (odd, odd + 2 * step, (size // 2, 2 * size)[turn], (2 * size, 3 * size)[turn])
    return [n for n in others if 1 < n != size]
