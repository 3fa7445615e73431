"""Signatures ignore spellings, and differ for different functions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of, signatures_without_one, size


def signature(*nodes: list[Any]) -> str:
    return signature_of(paths_of(json.dumps(nodes)))


X, W = ["input"], ["parameter"]
LINEAR = (X, W, W, ["aten.t", [1]], ["aten.mm", [0, 3]], ["aten.add", [4, 2]], ["aten.relu", [5]])


@pytest.mark.parametrize(
    "nodes",
    [
        (W, X, W, ["aten.mm", [1, 0]], ["aten.add", [2, 3]], ["aten.clamp_min", [4]]),
        (X, W, W, ["aten.mm", [0, 1]], ["aten.add_", [3, 2]], ["aten.view", [4]], ["aten.relu_", [5]]),
    ],
    ids=["order of leaves and operands", "views and what works in place"],
)
def test_ignored_differences(nodes: tuple[list[Any], ...]) -> None:
    assert signature(*nodes) == signature(*LINEAR)


@pytest.mark.parametrize(
    "nodes",
    [
        (X, W, ["aten.mm", [0, 1]], ["aten.relu", [2]]),
        (X, W, W, ["aten.mm", [0, 1]], ["aten.relu", [3]], ["aten.add", [4, 2]]),
        (X, X, W, ["aten.mm", [0, 2]], ["aten.add", [3, 1]], ["aten.relu", [4]]),
        (X, W, W, ["aten.mm", [0, 1]], ["aten.add", [3, 2]], ["aten.tanh", [4]]),
    ],
    ids=["no bias", "another order of operators", "an input for a bias", "another operator"],
)
def test_kept_differences(nodes: tuple[list[Any], ...]) -> None:
    assert signature(*nodes) != signature(*LINEAR)


def without_one(*nodes: list[Any]) -> tuple[str, ...]:
    return signatures_without_one(json.dumps(nodes))


@pytest.mark.parametrize("place", range(4))
def test_an_added_operator_is_left_out(place: int) -> None:
    names = ["sin", "cos", "exp"]
    plain, longer = names, [*names[:place], "tan", *names[place:]]
    graphs = [[X, *([f"aten.{name}", [i]] for i, name in enumerate(each))] for each in (plain, longer)]
    assert signature(*graphs[0]) in without_one(*graphs[1])
    assert signature(*graphs[0]) not in without_one(*graphs[0])


def test_a_residual_is_an_added_operator_and_a_gate_is_none() -> None:
    block = [X, ["aten.sin", [0]], ["aten.exp", [1]]]
    assert signature(*block) in without_one(*block, ["aten.add", [0, 2]])
    assert signature(*block) not in without_one(*block, ["aten.mul", [0, 2]])
    assert signature(*block) in without_one(*block, W, ["aten.mul", [2, 3]])
    assert signature(*block) not in without_one(*block, ["aten.cos", [0]], ["aten.add", [2, 3]]), "cos would be unused"


def test_a_layer_with_weights_is_no_added_operator() -> None:
    block = [X, ["aten.sin", [0]], ["aten.exp", [1]]]
    assert signature(*block) not in without_one(*block, W, W, ["aten.native_batch_norm", [2, 3, 4]])


def test_a_layer_counts_once() -> None:
    assert size(json.dumps([X, W, W, ["aten.native_batch_norm", [0, 1, 2]], ["aten.view", [3]]])) == 1
    assert size(json.dumps(LINEAR)) == 2, "a product with its bias, and a ReLU"
    assert size(json.dumps([X, X, ["aten.mm", [0, 1]], ["aten.add", [2, 0]]])) == 2


def test_a_product_with_itself_is_another_operator() -> None:
    transposed = ["aten.transpose", [0]]
    itself = signature(X, transposed, ["aten.bmm", [0, 1]])
    assert itself == signature(X, ["aten.view", [0]], ["aten.t", [1]], ["aten.mm", [2, 0]])
    assert itself != signature(X, X, ["aten.transpose", [1]], ["aten.bmm", [0, 2]])
    halves = (X, ["aten.slice", [0]], ["aten.slice", [0]], ["aten.bmm", [1, 2]])
    assert signature(*halves) != itself
    assert signature(*halves) != signature(X, X, ["aten.bmm", [0, 1]]), "two inputs"


def test_constants_are_blind_and_squares_are_powers() -> None:
    assert signature(X, ["aten.mul", [0, 0]]) == signature(X, ["aten.pow", [0]])
    assert signature(X, ["aten.mul", [0]]) == signature(X, ["aten.div", [0]]) != signature(X, X, ["aten.mul", [0, 1]])
    assert signature(X, ["aten.mean", [0]]) == signature(X, ["aten.sum", [0]], ["aten.div", [1]])


def test_an_empty_graph_has_no_signature() -> None:
    assert signature() == signature(X, ["aten.view", [0]]) == ""
