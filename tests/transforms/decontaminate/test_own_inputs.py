"""Problems are called with the inputs of their file, at small sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.transforms.decontaminate.benchmark_problems import read_problems
from kernelquarry.transforms.decontaminate.build_index import fingerprint
from kernelquarry.transforms.decontaminate.own_inputs import with_small_arguments, with_small_inputs

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, mystery, other=64):
        super().__init__()
        self.layer = nn.Linear(mystery["width"], other)

    def forward(self, x):
        return torch.relu(self.layer(x))

width, kernel = 4096, 3

def get_inputs():
    batch = 128
    return [torch.rand(batch, width)]

def get_init_inputs():
    return [{"width": width}, kernel]
"""


def test_integers_outside_of_classes_become_small() -> None:
    equal, halved = with_small_inputs(PROBLEM)
    assert "width, kernel = (16, 3)" in equal and "batch = 16" in equal and "other=64" in equal
    assert "width, kernel = (32, 3)" in halved and "batch = 32" in halved


def test_arguments_of_the_constructor_may_be_left_out() -> None:
    text = PROBLEM.partition("def get_init_inputs")[0]
    assert all("def get_init_inputs():\n    return []" in version for version in with_small_inputs(text))


def test_the_constructor_is_also_tried_with_guessed_inputs() -> None:
    version = with_small_arguments(PROBLEM)
    assert "def get_init_inputs" in version and "def get_inputs" not in version and "width, kernel = (16, 3)" in version


@pytest.mark.parametrize("text", ["", "class Model: ...", "def get_inputs(", "get_inputs = 1"])
def test_files_without_inputs(text: str) -> None:
    assert with_small_inputs(text) == () and with_small_arguments(text) == ""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def test_a_problem_runs_on_its_own_inputs_where_guesses_fail(tmp_path: Path, sandbox: Sandbox) -> None:
    (tmp_path / "a.py").write_text(PROBLEM)
    (source,) = read_problems(str(tmp_path))
    assert "get_inputs" not in source.code
    found = fingerprint(source, sandbox)
    assert found.operators == 2 and found.behaviours, "a linear layer and a ReLU"


def test_the_level_of_single_operators_counts_as_one(tmp_path: Path, sandbox: Sandbox) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_A.py").write_text(PROBLEM)
    (source,) = read_problems(str(tmp_path))
    assert fingerprint(source, sandbox).operators == 1
