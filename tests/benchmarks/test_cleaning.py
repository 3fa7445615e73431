"""The attack on indexes rebuilds text where runs overlap, and edits of problems change what they should."""

from __future__ import annotations

import ast

import pytest
from cleaning import chain
from problem_edits import EDITS, init_arguments

from kernelquarry.transforms.decontaminate.module_fingerprint import RUN
from kernelquarry.transforms.similarity.form import runs

TEXT = tuple(f"word{i}" for i in range(60))
PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width, groups=8):
        super().__init__()
        self.inner = nn.Linear(width, 64)
        self.outer = nn.Linear(64, 256)

    def forward(self, x):
        hidden = torch.relu(self.inner(x))
        return self.outer(hidden)

width = 128

def get_inputs():
    return [torch.rand(16, width)]

def get_init_inputs():
    return [width]
"""


@pytest.mark.parametrize(("step", "expected"), [(1, len(TEXT) - RUN), (2, 0), (RUN, 0)])
def test_a_chain_needs_runs_that_overlap_by_all_but_one_token(step: int, expected: int) -> None:
    wanted = set(runs(TEXT, RUN).tolist()[::step])
    start = TEXT[:RUN]
    (seed,) = runs(start, RUN).tolist()
    assert chain({seed: start}, wanted, sorted(TEXT)) == expected


def test_edits() -> None:
    texts = {kind: edit(PROBLEM) for kind, edit in EDITS.items()}
    assert texts["as_is"] == PROBLEM
    assert not {"width", "inner", "hidden"} & {
        part.id for part in ast.walk(ast.parse(texts["renamed"])) if isinstance(part, ast.Name)
    }
    assert "self, width=96, groups=8" in texts["resized"] and "nn.Linear(48, 144)" in texts["resized"]
    assert "class OwnLinear" in texts["refactored"] and "torch.clamp" in texts["refactored"]
    assert texts["added"].count("torch.atan(") == 1
    assert all("get_inputs" not in texts[kind] for kind in texts if kind != "as_is")


def test_constructor_arguments_become_literals() -> None:
    assert [ast.unparse(item) for item in init_arguments(PROBLEM)] == ["128"]
    assert init_arguments(PROBLEM.replace("[width]", "[made()]")) == []
