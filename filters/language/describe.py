"""The language in words, from its tables: the documentation page, and the part of the prompts that states it."""

from __future__ import annotations

from collections.abc import Iterable

from . import tables
from .tables import Group

_PAGE = """# The language of candidates

Candidates that a model or a user writes are read before they run. A candidate that uses anything that this page does
not list gets no verdict: it is dropped as `outside_language`. [`kernelquarry check`](cli.md) says `UNJUDGED`, with the
line and what to write instead. Names that neither Triton nor the file has are rejected as `does_not_run`. Kernels
lowered by the compiler fit too, and are not read.

```python
class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))  # state is set in the constructor

    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        scaled[(rows,)](x, self.weight, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
```

## A file

- A file has imports, constants, kernels, functions and classes. Each name is set once.
- What stands under `if __name__ == "__main__"` is not read.
- Functions do not recurse. Defaults are constants.
- Classes derive from one of the bases below, or from a class of the file. They define no method of `torch.nn.Module`
  but `forward` and `extra_repr`, and no special method but `__init__`.
"""
_RULES = """## Rules on the host code

- Only a constructor sets attributes, and only of `self`. Nothing is kept from one call of `forward` to the next.
- Items are set, and lists are changed, where the function has made the list, dict or tensor itself.
- `is` compares with `None`, `True` and `False` only. An f-string is part of the message of an exception.
- A launch is a line of its own. What it returns is not read.
- Of the properties of a GPU, only `multi_processor_count` is read.
- Operators of PyTorch are for rows that declare them. Other candidates that use them are rejected as `kernel_unused`.
"""
_KERNELS = """## Kernels

Kernels stand at the top of the file, under `triton.jit`, `triton.autotune` and `triton.heuristics`. They read constants
of the file, and call `triton.language`, `triton.language.math`, `libdevice` and other kernels.
"""


def describe() -> str:
    """The documentation page, as Markdown."""
    parts = [_PAGE, _table([tables.IMPORTS, tables.BASES, tables.CONTEXTS, tables.EXCEPTIONS])]
    statements = ", ".join(tables.STATEMENTS.values())
    expressions = ", ".join(tables.EXPRESSIONS.values())
    parts += [f"## Host code\n\n- **Statements**: {statements}.\n- **Expressions**: {expressions}.\n"]
    advice = "".join(f"| {name} | {instead} |\n" for name, instead in _advice())
    parts += [f"| not in the language | write instead |\n|---|---|\n{advice}", _RULES]
    parts += [
        "## Names in host code\n",
        _table([tables.BUILTINS, *tables.GROUPS, tables.CONSTRUCTOR, tables.OPERATORS]),
    ]
    parts += ["## Attributes and methods in host code\n"]
    groups = (tables.TENSOR_ATTRIBUTES, tables.OTHER_ATTRIBUTES, tables.LAYER_ATTRIBUTES, tables.CONSTRUCTOR_ATTRIBUTES)
    parts += [_table(groups), _KERNELS, _table([tables.LANGUAGE, tables.KERNEL_ATTRIBUTES])]
    return "\n".join(parts).rstrip() + "\n"


def prompt() -> str:
    """The part of a system prompt that states the language."""
    names = [name for name, _ in _advice() if " " not in name]
    return (
        "The file is read before it runs, and must stay in a small part of Python. It imports only torch, triton, "
        f"math, functools, itertools and dataclasses. It uses no {', '.join(names)}, no getattr and no hooks, and no "
        "Python value of a tensor. Only `__init__` sets attributes, nothing is kept between calls, and a function "
        "changes only lists that it made. Each launch is a line `kernel[grid](...)`.\n"
    )


def _advice() -> list[tuple[str, str]]:
    return sorted(set(tables.ADVICE.values()))


def _table(groups: Iterable[Group]) -> str:
    """A row for each group; names of one module share its path."""
    rows = [f"| {group.title} | {_listed(group.names)} |" for group in groups]
    return "\n".join(["| what | names |", "|---|---|", *rows, ""])


def _listed(names: Iterable[str]) -> str:
    heads: dict[str, list[str]] = {}
    for name in sorted(names):
        head, _, last = name.rpartition(".")
        heads.setdefault(head, []).append(last)
    parts = [f"`{head}.` {', '.join(f'`{last}`' for last in lasts)}" for head, lasts in heads.items() if head]
    plain = [", ".join(f"`{last}`" for last in heads.get("", ()))] if "" in heads else []
    return "; ".join([*plain, *parts])
