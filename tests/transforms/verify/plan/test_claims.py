"""Texts that are narrowed to what calls took."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import pytest

from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.transforms.verify.plan import PlannedCall, Planner, Raised
from kernelquarry.transforms.verify.plan.claims import Narrowed, claim

_STATELESS: dict[str, Any] = {
    "root": 0,
    "modules": [{"class": "ModelNew", "attributes": [["wide", False]], "layers": []}],
    "tensors": [],
    "storages": [],
    "entries": [],
}
_HEAD = """import torch
import triton
import triton.language as tl
from torch import nn


"""
_KERNEL = """@triton.jit
def copy(x, n, EVEN: tl.constexpr = False):
    pass


"""
_FORWARD = """class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = False

    def forward(self, x):
"""


def code_of(body: str, before: str = "") -> str:
    kernel = _KERNEL if "copy[" in body else ""
    return _HEAD + kernel + before + _FORWARD + "".join(f"        {line}\n" for line in body.splitlines())


def call(size: int) -> PlannedCall:
    return PlannedCall('[{"tensor": 0}]', "{}", (InputSpec((size, 4), "float32"),))


def narrowed(code: str, sizes: Sequence[int] = (3, 8), spare: bool = False) -> Narrowed:
    planner = Planner(Source(code), _STATELESS)
    return claim(code, "[]", "", _STATELESS, [call(size) for size in sizes], planner, spare)


def takes(code: str, size: int) -> bool:
    """True if the text does not raise on an input of this size."""
    try:
        Planner(Source(code), _STATELESS).plan(call(size))
    except Raised:
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        "copy[(1,)](x, x.shape[0])\nreturn x",
        "if x.shape[0] > 5:\n    return x\nelse:\n    return -x",
        "n = x.shape[0]\nassert n > 0 and n < 99, f'{n}'\nif n > 9:\n    raise ValueError(n)\nreturn x",
        "if self.wide is None or self.wide:\n    raise ValueError\nreturn x",
    ],
)
def test_a_text_of_which_everything_was_tried_stays(body: str) -> None:
    code = code_of(body)
    assert narrowed(code) == Narrowed(code)


@pytest.mark.parametrize(
    "body",
    [
        "if x.shape[0] > 100:\n    return x * 2\nreturn x",
        "if x.shape[0] <= 100:\n    x = x + 1  # all\nreturn x",
        "if x.shape[0] <= 100:\n    return x\nreturn x * 2",
        "if x.shape[0] <= 4:\n    return x\nelif x.shape[0] <= 100:\n    return x.t()\nelse:\n    return x * 2",
        "if x.shape[0] > 200:\n    y = 1\nelif x.shape[0] > 100:\n    y = 2\nelif x.shape[0] > 4:\n    y = 3\n"
        "else:\n    y = 4\nreturn x, y",
        "y = 2 if x.shape[0] > 100 else 1\nreturn x * y",
        "return x, x.shape[0] > 4 and x.shape[0] > 100",
        "if x.shape[0] <= 100 and x.shape[0] > 4:\n    return x\nreturn x * 2",
        "if x.shape[0] > 100 or x.shape[0] > 4:\n    return x\nreturn x * 2",
        "copy[(1,)](x, 1, EVEN=x.shape[0] <= 100)\nreturn x",
        "pick = lambda n: n // 2 if n <= 100 else n\nreturn x.view(-1), pick(x.shape[0])",
        "while x.shape[0] > 100:\n    x = x[1:]\nreturn x",
        "for _ in range(x.shape[0] - 100):\n    x = x + 1\nreturn x",
        "return x, [n for n in range(2) if x.shape[0] <= 100]",
        "def inner(n):\n    if n > 100:\n        return 2\n    return 1\nreturn x * inner(x.shape[0])",
        "with torch.no_grad():\n    if not x.shape[0] <= 100:\n        x = x + 1\nreturn x",
    ],
)
def test_an_untried_size_raises_and_tried_ones_do_not(body: str) -> None:
    code = code_of(body)
    result = narrowed(code)
    assert takes(code, 101) and not takes(result.code, 101)
    assert takes(result.code, 3) and takes(result.code, 8)
    assert any("verified only" in note for note in result.notes) or "while" in body or "for _" in body
    ast.parse(result.code)
    assert narrowed(result.code).code == result.code  # narrowed once more, it stays


@pytest.mark.parametrize("name", ["size", "self"])
def test_a_variable_with_the_name_of_something_else_is_one(name: str) -> None:
    before = f"size = 0\n\n\ndef f({name}, x):\n    if {name} < 9:\n        return x\n    return x * 2\n\n\n"
    result = narrowed(code_of("return f(x.shape[0], x)", before))
    assert result.notes == (f"line 11: verified only where {name} < 9",)
    assert takes(result.code, 5) and not takes(result.code, 9)


def test_what_no_call_uses_is_removed() -> None:
    before = """def used(x):
    return helper(x) if x.ndim == 2 else x


