"""Find how a size follows from the sizes that vary: `(height + 1) // 2` for 6, 6 and 5 if height is 12, 11 and 10."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement

_FACTORS = (2, 3, 4, 5, 6, 7, 8, 16, 32)
_MOST_ADDED = 64
_MOST_ADDED_BELOW = 8  # added before a division; larger numbers fit by chance
_MOST_MULTIPLIED = 3  # sizes of a product
_FACTOR_NAMES = 8  # names that products are tried of
_ENOUGH = 3  # workloads; two fit too many expressions by chance

Sizes = Sequence[int]  # a size in each workload


def size_expression(sizes: Sizes, varying: Mapping[str, Sizes]) -> str:
    """The size as a number or an expression of names; "" if none is found.

    The first expression that fits all workloads is taken: a name, a sum, a product, a rounded quotient.

    Args:
        varying: name, or expression of names -> its sizes; of several that fit, the first one is taken.
    """
    if len(set(sizes)) == 1:
        return str(sizes[0])
    return next((text for text, found in _expressions(sizes, varying) if found == [*sizes]), "")


def _expressions(sizes: Sizes, varying: Mapping[str, Sizes]) -> Iterator[tuple[str, list[int]]]:
    """Expressions, the simplest first, and their sizes in each workload."""
    for name, own in varying.items():
        yield name, [*own]
    if len(sizes) < _ENOUGH:
        return
    for name, own in varying.items():
        if abs(added := sizes[0] - own[0]) <= _MOST_ADDED:
            yield _sum(name, added), [size + added for size in own]
    for count in range(1, 1 + _MOST_MULTIPLIED):
        # Distinct names come first: the area of a square image is `height * width`.
        found = combinations_with_replacement([*varying][:_FACTOR_NAMES], count)
        for names in sorted(found, key=lambda names: -len({*names})):
            yield from _multiples(sizes, names, varying)
    for added in sorted(range(-_MOST_ADDED_BELOW, 1 + _MOST_ADDED_BELOW), key=abs):
        for name, own in varying.items():
            text = _atom(_sum(name, added))
            for factor in _FACTORS:
                yield f"{text} // {factor}", [(size + added) // factor for size in own]


def _multiples(sizes: Sizes, names: Sequence[str], varying: Mapping[str, Sizes]) -> Iterator[tuple[str, list[int]]]:
    """The product of the names times a number."""
    products = [1] * len(sizes)
    for name in names:
        products = [product * size for product, size in zip(products, varying[name], strict=True)]
    factor, rest = divmod(sizes[0], products[0]) if products[0] else (0, 1)
    if factor and not rest:
        factors = [*map(_atom, names), *([str(factor)] if factor > 1 else [])]
        yield " * ".join(factors), [factor * size for size in products]


def _atom(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _sum(name: str, added: int) -> str:
    return name if not added else f"{name} {'+' if added > 0 else '-'} {abs(added)}"
