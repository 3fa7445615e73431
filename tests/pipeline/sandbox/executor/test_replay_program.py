"""Replay of programs on a simulated GPU, whose kernels write to real memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gpu_double import Double, floats
from traced_programs import SIZE, doubled_sum, kernel, view

from kernelquarry.pipeline.sandbox.cuda import Fault
from kernelquarry.pipeline.sandbox.executor.process import execute
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.sandbox.tensor_map import Tiling


def add(grid: Any, x: int, weight: int, out: int, count: int) -> None:
    floats(out, count)[:] = floats(x, count) + floats(weight, count)


def scale(grid: Any, x: int, out: int, count: int, factor: float) -> None:
    floats(out, count)[:] = floats(x, count) * factor


X = torch.arange(SIZE, dtype=torch.float32)
WEIGHT = torch.full((SIZE,), 0.5)
RUN = {"program": 0, "trial": 0, "state": "0", "poison": "nan", "launching": True}


def executed(
    claim: dict[str, Any] | None = None,
    runs: list[dict[str, Any]] | None = None,
    tensors: dict[str, torch.Tensor] | None = None,
    **functions: Callable[..., None],
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    names = ["add", "scale"]
    request = {"kernels": [kernel(name) for name in names], "programs": [claim or doubled_sum()], "runs": runs or [RUN]}
    given = {"input.0.0": X, "state.0.weight": WEIGHT, "input.1.0": -X, "state.1.weight": 4 * WEIGHT}
    given |= {f"binary.hash of {name}": torch.zeros(1, dtype=torch.uint8) for name in names}
    return execute(Double({"add": add, "scale": scale, **functions}), request, given | (tensors or {}))


def test_a_program_runs_on_the_values_of_each_run() -> None:
    reply, results = executed(runs=[RUN, RUN | {"trial": 1, "state": "1"}])
    torch.testing.assert_close(results["0.output.0"], 2 * (X + WEIGHT))
    torch.testing.assert_close(results["1.output.0"], 2 * (4 * WEIGHT - X))
    assert reply == {"runs": [{"changed": []}, {"changed": []}]}


def test_a_ghost_leaves_what_was_in_memory() -> None:
    _, results = executed(runs=[RUN | {"launching": False}, RUN | {"launching": False, "poison": "huge"}])
    assert results["0.output.0"].isnan().all()
    assert (results["1.output.0"] > 1e30).all()


def test_nothing_is_left_from_the_run_before() -> None:
    def never(grid: Any, *_: Any) -> None:
        """A kernel that writes nothing."""

    _, results = executed(runs=[RUN, RUN], scale=never)
    assert results["1.output.0"].isnan().all()


def test_changes_of_a_run_are_reported() -> None:
    def scale_in_place(grid: Any, x: int, out: int, count: int, factor: float) -> None:
        floats(out, count)[:] = 1.0

    claim = doubled_sum()
    claim["steps"][1]["arguments"][1] = ["*", 1, 0]
    reply, results = executed(claim, scale=scale_in_place)
    assert reply["runs"] == [{"changed": ["input.0"]}]
    torch.testing.assert_close(results["0.changed.input.0"], torch.ones(SIZE))


def test_of_two_names_for_one_memory_the_last_one_stays() -> None:
    claim = doubled_sum()
    claim["named"]["state.tied"] = claim["named"]["state.weight"]
    reply, results = executed(claim, tensors={"state.0.tied": 3 * WEIGHT})
    torch.testing.assert_close(results["0.output.0"], 2 * (X + 3 * WEIGHT))
    assert reply == {"runs": [{"changed": []}]}


@pytest.mark.parametrize(("at", "storage"), [(-1, 2), (SIZE, 3)])
def test_a_write_next_to_a_buffer_is_a_fault(at: int, storage: int) -> None:
    def stray(grid: Any, x: int, out: int, count: int, factor: float) -> None:
        floats(out + 4 * at, 1)[:] = 3.0

    with pytest.raises(Fault, match=f"beside storage {storage}$"):
        executed(scale=stray)


def test_values_that_stay_nan_are_not_changed() -> None:
    reply, _ = executed(tensors={"input.0.0": torch.full((SIZE,), torch.nan)})
    assert reply == {"runs": [{"changed": []}]}


def test_fills_and_copies() -> None:
    claim = doubled_sum()
    claim["steps"] = [
        {"fill": view(2, [SIZE]), "value": "0x1.8p+1"},
        {"copy": view(2, [2], strides=[3]), "from": view(1, [2], offset=1)},
        {"copy": view(3, [SIZE]), "from": view(2, [SIZE])},
    ]
    _, results = executed(claim)
    np.testing.assert_array_equal(results["0.output.0"], [1, 3, 3, 2, 3, 3])


def test_a_tensor_descriptor_gets_its_address() -> None:
    def scale_rows(grid: Any, x: int, rows: tuple[int, Tiling], count: int, factor: float) -> None:
        address, tiling = rows
        for row in range(tiling.shape[0]):
            width = tiling.shape[1]
            floats(address + row * tiling.strides[0], width)[:] = floats(x + 4 * row * width, width) * factor

    claim = doubled_sum()
    claim["storages"][3]["bytes"] = 44
    rows = {"element": 7, "shape": [2, 3], "strides": [16], "block": [2, 4], "swizzle": 0, "nan": False}
    claim["steps"][1]["arguments"][1] = ["nvTmaDesc", 3, 16, rows]
    claim["outputs"] = [view(3, [2, 3], offset=4, strides=[4, 1])]
    _, results = executed(claim, scale=scale_rows)
    torch.testing.assert_close(results["0.output.0"], (2 * (X + WEIGHT)).view(2, 3))


def test_constants_come_with_the_program() -> None:
    claim = doubled_sum()
    claim["storages"].append({"bytes": 4 * SIZE, "origin": "constant"})
    claim["steps"][0]["arguments"][1] = ["*", 4, 0]
    data = torch.ones(SIZE).view(torch.uint8)
    _, results = executed(claim, tensors={"constant.0.4": data})
    torch.testing.assert_close(results["0.output.0"], 2 * (X + 1))
    with pytest.raises(MalformedReply, match=r"constant\.0\.4"):
        executed(claim)
    with pytest.raises(ValueError, match="bytes for a storage"):
        executed(claim, tensors={"constant.0.4": data[:8]})


def test_a_launch_on_no_programs_does_nothing() -> None:
    claim = doubled_sum()
    claim["steps"][1]["grid"] = [0, 1, 1]
    assert executed(claim)[1]["0.output.0"].isnan().all()


def test_a_value_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="another tensor"):
        executed(tensors={"input.0.0": X[:3]})


def test_a_program_that_names_an_unknown_tensor() -> None:
    claim = doubled_sum()
    claim["named"]["secret.0"] = view(0, [SIZE])
    with pytest.raises(MalformedReply, match=r"secret\.0"):
        executed(claim)
