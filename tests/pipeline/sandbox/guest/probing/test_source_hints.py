"""Hints about parameters from the source of a module."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from kernelquarry.pipeline.sandbox.guest.probing.parameter_usage import Usage
from kernelquarry.pipeline.sandbox.guest.probing.source_hints import Source, pattern_rank

# what a method says about x -> what is found; what is left out is as in an empty Usage
USAGES: dict[str, dict[str, Any]] = {
    "for a in x: pass": {"sequence": True},
    "for i, a in enumerate(x): pass": {"sequence": True},
    "for a, b in x: pass": {"sequence": True, "nested": True},
    "[a for a in zip(x, y)]": {"sequence": True},
    "len(x)": {"sequence": True},
    "f(*x)": {"sequence": True},
    "torch.cat(x, dim=1)": {"sequence": True},
    "a, b, c = x": {"sequence": True, "items": 3},
    "x[0][1]": {"items": 1, "nested": True},
    "x[-3]": {"items": 3},
    "x[:4]": {"items": 4},
    "x[i]": {"indexed": True},
    "assert len(x) == 4": {"sequence": True, "items": 4},
    "x()": {"called": True},
    "range(x)": {"number": True},
    "y = x // 2": {"number": True},
    "y = x * 2": {},
    "x < 3": {"bounds": [3], "number": True},
    "x.hidden_size": {"attributes": {"hidden_size"}},
    "x == 'a' or x in ('b', 'a')": {"strings": ["a", "b"]},
    "assert x > 100": {"bounds": [100], "number": True},
    "TABLE[x]": {"tables": {"TABLE"}},
    "TABLE.get(x, 3)": {"tables": {"TABLE"}},
    "{'a': 1, 'b': 2}[x]": {"strings": ["a", "b"]},
    "y = {'a': 1}; y[x]": {"strings": ["a"]},
    "b, c, h, w = x.shape": {"attributes": {"shape"}, "ranks": [4], "axes": [("b", "c", "h", "w")]},
    "b, n = x.size()": {"attributes": {"size"}, "ranks": [2], "axes": [("b", "n")]},
    "Batch, _, N_ = x.shape": {"attributes": {"shape"}, "ranks": [3], "axes": [("batch", "_1", "n")]},
    "assert x.dim() == 3": {"attributes": {"dim"}, "ranks": [3]},
    "assert x.ndim == 5 or len(x.shape) == 4": {"attributes": {"ndim", "shape"}, "ranks": [5, 4]},
    "x.permute(0, 2, 1)": {"attributes": {"permute"}, "ranks": [3]},
    "x.permute((0, 2, 1, 3))": {"attributes": {"permute"}, "ranks": [4]},
    "x.unflatten(1, (8, -1)).permute(0, 1, 3, 2)": {"ranks": [3], "attributes": {"unflatten"}, "least": 2},
    "x.squeeze((1, 2)).unsqueeze(0).permute(1, 2, 0)": {"ranks": [4], "attributes": {"squeeze"}},
    "x.squeeze(1).permute(1, 0)": {"ranks": [3], "attributes": {"squeeze"}},
    "x.mean(1).permute(1, 0)": {"attributes": {"mean"}},
    "torch.einsum('b n d, b m d -> b n m', y, x)": {"ranks": [3]},
    "torch.einsum('... d, ... d -> ...', y, x)": {},
    "torch.einsum('bnd,bmd->bnm', y, x)": {"ranks": [3]},
    "x[:, None, 0]": {"ranks": [2]},
    "self.helper(x)": {"called": True},
    "self.helper(y, z=x)": {"number": True},
    "outer(x)": {"attributes": {"shape"}, "ranks": [5], "axes": [("b", "t", "c", "h", "w")]},
    "super().method(x)": {"strings": ["base"]},
    "Part(x)": {"sequence": True},
    "self.static(x)": {"sequence": True, "items": 2},
    "x = 3; len(x)": {},
    "x = default(x, 3); len(x)": {"sequence": True},
    "x = x or 3; len(x)": {"sequence": True},
    "x = x if y else 3; len(x)": {"sequence": True},
    "self.method(x)": {},  # recursion ends
    "b, *rest = x.shape": {"attributes": {"shape"}},
    "b, c, h, w, d = (*x.shape, y)": {"attributes": {"shape"}, "ranks": [4], "axes": [("b", "c", "h", "w")]},
    "x.shape[2] + x.shape[1]": {"attributes": {"shape"}, "least": 3},
    "x.shape[2:]": {"attributes": {"shape"}, "least": 3},
    "x.size(3), x.transpose(1, 2)": {"attributes": {"size", "transpose"}, "least": 4},
}
CODE = """
class Base:
    def method(self, a):
        a == "base"

