"""Benchmarks are read from folders, tables and datasets."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.decontaminate.benchmark_problems import module_of, read_problems

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


def test_a_module_keeps_the_statements_that_it_needs() -> None:
    code = module_of("level1/1_Helped", MODULE)
    assert "WIDTH = 8" in code and "def helper" in code and "import torch" in code
    assert "batch_size" not in code and "get_inputs" not in code and "unused" not in code


def test_parameters_and_locals_do_not_need_globals_of_their_name() -> None:
    """A constructor's parameter `in_channels` does not use the file's global `in_channels = 64`."""
    text = MODULE + "\nsize = 8\n\ndef x(): ...\n"
    assert module_of("level1/1_Helped", text) == module_of("level1/1_Helped", MODULE)
    assert "size = 8" in module_of(
        "level1/1_Helped", text.replace("(size, WIDTH)", "(size, other())") + "def other(): return size"
    )


def test_a_function_becomes_a_forward() -> None:
    code = module_of("scaled", FUNCTION)
    assert "class Model(torch.nn.Module):" in code and "def forward(self, input: torch.Tensor, by=2)" in code
    assert "test_scaled" not in code


@pytest.mark.parametrize("code", ["x = 1", "def other(): pass", "def (", "class Model: pass  " + "(" * 500])
def test_code_without_a_problem(code: str) -> None:
    assert module_of("scaled", code) == ""


def lay_out(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def names(place: str) -> list[str]:
    return [problem.name for problem in read_problems(place)]


def test_any_folder(tmp_path: Path) -> None:
    place = lay_out(tmp_path, {"a/19_A b.py": MODULE, "scaled.py": FUNCTION, "setup.py": "", "copy.py": MODULE})
    assert names(place) == ["a/19_A_b", "scaled"], "the same code twice is one problem"


def test_the_same_code_with_other_constructor_arguments_is_another_problem(tmp_path: Path) -> None:
    assert names(lay_out(tmp_path, {"a.py": MODULE, "b.py": MODULE.replace("[8]", "[3]")})) == ["a", "b"]


@pytest.mark.parametrize("root", ["", "KernelBench", "KernelBench/level1"])
def test_a_checkout_of_kernelbench_at_any_depth(tmp_path: Path, root: str) -> None:
    """The classes `Model` in example prompts are no problems."""
    other = MODULE.replace("relu", "tanh")
    files = {"level1/19_A b.py": MODULE, "level2/1_B.py": other}
    lay_out(tmp_path / "KernelBench", files)
    lay_out(tmp_path, {"src/prompts/model_ex_add.py": MODULE.replace("relu", "abs"), "setup.py": ""})
    found = ["level1/19_A_b"] if root.endswith("level1") else ["level1/19_A_b", "level2/1_B"]
    assert names(str(tmp_path / root)) == found


KERNELS = """
import torch, triton
import triton.language as tl

@triton.jit
def scale(x, BLOCK: tl.constexpr):
    tl.store(x, 2 * tl.load(x))

def scaled_by_two(x):
    scale[(1,)](x, 16)

####################################################################

def test_it(): ...
"""


def test_the_data_of_tritonbench(tmp_path: Path) -> None:
    """PyTorch functions become runnable problems, kernels text-only ones. Lists of the same problems add nothing."""
    listed = [{"file": "scale_kernel.py", "repo": "a/b", "output": KERNELS}, {"file": "none.py", "output": "x = 1"}]
    place = lay_out(
        tmp_path / "data",
        {
            "TritonBench_T_v1/scaled.py": FUNCTION,
            "TritonBench_T_v1.jsonl": json.dumps([{"name": "scaled", "description": "scales"}], indent=1),
            "TritonBench_G_v1.json": json.dumps(listed),
            "TritonBench_G_simp_alpac_v1.json": json.dumps([{"instruction": "write", "output": KERNELS}]),
        },
    )
    function, kernels = sorted(read_problems(place), key=lambda problem: problem.runs, reverse=True)
    assert function.name == "TritonBench_T_v1/scaled" and function.runs
    assert not kernels.runs and "tl.store" in kernels.code and "test_it" not in kernels.code


def test_tasks_of_robust_kbench(tmp_path: Path) -> None:
    code = MODULE.replace("def forward(self, x):", "def forward(self, x, fn=helper):").replace("helper(self", "fn(self")
    files = {"func_forward.py": code, "func_backward.py": MODULE, "config.json": "{}"}
    place = lay_out(tmp_path, {f"tasks/linear_relu/{name}": text for name, text in files.items()})
    (problem,) = read_problems(place)
    assert problem.name == "tasks/linear_relu/func_forward" and "def helper" in problem.code


TRACE = """Operator: aten.add.Tensor
cnt: 3, ((T([4, 2], f16), T([4, 2], f16)), {})
cnt: 1, ((T([9, 9], f32), T([9, 1], f32)), {'alpha': 2})
cnt: 1, ((T([7], f32), T([7], f32)), {'alpha': -3})
Operator: aten._to_copy.default
cnt: 1, ((T([64], f32),), {'dtype': f16})
Operator: aten.odd.default
cnt: 1, ((unknown,), {})
cnt: 1, nonsense
"""


def test_operators_of_backendbench(tmp_path: Path) -> None:
    """Traces and the dataset's table give the same problems. Calls with other numbers are the same problem."""
    found = read_problems(lay_out(tmp_path / "traces", {"model_a.txt": TRACE, "model_b.txt": TRACE}))
    assert [problem.name for problem in found] == [
        "aten._to_copy.default-1", "aten.add.Tensor-1", "aten.add.Tensor-2",
    ]  # fmt: skip
    assert "return torch.ops.aten._to_copy.default(x0, dtype=torch.float16)" in found[0].code
    assert "def forward(self, x0, x1):" in found[2].code and "add.Tensor(x0, x1, alpha=2)" in found[2].code
    rows = [{"uuid": "1", "op_name": "aten.add.Tensor", "args": "((T([4], f16), 1.5), {})", "count": 2}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    (problem,) = read_problems(str(tmp_path / "train.parquet"))
    assert problem.name == "aten.add.Tensor-1" and "add.Tensor(x0, 1.5)" in problem.code


def test_tables(tmp_path: Path) -> None:
    rows = [{"code": MODULE, "level": 1, "name": "19_ReLU", "problem_id": 19}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "level_1.parquet")
    assert names(str(tmp_path / "level_1.parquet")) == ["level1/19_ReLU"]
    (tmp_path / "t.jsonl").write_text(json.dumps({"file": "scaled.py", "output": FUNCTION}) + "\n\n")
    assert names(str(tmp_path / "t.jsonl")) == ["t/scaled"]


def test_an_empty_place_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no problem found"):
        read_problems(str(tmp_path))
    with pytest.raises(UserError, match="no folder, file or dataset"):
        read_problems(str(tmp_path / "missing" / "deeper"))
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(UserError, match="no JSON"):
        read_problems(str(tmp_path))
