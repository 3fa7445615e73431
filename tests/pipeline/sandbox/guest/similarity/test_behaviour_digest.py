"""Values of inputs and states, and the calls that a digest makes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.probing.guess import SIZES, Guess, TensorArg
from kernelquarry.pipeline.sandbox.guest.similarity import behaviour_digest
from kernelquarry.pipeline.sandbox.guest.similarity.behaviour_digest import EVEN, _by_axes, _by_place, output_texts


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0, 32, 3, 3), (4, 1, 6)])
def test_values_exist_for_every_shape(shape: tuple[int, ...]) -> None:
    values = _by_axes(shape, 7, EVEN)
    assert tuple(values.shape) == shape
    assert bool(((values >= 0) & (values < 1)).all())


def test_prepared_values_are_those_computed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behaviour_digest, "_prepared", {})
    shapes = [(), (0, 3), (4, 5), (2, 32, 32, 40), (3, 1 << 17)]
    computed = [_by_place(shape, 7) for shape in shapes]
    behaviour_digest.warm()
    assert all(torch.equal(_by_place(shape, 7), value) for shape, value in zip(shapes, computed, strict=True))


@pytest.mark.parametrize(
    ("operator", "has_digest"), [("flip", False), ("rounded", False), ("nearly", True), ("relu", True)]
)
def test_outputs_that_are_inputs_up_to_rounding_have_no_digest(operator: str, has_digest: bool) -> None:
    operators = {
        "flip": lambda x: x.flip(-1),
        "rounded": lambda x: x.exp().log(),
        "nearly": lambda x: x + 1e-6,
        "relu": torch.relu,
    }

    class Applied(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return operators[operator](x)

    assert any(output_texts(Applied(), Guess((TensorArg("x", ("B", "C")),), tuple(SIZES[0].items())))) == has_digest


def test_a_digest_makes_each_call_once() -> None:
    class Recorded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            self.inputs.append(x.clone())
            return x.sin().cumsum(-1)

    module = Recorded()
    assert all(output_texts(module, Guess((TensorArg("x", ("B", "C")),), tuple(SIZES[0].items()))))
    seen = {(tuple(x.shape), x.numpy().tobytes()) for x in module.inputs}
    assert len(seen) == len(module.inputs) > 5
