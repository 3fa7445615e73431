"""The guest's side of the probe. Most of its tests run it from outside, in `tests/transforms/probe`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from kernelquarry.pipeline.sandbox.guest.jobs import probe
from kernelquarry.pipeline.sandbox.guest.jobs.probe import _filled_memory


def test_uninitialised_memory_is_filled_with_nan() -> None:
    with _filled_memory():
        assert torch.empty(100).isnan().all()
        assert torch.nn.Parameter(torch.empty(100)).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_warm_up_is_kept_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run, replies = probe.run, []
    monkeypatch.setattr(probe, "run", lambda *args: replies.append(run(*args)))
    probe.warm()
    assert len(replies[0][0]["workloads"]) == 3
    assert not list(tmp_path.iterdir())
    assert "probed" not in sys.modules