def helper(x):
    return x


LIMIT = 100
OTHER = {"a": unused} if LIMIT else None


def unused(x):
    return also_unused(x)


def also_unused(x):
    return x + LIMIT


"""
    code = code_of("return used(x)\n\ndef spare(self):\n    return self.wide", before.replace("OTHER", "_OTHER"))
    code = code.replace(
        "\n        \n        def spare(self):\n            return", "\n\n    def spare(self):\n        return"
    )
    result = narrowed(code)
    tree = ast.parse(result.code)
    names = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    assert names == {"used", "helper", "__init__", "forward", "untried"}
    assert "LIMIT" not in result.code
    assert "removed" in result.notes[-1] and takes(result.code, 5)


@pytest.mark.parametrize(
    ("expression", "note", "other"),
    [
        ("min(x.shape[0], 100)", "x.shape[0] <= 100", 101),
        ("max(100, 2 * x.shape[0])", "100 >= 2 * x.shape[0]", 51),
        ("min(64, 8 + x.shape[0] // 9)", "64 >= 8 + x.shape[0] // 9", 9),
        ("min(0 or x.shape[0], 100)", "(0 or x.shape[0]) <= 100", 101),
    ],
)
def test_a_choice_that_was_never_made_is_guarded(expression: str, note: str, other: int) -> None:
    result = narrowed(code_of(f"return x * {expression}"))
    assert result.notes[0].endswith(f"verified only where {note}")
    assert takes(result.code, 8) and not takes(result.code, other)
    assert narrowed(code_of(f"return x * {expression}"), (3, 1000)).notes == ()


def test_a_quotient_that_was_always_0_is_guarded() -> None:
    result = narrowed(code_of("return x * (1 + x.shape[0] // 100)"))
    assert result.notes == ("line 13: verified only unless x.shape[0] // 100",)
    assert takes(result.code, 99) and not takes(result.code, 100)
    assert narrowed(code_of("return x * (x.shape[0] // 2)")).notes == ()


def test_functions_of_constructors_can_be_spared() -> None:
    before = "def width(n):\n    if n > 100:\n        return 1\n    return 2\n\n\n"
    code = code_of("return x * width(x.shape[0])", before).replace("self.wide = False", "self.wide = width(101) > 1")
    assert narrowed(code).notes == ("line 8: verified only unless n > 100",)
    spared = narrowed(code, spare=True)
    assert spared.code == code
    assert spared.notes == ("line 8: verified only unless n > 100; not guarded, since the constructor needs more",)


def test_the_forward_of_a_layer_that_no_call_used_raises() -> None:
    layer = "class Twice(nn.Module):\n    def forward(self, x):\n        copy[(1,)](x, 1)\n        return x\n\n\n"
    code = code_of("return x", _KERNEL + layer).replace("self.wide = False", "self.wide = Twice() is None")
    text = narrowed(code).code
    assert "class Twice(nn.Module):\n    def forward(self, x):\n        raise NotImplementedError" in text
    assert "def copy" not in text and "self.wide = Twice() is None" in text
    assert "copy[(1,)](x, 1)" in narrowed(code, spare=True).code


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    code = code_of("untried = 3 if x.shape[0] < 100 else 4\nreturn x, untried")
    assert "def untried_1():" in narrowed(code).code


def test_constants_and_state_need_no_guard() -> None:
    code = code_of("copy[(1,)](x, 1, EVEN=self.wide is None)\nif not self.wide:\n    x = x.t()\nreturn x")
    assert narrowed(code).code == code
