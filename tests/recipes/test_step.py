"""A profile of a few steps, of a training for real."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from corpus import HERE

sys.path.append(str(HERE.parent / "benchmarks"))
import step


def test_a_step_is_timed_and_profiled(
    dataset: Path, recipe_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "step.txt"
    asked = ["--dataset", str(dataset), "--config", recipe_file, "--steps", "1", "2", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["step.py", *asked])
    step.main()
    printed = capsys.readouterr().out
    assert printed.endswith(out.read_text())
    found = re.search(r"([\d,]+) tokens a step in (\d+) ms: ([\d,]+) a second", printed)
    assert found is not None
    tokens, ms, rate = (int(text.replace(",", "")) for text in found.groups())
    assert 2 * 1000 < tokens <= 2 * 2600  # two sequences of the context, packed
    assert rate == pytest.approx(tokens / (ms / 1000), rel=0.1)
    assert "aten::mm" in printed and "Self CPU" in printed


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
