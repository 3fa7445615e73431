"""`forward` raises for calls that the kernels were not written for."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from modules import Call, probed, source

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy

LINEAR = "self.fc = nn.Linear(8, 4)"
SMALL_ONLY = "F.interpolate(x, (32, 32)) if x.shape[3] < 32 else x * 2"
IMAGES = [Call({"x": (2, 3, 12, 20)}), Call({"x": (3, 3, 11, 23)})]


def refused_by(code: str, calls: list[Call], sandbox: Sandbox, tmp_path: Path, *args: Any, **kwargs: Any) -> str:
    """The message of the error that the candidate's `forward` raises for a call, before it needs a GPU."""
    lowered = lower(probed(code, *calls), sandbox)
    assert isinstance(lowered, Kept), lowered
    tidied = tidy(lowered.record)
    assert isinstance(tidied, Kept), tidied
    path = tmp_path / "candidate.py"
    path.write_text(tidied.record.triton_code)
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(ValueError) as raised:
        module.ModelNew()(*args, **kwargs)
    return str(raised.value)


@pytest.mark.parametrize(
    ("forward", "layers", "calls", "shape", "message"),
    [
        ("self.fc(x)", LINEAR, [Call({"x": (6, 8)}), Call({"x": (9, 8)})], (6, 9), "x is (6, 9), not (batch, 8)"),
        ("x.sum(1)", "", [Call({"x": (6, 8)})], (7, 8), "x is (7, 8), not (6, 8)"),
        (SMALL_ONLY, "", IMAGES, (2, 3, 12, 32), "the kernels need width <= 31"),
        (SMALL_ONLY, "", IMAGES, (2, 4, 12, 20), "x is (2, 4, 12, 20), not (batch, 3, height, width)"),
    ],
)
def test_sizes(
    forward: str, layers: str, calls: list[Call], shape: tuple[int, ...], message: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    assert refused_by(source(forward, layers), calls, sandbox, tmp_path, torch.rand(shape)) == message


def test_sizes_that_must_be_the_same(sandbox: Sandbox, tmp_path: Path) -> None:
    code, shapes = source("x * 2 + y", signature="x, y"), [(6, 8), (9, 5)]
    calls = [Call({"x": shape, "y": shape}) for shape in shapes]
    x, y = torch.rand(6, 8), torch.rand(6, 1)
    assert refused_by(code, calls, sandbox, tmp_path, x, y).startswith("y is (6, 1), not (")


@pytest.mark.parametrize(("mask", "scale"), [(torch.rand(6, 8), 2.0), (None, 3.0)])
def test_plain_values_that_the_trace_used(
    mask: torch.Tensor | None, scale: float, sandbox: Sandbox, tmp_path: Path
) -> None:
    forward = "x * scale if mask is None else x * mask"
    code = source(forward, signature="x, mask=None, *, scale=2.0, unread=5")
    calls = [Call({"x": (6, 8)}), Call({"x": (9, 5)})]
    message = refused_by(code, calls, sandbox, tmp_path, torch.rand(6, 8), mask, scale=scale, unread=7)
    assert message == "the kernels are written for mask=None, scale=2.0"
