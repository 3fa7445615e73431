"""Sizes that `forward` computes once, by name: `out_height = height - 2`, then `batch * out_height`.

Inductor multiplies such sizes out, `batch * height - 2 * batch`, which neither readers nor models follow. `relations`
finds how the sizes of a kernel follow from each other: `pad_width = width + 2`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence

from kernelquarry.pipeline.schema.parse_python import parse_expression

from ..kernel.addresses import ACCESSES, COMPUTED
from ..syntax.algebra import Polynomial, number, polynomial, render
from ..syntax.ast_tools import called, source_text, unused_name, walk

_ARITHMETIC = (ast.BinOp, ast.operator, ast.Compare, ast.cmpop, ast.Name, ast.Constant)
_EASY = 100  # numbers up to here are readable as they are


class NamedSizes:
    """The named sizes of one function."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._sizes: dict[str, Polynomial] = {}

    def name(self, size: Polynomial, word: str) -> str:
        """The line that names a size; "" for a number, for a product, and for a size that has a name."""
        parts = [atom for monomial in size.terms for atom in monomial]
        if len(size.terms) < 2 and (len(parts) != 1 or parts[0].isidentifier()):
            return ""
        text = self.text(size)
        if text.isidentifier():
            return ""
        name = unused_name(word, self._taken)
        self._sizes[name] = size
        return f"{name} = {text}"

    def text(self, size: Polynomial) -> str:
        """A size as source, by the names of others."""
        return ast.unparse(render(self._expressed(size), lambda atom: True))

    def _expressed(self, size: Polynomial) -> Polynomial:
        factors: list[str] = []
        rest = size
        for name, named in self._sizes.items():
            while rest.terms and (quotient := rest.divided_by(named)) is not None:
                factors, rest = [*factors, name], quotient
        if len(rest.terms) > 1 and not _is_near_symbol(rest):
            rest = self._from_nearest(rest)
        result = number(0)
        for monomial, factor in rest.terms.items():
            result += Polynomial({tuple(sorted([*map(self._atom, monomial), *factors])): factor})
        return result

    def _from_nearest(self, size: Polynomial) -> Polynomial:
        """`conv_height - 2` for a size that differs from the last such size by a number."""
        for name, named in reversed(self._sizes.items()):
            if (more := (size + -named).constant) is not None:
                return Polynomial({(name,): 1}) + number(more)
        return size

    def _atom(self, atom: str) -> str:
        """An atom such as a quotient, with what is divided by its name."""
        if atom.isidentifier():
            return atom
        node = parse_expression(atom)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
            left = render(self._expressed(polynomial(node.left)), lambda part: True)
            return source_text(ast.BinOp(left, node.op, node.right))
        return atom


def _is_near_symbol(size: Polynomial) -> bool:
    """True for `height - 2`."""
    (monomial, *_) = [each for each in size.terms if each]
    return len(size.terms) == 2 and () in size.terms and len(monomial) == 1 and monomial[0].isidentifier()


def products(shapes: Iterable[Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """The products of neighbouring sizes of tensors that are hard to recognize, with their factors."""
    known = [[size for size in shape if size != 1] for shape in shapes]
    sizes = {size for shape in known for size in shape}
    runs = (shape[first:end] for shape in known for end in range(2, len(shape) + 1) for first in range(end - 1))
    found: dict[int, tuple[int, ...]] = {}
    for run in sorted(runs, key=len):
        if (value := math.prod(run)) > _EASY and value not in sizes:
            found.setdefault(value, tuple(run))
    return found


def factored(root: ast.stmt, factors: Mapping[int, tuple[int, ...]]) -> ast.stmt:
    """Write the numbers of a kernel that are products of sizes as such, in place: `row * (12 * 20)`.

    Numbers in addresses, bounds of loops, and the arithmetic of indices are meant; others may be anything.
    """
    written = _Factors(factors)
    for node in walk(root):
        match node:
            case ast.Call(args=[address, *rest]) if called(node) in ACCESSES:
                node.args = [written.visit(address), *rest]
            case ast.Call(func=ast.Name("range"), args=bounds):
                node.args = [written.visit(bound) for bound in bounds]
            case ast.Assign(value=value) if all(isinstance(part, _ARITHMETIC) for part in walk(value)):
                node.value = written.visit(value)
    return root


class _Factors(ast.NodeTransformer):
    def __init__(self, factors: Mapping[int, tuple[int, ...]]) -> None:
        self._factors = factors

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        found = self._factors.get(node.value) if type(node.value) is int else None
        return parse_expression(" * ".join(map(str, found))) if found else node


def relations(launches: Sequence[Mapping[str, Polynomial]]) -> dict[str, Polynomial]:
    """Map sizes of a kernel to their values in terms of its other sizes, where every launch agrees.

    `launches` maps the names of sizes to their values in the calling function. Names that begin with `COMPUTED` are
    those of sizes that the kernel does not take.
    """
    found = [_relations(launch) for launch in launches]
    return {name: value for name, value in found[0].items() if all(other.get(name) == value for other in found)}


def _relations(values: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """The same for one launch. A size stands for a symbol if it is the symbol, or the symbol plus a number."""
    by_symbol: dict[str, tuple[str, Polynomial]] = {}  # symbol -> the size that stands for it, and its value by that
    for name, value in sorted(values.items(), key=lambda item: len(item[1].terms)):
        linear = [monomial for monomial in value.terms if monomial]
        if not name.startswith(COMPUTED) and len(linear) == 1 and value.terms[linear[0]] == 1 and len(linear[0]) == 1:
            less = Polynomial({(name,): 1}) + number(-value.terms.get((), 0))
            by_symbol.setdefault(linear[0][0], (name, less))
    found: dict[str, Polynomial] = {}
    for name, value in sorted(values.items(), key=lambda item: not item[0].startswith(COMPUTED)):
        atoms = {atom for monomial in value.terms for atom in monomial}
        if atoms and atoms <= by_symbol.keys() and all(by_symbol[atom][0] != name for atom in atoms):
            found[name] = value.replaced({atom: by_symbol[atom][1] for atom in atoms})
    return found
