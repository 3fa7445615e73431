"""The profile of a few training steps by `benchmarks/step.py`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import step
import torch
from torch.autograd import DeviceType


def test_a_step_is_timed_and_profiled(
    dataset: Path, recipe_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "step.txt"
    arguments = ["--dataset", str(dataset), "--config", recipe_file, "--steps", "1", "2", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["step.py", *arguments])
    step.main()
    printed = capsys.readouterr().out
    assert printed.endswith(out.read_text())
    match = re.search(r"([\d,]+) tokens a step in (\d+) ms: ([\d,]+) a second", printed)
    assert match is not None
    tokens, ms, rate = (int(text.replace(",", "")) for text in match.groups())
    assert 2 * 1000 < tokens <= 2 * 2600  # two sequences of the context, packed
    assert rate == pytest.approx(tokens / (ms / 1000), rel=0.1)
    assert "aten::mm" in printed and "Self CPU" in printed


@dataclass
class Event:
    name: str
    device_time: float  # microseconds
    device_type: DeviceType = DeviceType.CUDA
    is_user_annotation: bool = False


class Profile:
    def events(self) -> list[Event]:
        host = Event("aten::mm", 9e6, DeviceType.CPU)
        kernels = [Event("nvjet_tst", 3e5), Event("flash_fwd", 1e5), Event("nvjet_tst", 2e5)]
        return [host, *kernels, Event("Optimizer.step", 9e5, is_user_annotation=True)]

    def key_averages(self) -> Profile:
        return self

    def table(self, sort_by: str, **_: int) -> str:
        return f"by {sort_by}"


def test_gpu_kernels_are_grouped_by_kind() -> None:
    watch = step.Watch(1, 2, 1)
    watch.seconds, watch.tokens, watch.looked_at_s, watch.profile = 0.5, 1000, 1.0, Profile()
    watch.weights, watch.width, watch.layers = 10_000, 8, 2
    watch.rows = [torch.tensor([0, 300, 500], dtype=torch.int32), torch.tensor([0, 500], dtype=torch.int32)]
    lines = step.render(watch, 1e9).splitlines()
    assert lines[0] == "500 tokens a step in 250 ms: 2,000 a second"
    assert lines[1].startswith("12.0 % of the arithmetic")
    assert lines[1].endswith(f"{100 * 7 * (300**2 + 200**2 + 500**2) * 16 / 0.5 / 1e9:.1f} % more")
    assert lines[2:5] == [
        " 40.0 %  idle while profiled",
        " 50.0 %  products of matrices",
        " 10.0 %  attention",
    ]
    assert lines[-1] == "by device_time_total"


def test_kernels_have_kinds() -> None:
    names = {
        "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel": "attention",
        "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTT": "products of matrices",
        "_backward_kernel": "head",
        "triton_red_fused_add_mul_4": "compiled layers",
        "void at::native::multi_tensor_apply_kernel": "optimiser",
        "Memcpy HtoD (Pinned -> Device)": "copies",
        "void at::native::vectorized_elementwise_kernel": "other",
    }
    assert {name: step.kind_of(name) for name in names} == names
