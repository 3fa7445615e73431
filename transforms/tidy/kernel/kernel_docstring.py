"""Docstrings of kernels: their operators, and the shapes of their tensors where these are known."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from ..syntax.print_code import LINE

_INDENT = 4 * " "
_UNBROKEN = "\N{NO-BREAK SPACE}"  # stands for a space at which no line may break


def kernel_docstring(operators: str, read: Mapping[str, str], written: Mapping[str, str]) -> str:
    """`add: x (batch, 8), y (8,) -> out (batch, 8)`; if that is too long, the shapes are a paragraph of their own.

    `read` and `written` map names of tensors to their shapes.
    """
    inputs, results = (", ".join(f"{name} {shape}" for name, shape in each.items()) for each in (read, written))
    shapes = f"{inputs} -> {results}".strip() if results else inputs
    line = f"{operators}: {shapes}" if shapes else operators
    if len(f'{_INDENT}"""{line}"""') <= LINE:
        return line
    unbroken = shapes.replace(" ", _UNBROKEN).replace(f"),{_UNBROKEN}", "), ").replace(f"){_UNBROKEN}->", ") ->")
    paragraph = textwrap.wrap(unbroken, LINE - len(_INDENT), break_long_words=False, break_on_hyphens=False)
    lines = [operators, "", *(_INDENT + text.replace(_UNBROKEN, " ") for text in paragraph), _INDENT]
    return "\n".join(lines)