class Part:
    def __init__(self, items):
        for item in items: pass

def outer(first):
    inner(first)

def inner(second):
    b, t, c, h, w = second.shape

class Model(Base):
    def method(self, x, y=None):
        BODY

    def helper(self, f, z=None):
        f()
        range(z)

    @staticmethod
    def static(pair):
        a, b = pair
"""


@pytest.mark.parametrize("body", USAGES)
def test_usage(body: str) -> None:
    source = Source(CODE.replace("BODY", body))
    assert source.usage("Model", "method", "x") == Usage(**USAGES[body])


def test_methods_of_bases_are_found() -> None:
    source = Source("class A:\n    def f(self, a): a()\nclass B(A): pass\nclass C(B, D): pass\n")
    assert source.usage("C", "f", "a").called
    assert source.usage("C", "g", "a") == Usage()
    assert source.usage("Missing", "f", "a") == Usage()


def test_cyclic_bases_end() -> None:
    assert Source("class A(B): pass\nclass B(A): pass\n").method("A", "f") is None


def test_defaults_keep_their_text() -> None:
    source = Source("def f(a, b=(1,  2), *, c=nn.ReLU, d): ...\n")
    assert source.defaults(source.functions["f"]) == {"b": "(1, 2)", "c": "nn.ReLU"}


def test_examples_are_the_defaults_of_the_file() -> None:
    source = Source("def f(a=1): ...\nclass C:\n    def g(self, a=2, *, b=nn.ReLU): ...\n    def h(self, a=1): ...\n")
    assert source.examples("a") == ("1", "2")
    assert source.examples("b") == ("nn.ReLU",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dim (int): the width.", "int"),
        ("dim (int, optional): the width.", "int, optional"),
        ("dim : int or None, default 3", "int|None"),
        ("dim (tuple(int)): the width", "tuple[int]"),
        ("dims (int): another", ""),
    ],
)
def test_documented(line: str, expected: str) -> None:
    text = textwrap.indent(f'"""Does.\n\nArgs:\n    {line}\n"""', "    ")
    assert Source(f"class Model:\n{text}\n").documented("Model", "dim").rstrip("]") == expected.rstrip("]")


@pytest.mark.parametrize(("side", "rank"), [("b (h p) w", 3), ("b c 1", 3), ("(b n)", 1), ("", 0)])
def test_pattern_rank(side: str, rank: int) -> None:
    assert pattern_rank(side) == rank


KEEPS = """
class Base:
    def show(self):
        for item in self.items: pass

class Model(Base):
    def __init__(self, items, act, mode=None, *, deep, plain):
        self.items = list(items)
        self.items, self.act = items, act
        self.mode = mode or "a"
        self.width = deep["a"].width
        self.plain = plain + 1

    def forward(self, x):
        self.plain.attribute
        if self.mode == "b":
            return self.act(x)
"""


def test_attributes_that_the_constructor_assigns_are_followed() -> None:
    def usage(name: str) -> Usage:
        return Source(KEEPS).usage("Model", "__init__", name)

    assert usage("items").sequence and usage("act") == Usage(applied=True) and usage("mode").strings == ["b"]
    assert usage("plain") == Usage(), "what is made of it is another thing"
    assert usage("deep") == Usage(keys=["a"], parts={"a": Usage(attributes={"width"})})
