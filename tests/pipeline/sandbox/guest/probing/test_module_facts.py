"""Operator counts, state and outputs of a module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import TooBig
from kernelquarry.pipeline.sandbox.guest.probing.module_facts import Census, outputs, state_specs


def test_a_census_counts_elements_and_operations() -> None:
    x, weight = torch.ones(2, 3), torch.ones(3, 4)
    with torch.no_grad(), Census() as census:
        (x @ weight).exp().T.contiguous()  # two results and a copy; the transposed view is free
    assert {"aten.mm", "aten.exp"} <= census.operators
    assert census.contractions == 1
    assert census.flops == 2 * 2 * 3 * 4
    assert census.elements == 8 + 8 + 8


def test_a_census_counts_inside_layers() -> None:
    with torch.no_grad(), Census() as census:
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 1, 3))(torch.ones(1, 1, 8, 8))
    assert census.contractions == 2
    assert census.flops == 2 * 9 * 2 * 36 + 2 * 9 * 2 * 16


def test_a_census_stops_a_call_with_too_many_contractions() -> None:
    layers = [nn.Linear(2, 2) for _ in range(4)]
    with torch.no_grad(), Census(2) as census, pytest.raises(TooBig):
        nn.Sequential(*layers)(torch.ones(1, 2))
    assert census.is_cut and census.contractions == 3
    with torch.no_grad(), Census(4) as census:
        nn.Sequential(*layers)(torch.ones(1, 2))
    assert not census.is_cut and census.contractions == 4


def test_state() -> None:
    module = nn.BatchNorm1d(2)
    module.register_buffer("mask", torch.tensor([True, False]))
    module.register_buffer("empty", torch.ones(0))
    module.register_buffer("wave", torch.tensor([1 + 2j, 3 - 1j]))
    module.register_buffer("hidden", torch.ones(1), persistent=False)
    found = {spec["name"]: spec for spec in state_specs(module)}
    assert list(found) == list(module.state_dict())
    assert {name for name, spec in found.items() if spec["kind"] == "parameter"} == {"weight", "bias"}
    assert found["mask"] == {
        "name": "mask", "kind": "buffer", "shape": [2], "dtype": "bool", "mean": 0.5, "std": 0.5, "minimum": 0.0,
    }  # fmt: skip
    assert found["empty"]["mean"] == 0.0 and found["wave"]["mean"] == 2.0
    assert found["num_batches_tracked"]["shape"] == [] and found["num_batches_tracked"]["dtype"] == "int64"


def test_shared_parameters_have_every_name() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    module[1].weight = module[0].weight
    assert [spec["kind"] for spec in state_specs(module)] == ["parameter"] * 4


def test_outputs() -> None:
    tree = {"tuple": [{"tensor": 1}, {"dict": [["tensor", {"tensor": 0}], ["n", {"value": 3}]]}]}
    described = outputs(tree, [torch.ones(2, 3), torch.ones((), dtype=torch.int64)])
    assert described == {
        "tuple": [
            {"tensor": 1, "shape": [], "dtype": "int64"},
            {"dict": [["tensor", {"tensor": 0, "shape": [2, 3], "dtype": "float32"}], ["n", {"value": 3}]]},
        ]
    }
