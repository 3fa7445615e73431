"""Constructor arguments that make a module small, found by constructing it with smaller numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from torch import nn

_MIN_WIDTH = 16  # widths are not made smaller
_MAX_TRIALS = 48


@dataclass(frozen=True, slots=True)
class ModuleSize:
    """Number of layers with matrices, and of elements of all parameters."""

    layers: int
    elements: int

    @staticmethod
    def of(module: nn.Module) -> ModuleSize:
        parameters = list(module.parameters())
        return ModuleSize(sum(p.dim() > 1 for p in parameters), sum(p.numel() for p in parameters))


def shrink_arguments(
    texts: Mapping[str, str], measure: Callable[[Mapping[str, str]], ModuleSize | None]
) -> dict[str, str]:
    """Smaller numbers for the arguments with which they make the module smaller.

    Args:
        texts: parameter -> Python source of its value.
        measure: size of the module with such arguments; None if it cannot be constructed.

    Returns:
        The changed arguments: counts that give fewer layers, widths that give fewer elements.
    """
    changed: dict[str, str] = {}
    smallest, trials = measure(texts), _MAX_TRIALS
    for name, text in texts.items():
        for other, is_width in _smaller_values(text):
            trials -= 1
            if trials < 0:
                return changed
            size = measure({**texts, **changed, name: other})
            if size is not None and (smallest is None or _is_smaller(size, smallest, is_width)):
                changed[name], smallest = other, size
                break
            is_list = other.startswith(("[", "("))
            if size is not None and smallest is not None and size.layers == smallest.layers and not is_list:
                break  # the smallest number does not help, so a larger one does not either
    return changed


def _is_smaller(size: ModuleSize, than: ModuleSize, is_width: bool) -> bool:
    fewer_elements = size.layers == than.layers and size.elements < than.elements
    return size.layers < than.layers or (is_width and fewer_elements)


def _smaller_values(text: str) -> Iterator[tuple[str, bool]]:
    """(source of smaller numbers, True if they are widths), smallest first."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return
    if type(value) is int and value > _MIN_WIDTH:
        yield from ((str(width), True) for width in (_MIN_WIDTH, 2 * _MIN_WIDTH) if width < value)
    elif type(value) is int:
        yield from ((str(count), False) for count in (1, 2, 3) if count < value)
    elif isinstance(value, list | tuple) and value and all(type(item) is int for item in value):
        if max(value) > _MIN_WIDTH:
            ranks = sorted(set(value))
            yield repr(type(value)(_MIN_WIDTH * (ranks.index(item) + 1) for item in value)), True
        else:
            yield repr(type(value)(1 for _ in value)), False
        yield from ((repr(value[:length]), False) for length in (1, 2) if len(value) > 2)
