"""KernelBench's checks of an answer, run with Triton's interpreter in place of a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import kernelbench
import pytest
from corpus import HERE
from factories import make_pairs

from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.schema.records import Pair

SCALE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(5, 8)]


def get_init_inputs():
    return [8]
"""
SCALE_NEW = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, n_cols, size, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < size
    x = tl.load(x_ptr + offset, mask=mask)
    weight = tl.load(weight_ptr + offset % n_cols, mask=mask)
    tl.store(out_ptr + offset, x * weight, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 32),)](x, self.weight, out, x.shape[1], x.numel(), BLOCK=32)
        return out
"""
ASK = """
import json, sys, torch
sys.path.append({folder!r})
import kernelbench
sources = json.load(sys.stdin)
print(json.dumps([kernelbench.evaluate({reference!r}, source, torch.device("cpu")) for source in sources]))
"""


def reasons_against(*sources: str) -> list[str]:
    """For each source, the reason why it is rejected as an answer to `SCALE`; "" if it is accepted."""
    script = ASK.format(folder=str(HERE.parent / "benchmarks"), reference=SCALE)
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(sources), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_what_is_accepted() -> None:
    off, short, late, broken = reasons_against(
        SCALE_NEW.replace("x * weight", "x * weight + 1e-3"),
        SCALE_NEW.replace("return out", "return out[:4]"),
        SCALE_NEW.replace("torch.randn(features)", "torch.zeros(features)"),
        "import torch\n",
    )
    assert off.startswith("trial 0: off by 0.00")
    assert short == "trial 0: shape (4, 8), not (5, 8)"
    assert late.startswith("trial 0: off by")
    assert broken.startswith("does not load: AttributeError")
    assert reasons_against(SCALE_NEW) == [""]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    pairs = [p for p in make_pairs(8) if p.split == "train"]
    write_rows(tmp_path, Path("data") / "pairs", Pair, pairs)
    return tmp_path


def test_a_run_goes_on_where_it_was_stopped(dataset: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    rows = kernelbench.todo(dataset, 0, results)
    assert len(rows) > 2
    first, second = rows[:2]
    lines = [{"id": first.id, "begun": 1.0}, {"id": second.id, "begun": 1.0}]
    lines += [{"id": second.id, "reference": "", "candidate": ""}]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert kernelbench.todo(dataset, 0, results) == rows[2:]
    accepted, counted, note = kernelbench.report(results)
    assert (accepted, counted) == (1, 2), "a row that a process died of counts, and is not accepted"
    assert "1 the process died" in note


def test_a_row_without_a_float_tensor_as_its_result_does_not_count(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    lines = [
        {"id": "a", "reference": "trial 0: AttributeError: 'tuple' object has no attribute 'shape'", "candidate": "…"},
        {"id": "b", "reference": "", "candidate": "trial 0: off by 1"},
    ]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert kernelbench.report(results)[:2] == (0, 1)


def test_the_speed_is_the_median_of_what_is_sound(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    ratios = [(0.5, ""), (1.0, ""), (1.5, ""), (9.0, "faster than the floor"), (0.0, "")]
    lines = [
        {"id": str(i), "over_compile": ratio, "over_eager": 2.0, "suspect": suspect}
        for i, (ratio, suspect) in enumerate(ratios)
    ]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert kernelbench.speed(results) == (1.0, "3 of 5 rows; over eager 2.00")
