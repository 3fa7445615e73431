"""The guest's side of the probe, where it is not seen from outside: `tests/transforms/probe` has the rest."""

from __future__ import annotations

import torch

from kernelquarry.pipeline.sandbox.guest.probe import _filled_memory


def test_memory_that_is_given_no_values_is_nan() -> None:
    with _filled_memory():
        assert torch.empty(100).isnan().all()
        assert torch.nn.Parameter(torch.empty(100)).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()
