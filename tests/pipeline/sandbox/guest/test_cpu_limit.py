"""Limits of calls follow the speed of the machine."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.sandbox.guest.lib.cpu_limit import SLOWNESS, TooSlow, cpu_limit, slowness


def test_slow_machines_get_more_time_and_fast_ones_no_less() -> None:
    assert slowness(0.0) == 1.0
    assert 1.0 < slowness(0.01) < slowness(0.02) <= slowness(60.0) <= 8.0
    assert 1.0 <= SLOWNESS <= 8.0


def test_a_call_ends_at_its_limit() -> None:
    with pytest.raises(TooSlow), cpu_limit(0.01):
        while True:
            pass
