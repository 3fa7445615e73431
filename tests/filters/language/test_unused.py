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
    "constants": ("SIZES = {1, 2}\nTESTS = [double]", ("SIZES", "TESTS")),
    "a kernel of a function": (
        "@triton.jit\ndef one(x):\n    tl.store(x, 1)\n\n\ndef other(x):\n    one[(1,)](x)",
        ("one", "other"),
    ),
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


def test_statements_on_one_line_stay() -> None:
    code = CANDIDATE.replace("import torch\n", "import sys; import torch\n")
    assert without_unused(code).code == code


def test_gaps_are_closed_between_statements_alone() -> None:
    text = 'def f():\n    """A\n\n\n\n    B"""\n'
    assert close_gaps(f"\n\n\n\n{text}\n\n\n\n\n# note\n{text}\n\n") == f"{text}\n\n# note\n{text}"
