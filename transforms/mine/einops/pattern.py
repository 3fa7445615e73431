"""Parse einops patterns such as `"b c (h p) w -> b h (c p) w"`, by einops' own rules, and translate equations.

The axes of einops.einsum are words, those of torch.einsum are letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from string import ascii_letters
from typing import TypeAlias

ELLIPSIS = "..."
Group: TypeAlias = tuple[str, ...]  # the axes that make up one dimension of a tensor; () has length 1

# Functions that are replaced at the call, and their parameters before the lengths of axes.
FUNCTIONS = {
    "einops.rearrange": ("tensor", "pattern"),
    "einops.repeat": ("tensor", "pattern"),
    "einops.reduce": ("tensor", "pattern", "reduction"),
    "einops.einsum": (),
    "einops.layers.torch.Rearrange": ("pattern",),
    "einops.layers.torch.Reduce": ("pattern", "reduction"),
}
# Functions that are replaced by a definition in the file.
DEFINED = ("einops.pack", "einops.unpack")
_TOKEN = re.compile(r"\s*(\.\.\.|[()]|[^\W\d]\w*|\d+)\s*")
_WORD = re.compile(r"[^\W\d]\w*")


class Unsupported(Exception):
    """A use of einops that cannot be rewritten in torch; the message names it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    left: tuple[Group, ...]
    right: tuple[Group, ...]
    lengths: dict[str, str]  # of the axes that are numbers, by generated names such as `2.0`


def parse(text: str) -> Pattern:
    """Parse a pattern. Raises: Unsupported: it does not have two sides, or repeats an axis."""
    sides = text.split("->")
    if len(sides) != 2:
        raise Unsupported(f"pattern {text!r}")
    lengths: dict[str, str] = {}
    left, right = (tuple(_groups(side, lengths)) for side in sides)
    for groups in (left, right):
        axes = names(groups)
        if len(set(axes)) < len(axes):
            raise Unsupported(f"pattern {text!r}")
    return Pattern(left, right, lengths)


def names(groups: tuple[Group, ...]) -> list[str]:
    return [axis for group in groups for axis in group]


def _groups(side: str, lengths: dict[str, str]) -> Iterator[Group]:
    """Groups of one side. Numbers other than 1 become named axes; `(...)` becomes `(1 ...)`, always a dimension."""
    inner: list[str] | None = None
    for token in _tokens(side):
        axis = [] if token == "1" else [token]
        if token.isdigit() and axis:
            axis = [next(name for number in count() if (name := f"{token}.{number}") not in lengths)]
            lengths[axis[0]] = token
        if token == "(" and inner is None:
            inner = []
        elif token == ")" and inner is not None:
            if inner == [ELLIPSIS]:
                inner = ["1", ELLIPSIS]
            yield tuple(inner)
            inner = None
        elif token in "()":
            raise Unsupported(f"parentheses of {side!r}")
        elif inner is not None:
            inner += axis
        else:
            yield tuple(axis)
    if inner is not None:
        raise Unsupported(f"parentheses of {side!r}")


def _tokens(side: str) -> Iterator[str]:
    position = len(side) - len(side.lstrip())
    while position < len(side):
        found = _TOKEN.match(side, position)
        if found is None:
            raise Unsupported(f"pattern {side!r}")
        yield found.group(1)
        position = found.end()


def equation(text: str) -> str:
    """Translate an equation. Raises: Unsupported: it is malformed, or has more axes than there are letters."""
    words = list(dict.fromkeys(_WORD.findall(text)))
    rest = _WORD.sub("", text).replace("...", "").replace("->", "", 1)
    if "->" not in text or rest.replace(",", "").strip():
        raise Unsupported(f"einsum {text!r}")
    letters = {word: word for word in words if word in ascii_letters}
    for word in words:
        free = [letter for letter in word + ascii_letters if letter in ascii_letters and letter not in letters.values()]
        if word not in letters and not free:
            raise Unsupported(f"einsum {text!r}")
        letters.setdefault(word, next(iter(free), ""))
    return _WORD.sub(lambda found: letters[found.group()], " ".join(text.split()))
