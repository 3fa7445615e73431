"""Pretend to have a GPU: Inductor sees one, and nothing uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
from torch import nn
from torch._inductor import config
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelquarry.pipeline.sandbox.guest.jobs import lower as guest
from kernelquarry.pipeline.sandbox.guest.lowering.devices import pretend_gpu
from kernelquarry.pipeline.sandbox.guest.lowering.inductor import OPTIONS
from kernelquarry.pipeline.sandbox.jobs.lower import LowerRequest


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Functions that would make a CUDA context raise, in torch's CPU and CUDA builds."""

    def used(*args: Any) -> None:
        raise AssertionError("CUDA was initialised")

    for name in ("_cuda_init", "_cuda_getCurrentRawStream", "_cuda_setDevice"):
        monkeypatch.setattr(torch._C, name, used, raising=False)
    yield
    assert not torch.cuda.is_initialized()


def workload(*shape: int) -> dict[str, Any]:
    return {
        "tensors": [{"name": "x", "shape": list(shape), "dtype": "float32"}],
        "args": json.dumps([{"tensor": 0}]),
        "kwargs": "{}",
    }


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.usefixtures("no_driver")
def test_a_module_is_lowered_without_a_gpu(target: str) -> None:
    before = (torch.cuda.is_available, torch.version.cuda, triton.runtime.driver._active)
    module = nn.Sequential(nn.Linear(8, 20), nn.ReLU()).eval()
    reply = guest._lower(module, LowerRequest("", (workload(6, 8), workload(9, 8)), target))
    assert reply["shape_general"]
    assert reply["bindings"] == [
        ["arg0_1", "parameter", "0.weight"],
        ["arg1_1", "parameter", "0.bias"],
        ["arg2_1", "input", "0"],
    ]
    compiled_for = "'gfx942'" if target == "gfx942" else target.removeprefix("sm_")
    assert f"cc={compiled_for}," in reply["inductor_code"]
    assert (torch.cuda.is_available, torch.version.cuda, triton.runtime.driver._active) == before


class Turned(nn.Module):
    """Inductor removes the copy and computes the layout of later values again."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.dropout(x, 0.0, train=False).transpose(1, 2))


@pytest.mark.usefixtures("no_driver")
def test_queries_of_a_value_on_the_gpu_need_no_gpu() -> None:
    assert guest._lower(Turned().eval(), LowerRequest("", (workload(3, 6, 8),), "sm_90"))["shape_general"]
    with pretend_gpu("sm_90"), FakeTensorMode():
        value = torch.empty(2, 3, device="cuda", dtype=torch.bool)
        assert (~value.t().contiguous()).stride() == (2, 1)


def test_the_patches_end_with_their_context() -> None:
    with pretend_gpu("sm_90"):
        assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
        assert triton.runtime.driver.active.get_current_target().arch == 90
    before = torch.cuda.is_available()
    with pytest.raises(RuntimeError, match="inside"), pretend_gpu("sm_80"):
        raise RuntimeError("inside")
    assert torch.cuda.is_available() == before


def test_inductor_has_every_option() -> None:
    """Options of other releases are skipped in use; for this release, none is misspelt."""
    unknown = [name for name in OPTIONS if name not in config._config]
    assert unknown == []
