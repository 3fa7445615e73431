"""Text that `ModelNew` does not use is left out, and only if its import does nothing."""

from __future__ import annotations

import ast

import pytest

from kernelquarry.filters.language import check
from kernelquarry.filters.language.unused import close_gaps, without_unused

CANDIDATE = """import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def launch(x):
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), WIDTH),)](x, out, x.numel(), BLOCK=WIDTH)
    return out


WIDTH = 64


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return launch(x)
"""
UNUSED = {
    "an import": ("import sys", ()),
    "a decorated function": ("@torch.no_grad()\ndef test():\n    assert {1} == set([1])", ("test",)),
    "functions that use each other": (
        "def test(x=1):\n    return main(x)\n\n\ndef main(x):\n    return test(eval('x'))",
        ("test", "main"),
    ),
    "a class with a static method": ("class A:\n    @staticmethod\n    def f(x):\n        return x.add(x)", ("A",)),
    "a class": ("class Model(torch.nn.Module):\n    def forward(self, x):\n        return x.add(x)", ("Model",)),
    "constants": (
        "SIZES = {1, 2}\nTESTS = [len, (SIZES, -1.5)]\nN = 2 * 3\nM: int = N + 1",
        ("SIZES", "TESTS", "N", "M"),
    ),
    "a kernel of a function": (
        "@triton.jit\ndef one(x):\n    tl.store(x, 1)\n\n\ndef other(x):\n    one[(1,)](x)",
        ("one", "other"),
    ),
    "a benchmark": (
        "import logging\nimport time\nfrom typing import Any\n\nlogger = logging.getLogger(__name__)\n\n\n"
        "@triton.testing.perf_report(triton.testing.Benchmark(x_names=['n'], x_vals=[1, 2]))\n"
        "def bench(n: int | None = 4, *, out: list[Any] = ()) -> 'float':\n    return time.time()",
        ("logger", "bench"),
    ),
    "a class of a timer": (
        "class Timer:\n    total: float = 0.0\n\n    def __enter__(self):\n        print()",
        ("Timer",),
    ),
    "an attribute that needs a GPU": ("driver = triton.runtime.driver.active.utils", ("driver",)),
    "a program": ("import os\n\nif __name__ == '__main__':\n    os._exit(ModelNew()(None))", ()),
}
USED = {
    "a name behind the class": "import sys\nlaunch = 3",
    "a call": "import sys\nsys.setrecursionlimit(9)",
    "a call in a constant": "X = open('a')",
    "a call in a default": "def f(x=print()):\n    return x",
    "a call in a decorator": "def deco(f):\n    return f\n\n\n@deco\ndef f():\n    return 1",
    "a decorated class": "def deco(c):\n    return c\n\n\n@deco\nclass A:\n    x = 1",
    "a registration": "@torch.library.impl('aten::add', 'CPU')\ndef add(x, y):\n    return x",
    "a call in a class": "class A:\n    x = print()",
    "a class with __init_subclass__": "class A:\n    def __init_subclass__(cls):\n        print()",
    "a metaclass": "class M(type):\n    pass\n\n\nclass A(metaclass=M):\n    pass",
    "a kernel that nothing names": "@triton.jit\ndef decoy(x):\n    tl.store(x, 1)",
    "an attribute": "torch.nn.Module.x = 3",
    "an import of another package": "import einops",
    "an import of all names": "from math import *",
    "a file that runs": "import unittest.__main__",
    "a missing name": "from os import no_such_name",
    "an undefined value": "X = no_such_name",
    "a file that an attribute would run": "import unittest\n\nX = unittest.__main__.main",
    "an undefined attribute": "X = torch.there_is_no_such_thing",
    "an undefined base": "class A(torch.nn.NoLayer):\n    x = 1",
    "an annotation that is not there": "def f(x: torch.float32.wide):\n    return x",
    "a value that raises": "X = 1 / 0",
    "values that do not fit": "(X, Y) = (1,)",
    "a target in an attribute": "(tl.exp, X) = (tl.exp2, 0)",
    "a target in a comprehension": "X = [0 for tl.exp in [tl.exp2]]",
    "a subscript": "X = WIDTH[0]",
    "an annotation that calls": "def f() -> exec('launch = 3'):\n    return 1",
    "an annotation that binds": "def f(x: (WIDTH := 3)):\n    return x",
    "an annotation of a constant": "X: (WIDTH := 3) = 0",
    "an argument of a decorator": "@torch.set_grad_enabled(mode=(WIDTH := 3) is not None)\ndef f():\n    return 1",
    "a tuner's argument": (
        "def g(x):\n    f[(1,)](x)\n\n\n"
        "@triton.autotune(configs=exec('launch = 3') or [], key=[])\n@triton.jit\ndef f(x):\n    tl.store(x, 7)"
    ),
    "a base": "class A([torch.nn.Module for tl.exp in [tl.exp2]][0]):\n    x = 1",
    "another decorator of this name": (
        "def staticmethod(f):\n    tl.exp = tl.exp2\n\n\n@staticmethod\ndef f():\n    return 1"
    ),
    "a decorator in place of an import": (
        "from torch import no_grad\n\n\ndef no_grad(f):\n    tl.exp = tl.exp2\n\n\n@no_grad\ndef f():\n    return 1"
    ),
    "built-in names": "import builtins\n\n__builtins__ = {'max': min}",
    "the file's name": "__name__ = '__main__'",
}


