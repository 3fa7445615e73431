"""Shorten addresses with the names of indices and sizes: `(image * pad_height + index) * pad_width + index_2`.

Inductor multiplies addresses out, although the kernel computes such indices for its bounds. An address is taken apart
into the digits of its block index, `x % 20`, `x // 20 % 12`, `x // 240`, and put together from the names that give the
shortest sum.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from kernelquarry.pipeline.schema.parse_python import parse_expression

from ..syntax.algebra import Polynomial, number, order, polynomial, render, without
from ..syntax.ast_tools import called, names_in, walk, with_body
from .forms import is_index

ACCESSES = ("tl.load", "tl.store", "tl.atomic_add")
COMPUTED = "size_"  # beginning of the names of sizes that a kernel does not take, but computes
_SHORT = 2  # terms of an address that stays as it is


def is_size(atom: str) -> bool:
    """True for Inductor's names of sizes, and for sizes that the kernel computes."""
    return atom.startswith(("ks", COMPUTED)) or atom.endswith("numel")


class Addresses:
    """Rewrites the addresses of one kernel, in place."""

    def __init__(self, sizes: Mapping[str, Polynomial], is_integer: Callable[[str], bool]) -> None:
        """`sizes`: values of sizes in terms of others. `is_integer` tells names with one value, a 32-bit integer."""
        self._is_integer = is_integer
        self._values = dict(sizes)  # names that are defined so far, in terms of digits and of sizes
        self._cuts: dict[str, list[Polynomial]] = {}  # index -> the sizes that it is divided by, each a multiple

    def rewrite(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        self._find_cuts(body)
        self._values |= {index: self._digits(index, 0, None) for index in self._cuts}
        return self._statements(body)

    def _statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        result = []
        for statement in body:
            for node in walk(statement) if not isinstance(statement, ast.For) else ():
                match node:
                    case ast.Call(args=[ast.BinOp(left=ast.Name(), op=ast.Add()) as address, *_]):
                        if called(node) in ACCESSES:
                            address.right = self._shortened(address.right)
            match statement:
                case ast.For(body=inner):
                    outer = dict(self._values)
                    statement = with_body(statement, self._statements(inner))
                    self._values = outer
                case ast.Assign(targets=[ast.Name(name)], value=value) if (
                    is_index(value) and self._is_integer(name) and all(map(self._is_integer, names_in(value)))
                ):
                    if (known := self._finest(polynomial(value))) not in self._values.values():
                        self._values[name] = known
            result.append(statement)
        return result

    # Digits

    def _find_cuts(self, body: Sequence[ast.stmt]) -> None:
        found: dict[str, list[Polynomial]] = {}
        for node in (node for statement in body for node in walk(statement)):
            part = self._part(node) if isinstance(node, ast.BinOp) else None
            if part is not None:
                index, low, high = part
                found.setdefault(index, []).extend(size for size in (low, high) if size is not None)
        for index, sizes in found.items():
            chain = [number(1)]
            for size in sorted(sizes, key=_magnitude):
                if size != chain[-1] and size.divided_by(chain[-1]) is not None:
                    chain.append(size)
            self._cuts[index] = chain

    def _part(self, node: ast.expr) -> tuple[str, Polynomial, Polynomial | None] | None:
        """The index of which `node` is a part, and the sizes between which it lies: `x // 20 % 12` -> x, 20, 240."""
        high: Polynomial | None = None
        match node:
            case ast.BinOp(ast.BinOp(ast.Name(index), ast.FloorDiv(), divisor), ast.Mod(), size):
                low = self._size(divisor)
                high = low * self._size(size)
            case ast.BinOp(ast.Name(index), ast.FloorDiv(), divisor):
                low = self._size(divisor)
            case ast.BinOp(ast.Name(index), ast.Mod(), size):
                low, high = number(1), self._size(size)
            case _:
                return None
        return (index, low, high) if index.endswith("index") else None

    def _size(self, node: ast.expr) -> Polynomial:
        return polynomial(node).replaced(self._values)

    def _digits(self, index: str, low: int, high: int | None) -> Polynomial:
        """The part of an index between two cuts as a sum of digits."""
        cuts, result = self._cuts[index], number(0)
        for place in range(low, len(cuts) if high is None else high):
            node: ast.expr = ast.Name(index, ast.Load())
            if place:
                node = ast.BinOp(node, ast.FloorDiv(), render(cuts[place], is_size))
            if place + 1 < len(cuts):
                count = cuts[place + 1].divided_by(cuts[place])
                assert count is not None
                node = ast.BinOp(node, ast.Mod(), render(count, is_size))
            weight = cuts[place].divided_by(cuts[low])
            assert weight is not None
            result += polynomial(node) * weight
        return result

    def _finest(self, value: Polynomial) -> Polynomial:
        """A polynomial in digits, and in sizes that are no sums or products of others."""
        known = {}
        for atom in {atom for monomial in value.terms for atom in monomial}:
            if atom in self._values:
                known[atom] = self._values[atom]
            elif not atom.isidentifier() and (part := self._part(parse_expression(atom))) is not None:
                index, low, high = part
                cuts = self._cuts.get(index, [])
                if low in cuts and (high is None or high in cuts):
                    known[atom] = self._digits(index, cuts.index(low), None if high is None else cuts.index(high))
        return value.replaced(known)

    # Addresses

    def _shortened(self, node: ast.expr) -> ast.expr:
        if not is_index(node) or len((given := polynomial(node)).terms) <= _SHORT:
            return node
        finest = self._finest(given)
        parts = {name: value for name, value in self._values.items() if name not in self._cuts}
        sizes = {name: value for name, value in parts.items() if is_size(name)}
        tried = [_contracted(_contracted(finest, sizes), parts), _contracted(finest, parts)]
        value = min(*tried, _contracted(finest, self._values), key=lambda found: len(found.terms))
        if len(value.terms) >= len(given.terms):
            return node
        names = {atom: name for name, known in self._values.items() if (atom := _only_atom(known))}
        return render(value.replaced({atom: Polynomial({(name,): 1}) for atom, name in names.items()}), is_size)


def _contracted(value: Polynomial, names: Mapping[str, Polynomial]) -> Polynomial:
    """The polynomial by those names that make it shorter, one after the other."""
    while (shorter := _shorter(value, names)) is not None:
        value = shorter
    return value


def _shorter(value: Polynomial, names: Mapping[str, Polynomial]) -> Polynomial | None:
    """The polynomial with the fewest terms by the use of one name; None if none makes it shorter."""
    best: Polynomial | None = None
    for name, known in reversed([*names.items()]):  # those that were computed for this address come last
        if len(known.terms) < 2:
            continue
        lead = min(known.terms, key=order)
        for monomial, factor in value.terms.items():
            rest, left = without(monomial, lead), factor % known.terms[lead]
            if rest is None or left:
                continue
            times = Polynomial({rest: factor // known.terms[lead]})
            tried = value + times * (Polynomial({(name,): 1}) + -known)
            is_shorter = len(tried.terms) < len((best or value).terms)
            if is_shorter and _differences(tried) <= _differences(value):  # `x - x // 20 * 20` is harder to read
                best = tried
    return best


def _differences(value: Polynomial) -> int:
    return sum(factor < 0 for monomial, factor in value.terms.items() if monomial)


def _magnitude(size: Polynomial) -> tuple[int, int]:
    return max(map(len, size.terms)), max(map(abs, size.terms.values()))


def _only_atom(value: Polynomial) -> str:
    """The atom that is the whole polynomial; "" for any other one."""
    ((monomial, factor),) = value.terms.items() if len(value.terms) == 1 else [((), 0)]
    return monomial[0] if factor == 1 and len(monomial) == 1 and not monomial[0].isidentifier() else ""
