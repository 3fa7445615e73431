"""The slope of a program on a simulated GPU, with a simulated clock that kernels advance."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gpu_double import Double, floats
from traced_programs import SIZE, doubled_sum, kernel

from kernelquarry.pipeline.sandbox.executor import slope as slopes
from kernelquarry.pipeline.sandbox.executor.slope import slope

REQUEST = {
    "kernels": [kernel("add"), kernel("scale")],
    "programs": [doubled_sum()],
    "drawn": [{"shape": [SIZE], "dtype": "float32", "low": 0, "high": 0}],
    "slopes": 3,
}
TENSORS = {
    "state.weight": torch.ones(SIZE),
    "binary.hash of add": torch.zeros(1, dtype=torch.uint8),
    "binary.hash of scale": torch.zeros(1, dtype=torch.uint8),
}


class Clock:
    """A simulated clock. Kernels and waits advance it by their duration."""

    now = 100.0

    def perf_counter(self) -> float:
        return self.now


def measured(monkeypatch: pytest.MonkeyPatch, seconds: float, wait: float = 0.0) -> tuple[float, int]:
    clock, seen = Clock(), []
    monkeypatch.setattr(slopes, "time", clock)

    def add(grid: Any, x: int, weight: int, out: int, count: int) -> None:
        seen.append(float(floats(x, count).sum()))
        clock.now += seconds

    device = Double({"add": add, "scale": lambda *_: None})
    monkeypatch.setattr(device, "synchronize", lambda: setattr(clock, "now", clock.now + wait))
    reply, tensors = slope(device, REQUEST, TENSORS)
    assert device.turns == 1
    assert tensors == {} and len(set(seen)) == 1 and seen[0] != 0.0
    return reply["slope_s"], len(seen)


def test_the_fixed_cost_of_a_run_cancels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, 1e-3, wait=0.25)[0] == pytest.approx(1e-3)


def test_without_slopes_it_is_called_once() -> None:
    seen: list[int] = []
    device = Double({"add": lambda *_: seen.append(1), "scale": lambda *_: None})
    assert slope(device, REQUEST | {"slopes": 0}, TENSORS) == ({}, {})
    assert (seen, device.turns) == ([1], 0)


def test_quick_programs_are_called_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    (quick, many), (slow, few) = (measured(monkeypatch, seconds) for seconds in (1e-5, 1.0))
    assert (quick, slow) == (pytest.approx(1e-5), pytest.approx(1.0))
    assert many > 100 * few / 4 and few < 50


def test_no_program_without_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"state\.weight"):
        slope(Double({}), REQUEST, {name: value for name, value in TENSORS.items() if name != "state.weight"})