@pytest.mark.parametrize("name", UNUSED)
@pytest.mark.parametrize("behind", [False, True])
def test_what_the_entry_point_does_not_use_is_left_out(name: str, behind: bool) -> None:
    text, names = UNUSED[name]
    code = f"{CANDIDATE}\n\n{text}\n" if behind else f"import torch\n{text}\n{CANDIDATE}".replace("import torch", "", 1)
    if not behind and "torch" in text:
        code = f"import torch\n{code}".replace("import torch\nimport triton\n", "import triton\n")
    used = without_unused(code)
    assert used.removed == names
    assert check(used.code) is None
    assert len(used.code.splitlines()) == len(code.splitlines())
    assert used.code.splitlines().index("class ModelNew(torch.nn.Module):") == code.splitlines().index(
        "class ModelNew(torch.nn.Module):"
    )
    assert ast.dump(ast.parse(close_gaps(used.code))) == ast.dump(ast.parse(used.code))


@pytest.mark.parametrize("name", USED)
def test_what_does_something_when_it_is_imported_stays(name: str) -> None:
    code = f"{CANDIDATE}\n\n{USED[name]}\n"
    left = ast.unparse(ast.parse(without_unused(code).code))
    assert ast.unparse(ast.parse(USED[name])).splitlines()[-1] in left


def test_arguments_use_names_of_the_file() -> None:
    code = f"{CANDIDATE}\n\ndef width():\n    return 3\n"
    assert without_unused(code).removed == ("width",)
    assert without_unused(code, "[width()]").removed == ()


def test_a_class_under_another_name_is_used() -> None:
    code = CANDIDATE.replace("class ModelNew", "class Double") + "\n\nModelNew = Double\n"
    assert without_unused(code).code == code


@pytest.mark.parametrize("code", ["def f(:", "def f():\n    return 1\n", CANDIDATE, ""])
def test_other_texts_stay_as_they_are(code: str) -> None:
    assert without_unused(code).code == code


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\u2028"])
def test_text_with_other_line_ends_stays(mark: str) -> None:
    code = f"import sys  # {mark}\n{CANDIDATE}"
    assert without_unused(code).code == code
    assert "line end" in str(check(code))


def test_statements_on_one_line_stay() -> None:
    code = CANDIDATE.replace("import torch\n", "import sys; import torch\n")
    assert without_unused(code).code == code


def test_gaps_are_closed_between_statements_alone() -> None:
    text = 'def f():\n    """A\n\n\n\n    B"""\n'
    assert close_gaps(f"\n\n\n\n{text}\n\n\n\n\n# note\n{text}\n\n") == f"{text}\n\n# note\n{text}"
