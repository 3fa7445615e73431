"""The language in words, from its tables: the documentation page, and the part of the prompts that states it."""

from __future__ import annotations

from collections.abc import Iterable

from kernelquarry.filters.language import tables
from kernelquarry.filters.language.tables import Group

_PAGE = """# The language of candidates

Candidates by a model or a user are checked statically before they run. A candidate that uses anything outside of this
page gets no verdict: it is dropped as `outside_language`, and [`kernelquarry check`](cli.md) says `UNJUDGED`, with the
line and a replacement. Not checked are candidates that the compiler lowered, and what constructors have in the words of
the module's file.

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

- A file has imports, constants, kernels, functions and classes. It sets each name once, and defines no name of Python's
  built-in functions.
- Functions, classes and constants that `ModelNew` does not use are left out before a candidate is read, as are code
  under `if __name__ == "__main__"` and imports of the standard library.
- Functions do not recurse. Defaults are constants.
- Classes derive from one of the bases or layers below, or from a class of the file. Of the methods of
  `torch.nn.Module`, they override only `__init__`, `forward` and `extra_repr`. They define no other special method.
  Classes that derive from a layer define only `__init__` and `forward`.
- Constants of the file may name the layers below, but make none.
"""
_RULES = """## Rules on the host code

- Only a constructor sets attributes, and only of `self`. Nothing is kept from one call of `forward` to the next.
- A function changes only lists, dicts and tensors that it created itself. `a += b`, `a *= b` and `a |= b` change such a
  value, or add a number: otherwise write `a = a + b`.
- `is` compares with `None`, `True`, `False` and dtypes only. F-strings stand in messages: of exceptions, `print`,
  loggers and `warnings.warn`, and in `extra_repr`.
- A launch is a statement of its own, and its result is not used.
- Of the properties of a GPU, only `multi_processor_count` is read.
- Only candidates that are declared `mixed` may use operators of PyTorch. Others are rejected as `kernel_unused`.
"""
_KERNELS = """## Kernels

Kernels are top-level functions with the decorators `triton.jit`, `triton.autotune` and `triton.heuristics`. They use
constants of the file, and call `triton.language`, `triton.language.math`, `libdevice` and other kernels.
"""


def describe() -> str:
    """The documentation page, as Markdown."""
    groups = (tables.IMPORTS, tables.BASES, tables.LAYERS, tables.CONTEXTS, tables.CACHES, tables.EXCEPTIONS)
    parts = [_PAGE, _table(groups)]
    statements = ", ".join(tables.STATEMENTS.values())
    expressions = ", ".join(tables.EXPRESSIONS.values())
    parts += [f"## Host code\n\n- **Statements**: {statements}.\n- **Expressions**: {expressions}.\n"]
    advice = "".join(f"| {name} | {instead} |\n" for name, instead in _advice())
    parts += [f"| not in the language | write instead |\n|---|---|\n{advice}", _RULES]
    parts += [
        "## Names in host code\n",
        _table([tables.BUILTINS, *tables.GROUPS[:-1], tables.CONSTRUCTOR, tables.OPERATORS]),
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
