"""Differences that the normal forms ignore, and differences that they keep."""

from __future__ import annotations

import pytest
from factories import GET_INPUTS, MODULE_CODE

from kernelquarry.transforms.similarity.form import form_of

ORIGINAL = '''
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    """A helper."""

    def __init__(self, width: int, bias: bool = True):
        super().__init__()
        self.inner = nn.Linear(width, width, bias=bias)

    def scaled(self, x):
        return self.inner(x) * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.scaled(x))


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block = Block(width, bias=False)

    def forward(self, x):
        kept = [self.block(part) for part in x.chunk(2)]
        return torch.cat(kept)
'''


def changed(*edits: tuple[str, str]) -> str:
    code = ORIGINAL
    for old, new in edits:
        assert old in code
        code = code.replace(old, new)
    return code


@pytest.mark.parametrize(
    "code",
    [
        changed(("    def forward(self, x):", "    # a comment\n    def forward(self,\n                x):")),
        changed(('"""A helper."""', '"""Another docstring,\n\n    on lines."""')),
        changed(('    """A helper."""\n', "")),
        changed((": torch.Tensor) -> torch.Tensor", ")"), (": int", ""), (": bool", "")),
        changed(("kept = [", "kept: list[torch.Tensor] = [")),
        ORIGINAL + GET_INPUTS,
    ],
    ids=["comment", "docstring", "no docstring", "annotations", "annotated assignment", "get_inputs"],
)
def test_exact_ignores(code: str) -> None:
    assert form_of(code).exact == form_of(ORIGINAL).exact


@pytest.mark.parametrize(
    "code",
    [
        changed(("Block", "Unit")),
        changed(("inner", "project")),
        changed(("scaled", "doubled")),
        changed(("kept", "parts"), ("part)", "p)"), ("part in", "p in")),
        changed(("width", "dim")),
        changed(("bias: bool", "offset: bool"), ("bias=bias", "bias=offset"), ("bias=False", "offset=False")),
        changed(("import torch.nn as nn", "from torch import nn"), ("F.relu", "nn.functional.relu")),
        changed(("import torch.nn.functional as F", "from torch.nn.functional import relu"), ("F.relu", "relu")),
    ],
    ids=["class", "attribute", "method", "variables", "argument", "keyword", "import", "imported function"],
)
def test_renamed_ignores_differences_that_exact_keeps(code: str) -> None:
    assert form_of(code).exact != form_of(ORIGINAL).exact
    assert form_of(code).renamed == form_of(ORIGINAL).renamed


@pytest.mark.parametrize(
    "code",
    [
        changed(("relu", "gelu")),
        changed(("2.0", "3.0")),
        changed(("chunk(2)", "chunk(2, dim=1)")),
        changed(("bias=bias", "bias=False")),
        changed(("nn.Linear(width, width, bias=bias)", "nn.Linear(width, width, device=bias)")),
        changed(("torch.cat(kept)", "torch.stack(kept)")),
        changed(("self.inner(x) * 2.0", "self.inner(x * 2.0)")),
    ],
)
def test_other_functions_differ(code: str) -> None:
    assert form_of(code).renamed != form_of(ORIGINAL).renamed


@pytest.mark.parametrize(
    ("code", "same"),
    [
        (changed(("2.0", "-3.0")), True),
        (changed(("chunk(2)", "chunk(5)")), True),
        (changed(("bias=False", "bias=None")), False),
        (changed(("relu", "gelu"), ("2.0", "3.0")), False),
    ],
)
def test_blind_ignores_numbers(code: str, same: bool) -> None:
    assert form_of(code).renamed != form_of(ORIGINAL).renamed
    assert (form_of(code).blind == form_of(ORIGINAL).blind) is same


def test_blind_ignores_the_length_of_number_lists() -> None:
    one, other = "def f(x):\n    return g(x, 3)\n", "def f(x):\n    return g(x, (3, -1))\n"
    assert form_of(one).blind == form_of(other).blind
    assert form_of(one).blind != form_of("def f(x):\n    return g(x, (3, x))\n").blind


def test_both_forms_of_super_are_equal() -> None:
    old = "super().__init__()\n        self.block"
    assert form_of(changed((old, old.replace("()", "(Model, self)", 1)))) == form_of(ORIGINAL)


def test_two_names_do_not_become_one() -> None:
    one = "def f(a, b):\n    return a - b\n"
    assert form_of(one).renamed == form_of(one.replace("a", "c")).renamed
    assert form_of(one).renamed != form_of(one.replace("a - b", "b - a")).renamed


def test_empty_and_short_sources_have_a_form() -> None:
    assert form_of("").shingles and form_of("x = 1").shingles


def test_forms_are_the_same_in_every_process() -> None:
    form = form_of(MODULE_CODE)
    assert (form.exact[:8], form.renamed[:8]) == ("d114504a", "1c3bd913")
    assert form.bands[0] == "band0:c07c8cde797be56fc0f91718291759bf87387ef2"
