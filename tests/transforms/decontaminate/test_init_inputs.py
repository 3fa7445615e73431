"""Problems with the constructor arguments of their benchmark, at small sizes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernelquarry.transforms.decontaminate.benchmark_problems import Source, read_problems
from kernelquarry.transforms.decontaminate.init_inputs import init_inputs_of, with_defaults

TAIL = """
width, kernel = 4096, 3
shape = (width, 1, 1)

def get_init_inputs():
    return [width, shape, kernel, 0.5, {"rate": -2}]
"""
HEAD = "class Model(nn.Module):\n    def __init__(self, {}):\n        pass\n"


def given(text: str) -> list[str]:
    return [ast.unparse(item) for item in init_inputs_of(text)]


def test_names_become_literals_and_sizes_small() -> None:
    assert given(TAIL) == ["32", "(32, 1, 1)", "3", "0.5", "{'rate': -2}"]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "def get_init_inputs():\n    return []",
        "def get_init_inputs():\n    return [made()]",
        "def get_init_inputs():\n    n = 2\n    return [n]",
        "n = n\ndef get_init_inputs():\n    return [n]",
    ],
)
def test_functions_without_literals(text: str) -> None:
    assert given(text) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("a, b", "a=32, b=3"),
        ("a, b, c=1", "a=32, b=3, c=1"),
        ("a, b=7", "a=32, b=3"),
        ("a=5, b=7, c=1", "a=32, b=3, c=1"),
        ("a", None),
        ("a, b, c", None),
    ],
)
def test_arguments_become_defaults(parameters: str, expected: str | None) -> None:
    codes = with_defaults(HEAD.format(parameters), init_inputs_of("def get_init_inputs():\n    return [64, 3]"))
    assert [f"def __init__(self, {expected}):" in code for code in codes] == ([] if expected is None else [True])


def test_small_sizes_give_a_second_version() -> None:
    tail = "def get_init_inputs():\n    return [3, 64, 3, 8, (1, 2)]"
    header = HEAD.format("in_channels, out_channels, kernel_size, hidden_size, dim")
    as_it_is, sized = with_defaults(header, init_inputs_of(tail))
    assert "in_channels=3, out_channels=32, kernel_size=3, hidden_size=8, dim=(1, 2)" in as_it_is
    assert "in_channels=32, out_channels=32, kernel_size=3, hidden_size=32, dim=(1, 2)" in sized


def test_a_problem_has_both_versions(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from torch import nn\n" + HEAD.format("a, b, c, d, e") + TAIL)
    (problem,) = read_problems(str(tmp_path))
    assert isinstance(problem, Source) and "self, a, b, c, d, e)" in problem.code
    (given,) = problem.constructed
    assert "a=32, b=(32, 1, 1), c=3, d=0.5" in given and "get_init_inputs" not in given
