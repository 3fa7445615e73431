"""Benchmarks are read as they lie in folders, tables and datasets."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.decontaminate.problems import module_of, read_problems

MODULE = """
import torch
import torch.nn as nn
import unused

class Model(nn.Module):
    def __init__(self, size):
        super(Model, self).__init__()
        self.layer = nn.Linear(size, WIDTH)

    def forward(self, x):
        return helper(self.layer(x))

WIDTH = 8
batch_size = 128

def helper(x):
    return torch.relu(x)

def get_inputs():
    return [torch.rand(batch_size, 8)]

def get_init_inputs():
    return [8]
"""
FUNCTION = """
import torch

def scaled(input: torch.Tensor, by=2) -> torch.Tensor:
    return input * by

####################################################################

def test_scaled():
    print(scaled(torch.ones(2)))

test_scaled()
"""


def test_a_module_comes_with_what_it_needs() -> None:
    code = module_of("level1/1_Helped", MODULE)
    assert "WIDTH = 8" in code and "def helper" in code and "import torch" in code
    assert "batch_size" not in code and "get_inputs" not in code and "unused" not in code


def test_a_function_becomes_a_forward() -> None:
    code = module_of("scaled", FUNCTION)
    assert "class Model(torch.nn.Module):" in code and "def forward(self, input: torch.Tensor, by=2)" in code
    assert "test_scaled" not in code


@pytest.mark.parametrize("code", ["x = 1", "def other(): pass", "def (", "class Model: pass  " + "(" * 500])
def test_what_has_no_problem(code: str) -> None:
    assert module_of("scaled", code) == ""


def test_a_folder(tmp_path: Path) -> None:
    for name, code in {
        "level1/19_A b.py": MODULE,
        "level2/1_B.py": MODULE,
        "scaled.py": FUNCTION,
        "setup.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    assert [problem.name for problem in read_problems(str(tmp_path))] == ["level1/19_A_b", "level2/1_B", "scaled"]


def test_tables(tmp_path: Path) -> None:
    rows = [{"code": MODULE, "level": 1, "name": "19_ReLU", "problem_id": 19}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "level_1.parquet")
    assert [problem.name for problem in read_problems(str(tmp_path / "level_1.parquet"))] == ["level1/19_ReLU"]
    (tmp_path / "t.jsonl").write_text(json.dumps({"file": "scaled.py", "output": FUNCTION}) + "\n\n")
    assert [problem.name for problem in read_problems(str(tmp_path / "t.jsonl"))] == ["t/scaled"]


def test_nothing_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no problem found"):
        read_problems(str(tmp_path))
    with pytest.raises(UserError, match="no folder, file or dataset"):
        read_problems(str(tmp_path / "missing" / "deeper"))
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(UserError, match="no JSON"):
        read_problems(str(tmp_path))
