"""Numbers that the state of a construction is made of, whatever its sizes."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.sandbox.guest.probing.behaviour import EVEN, _by_axes


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0, 32, 3, 3), (4, 1, 6)])
def test_a_parameter_of_any_shape_has_values(shape: tuple[int, ...]) -> None:
    values = _by_axes(shape, 7, EVEN)
    assert tuple(values.shape) == shape
    assert bool(((values >= 0) & (values < 1)).all())
