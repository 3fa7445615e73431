"""A module's state as data."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.candidate.snapshot import take_snapshot


class Sizes(NamedTuple):
    rows: int
    columns: int


def helper() -> None: ...


class Thing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(3, 2)
        self.tied = nn.Linear(3, 2, bias=False)
        self.tied.weight = self.proj.weight
        self.register_buffer("table", torch.zeros(4)[1:])
        self.plain: dict[str, Any] = {"a": [1, 2.5, None], "b": (True, torch.float16), "c": torch.Size([3])}
        self.sizes, self.call, self.act = Sizes(1, 2), helper, torch.nn.functional.relu
        self.cycle: list[Any] = []
        self.cycle.append(self.cycle)


def test_a_snapshot_holds_what_a_module_is() -> None:
    module = Thing()
    snapshot = json.loads(json.dumps(take_snapshot(module)))
    root = snapshot["modules"][snapshot["root"]]
    values = dict(root["attributes"])
    assert root["class"] == "Thing" and root["layers"] == ["proj", "tied"]
    assert values["plain"] == {
        "dict": [
            ["a", {"list": [1, {"float": (2.5).hex()}, None]}],
            ["b", {"tuple": [True, {"dtype": "float16"}]}],
            ["c", {"size": [3]}],
        ]
    }
    assert values["sizes"] == {"record": ["Sizes", [["rows", 1], ["columns", 2]]]}
    assert values["call"] == {"global": "helper"} and values["act"] == {"other": "function"}
    layers = [snapshot["modules"][values[name]["module"]] for name in ("proj", "tied")]
    weights = [dict(layer["attributes"])["weight"] for layer in layers]
    assert layers[0]["class"] == "torch.nn.Linear" and weights[0] == weights[1]
    table = snapshot["tensors"][values["table"]["tensor"]]
    assert (table["shape"], table["offset"], snapshot["storages"][table["storage"]]) == ([3], 1, 16)
    assert [name for name, _ in snapshot["entries"]] == ["proj.weight", "proj.bias", "table"]
    assert "too many" in json.dumps(values["cycle"])


def test_a_module_with_another_call_than_its_class_has_no_class() -> None:
    hooked, replaced, normed = Thing(), Thing(), Thing()
    hooked.register_forward_hook(lambda *values: None)
    replaced.forward = helper  # type: ignore[method-assign]
    nn.utils.weight_norm(normed.proj)  # by a hook of torch
    classes = [take_snapshot(module)["modules"] for module in (hooked, replaced, normed)]
    assert [[each["class"] for each in found[:2]] for found in classes] == [
        ["", "torch.nn.Linear"],
        ["", "torch.nn.Linear"],
        ["Thing", "torch.nn.Linear"],
    ]
