"""Values of an evened module's state."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.sandbox.guest.similarity.behaviour_digest import EVEN, _by_axes


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0, 32, 3, 3), (4, 1, 6)])
def test_values_exist_for_every_shape(shape: tuple[int, ...]) -> None:
    values = _by_axes(shape, 7, EVEN)
    assert tuple(values.shape) == shape
    assert bool(((values >= 0) & (values < 1)).all())
