"""Constructor arguments that make a module small: those that do are found by trying, whatever they are called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from torch import nn

_NARROW = 16  # widths are not made smaller than this
_TRIALS = 48


@dataclass(frozen=True, slots=True)
class Burden:
    """What a module takes: layers that are contractions or hold matrices, and elements of its parameters."""

    layers: int
    elements: int

    @staticmethod
    def of(module: nn.Module) -> Burden:
        own = [p for p in module.parameters() if p.dim() > 1]
        return Burden(len(own), sum(p.numel() for p in module.parameters()))


def leanest(texts: Mapping[str, str], burden: Callable[[Mapping[str, str]], Burden | None]) -> dict[str, str]:
    """The arguments with smaller numbers, of those that lighten the module.

    Args:
        texts: parameter -> Python source of its value.
        burden: of the module with such arguments; None if it cannot be constructed.

    Returns:
        The changed ones: counts for fewer layers, widths for fewer elements.
    """
    changed: dict[str, str] = {}
    least, trials = burden(texts), _TRIALS
    for name, text in texts.items():
        for other, is_width in _lessened(text):
            trials -= 1
            if trials < 0:
                return changed
            found = burden({**texts, **changed, name: other})
            if found is not None and (least is None or _is_lighter(found, least, is_width)):
                changed[name], least = other, found
                break
    return changed


def _is_lighter(found: Burden, least: Burden, is_width: bool) -> bool:
    return found.layers < least.layers or (
        is_width and found.layers == least.layers and found.elements < least.elements
    )


def _lessened(text: str) -> Iterator[tuple[str, bool]]:
    """(source of smaller numbers, whether they are widths), smallest first."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return
    if type(value) is int:
        yield from ((str(other), value > _NARROW) for other in _fewer(value))
    elif isinstance(value, list | tuple) and value and all(type(item) is int for item in value):
        shorter = [value[:1], value[:2]] if len(value) > 2 else []
        if max(value) > _NARROW:
            ranks = sorted(set(value))
            yield repr(type(value)(_NARROW * (ranks.index(item) + 1) for item in value)), True
        else:
            yield repr(type(value)(1 for _ in value)), False
        yield from ((repr(items), False) for items in shorter)


def _fewer(value: int) -> list[int]:
    if value > _NARROW:
        return [_NARROW, 2 * _NARROW] if value > 2 * _NARROW else [_NARROW]
    return [other for other in (1, 2, 3) if other < value]
