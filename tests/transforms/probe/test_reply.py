"""The host drops modules whose guest sends a malformed reply."""

from __future__ import annotations

from typing import Any

import pytest
from factories import make_module

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, Status
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.probe import probe

X = {"name": "x", "shape": [2, 3], "dtype": "float32", "low": 0, "high": 0}
INDEX = {"name": "i", "shape": [2], "dtype": "int64", "low": 0, "high": 8}
STATE = {"name": "w", "kind": "buffer", "shape": [3], "dtype": "float32", "mean": 0.5, "std": 1, "minimum": -1.0}
REPLY = {
    "init_args": "[3]",
    "workloads": [{"tensors": [X], "args": [{"tensor": 0}]}],
    "state": [STATE],
    "outputs": {"tensor": 0, "shape": [2, 3], "dtype": "float32"},
    "shapes": [{"call": "", "shape": [2, 3], "dtype": "float32"}],
    "operators": ["aten.mul", "aten.add"],
    "graph": [["input"], ["aten.mul", [0, 0]]],
    "behaviour": "0123456789abcdef",
    "behaviours": ["fedcba9876543210", "0123456789abcdef"],
}


class Stub(Sandbox):
    """A sandbox in which every guest ends in the same way."""

    def __init__(self, reply: dict[str, Any] | None, status: Status = Status.OK, error: str = "") -> None:
        self.report = Report(status, reply, {}, error, "", "", 0.1, 0.1, 1.0)
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Report:
        self.jobs.append(job)
        return self.report


def outcome_of(**changes: Any) -> Outcome[Probed]:
    return probe(make_module(), Stub({**REPLY, **changes}))


def call(*tensors: dict[str, Any], args: Any = None) -> dict[str, Any]:
    """Changes that give the reply one workload."""
    return {
        "workloads": [
            {"tensors": list(tensors), "args": [{"tensor": i} for i in range(len(tensors))] if args is None else args}
        ]
    }


def test_a_valid_reply() -> None:
    outcome = outcome_of(**call(X, INDEX))
    assert isinstance(outcome, Kept), outcome
    assert outcome.record.operators == ("aten.add", "aten.mul")
    assert outcome.record.behaviours == ("0123456789abcdef", "fedcba9876543210")
    assert outcome.record.workloads[0].args == '[{"tensor":0},{"tensor":1}]'
    assert "return [torch.randn(2, 3), torch.randint(0, 8, (2,))]" in outcome.record.python_code


@pytest.mark.parametrize(
    ("changes", "evidence"),
    [
        ({"init_args": "3"}, "no list"),
        ({"init_args": "[3"}, "no list"),
        ({"init_args": f"[{'-' * 100_000}1]"}, "no list"),
        ({"init_args": 3}, "init_args"),
        ({"workloads": []}, "no workload"),
        ({"workloads": {}}, "workloads"),
        ({"state": [{**STATE, "mean": "0"}]}, "state"),
        ({"operators": [1]}, "operators"),
        ({"graph": [["aten.mul", [0, 0]]]}, "a malformed node in the graph"),
        ({"graph": [["input"], ["aten.mul", [-1]]]}, "a malformed node in the graph"),
        ({"graph": [["input"], ["aten.mul", 0]]}, "a malformed node in the graph"),
        ({"behaviour": "../../etc"}, "a digest '../../etc'"),
        ({"behaviours": ["../../etc"]}, "a digest '../../etc'"),
        (call(X, args=[]), "name each tensor once"),
        (call(X, args=[{"tensor": 0}, {"tensor": 0}]), "name each tensor once"),
        (call(X, args=[{"tensor": 1}]), "name each tensor once"),
        (call(X, args=[{"tensor": 0.0}]), "name each tensor once"),
        (call(X, X, args=[{"tensor": False}, {"tensor": True}]), "name each tensor once"),
        (call(X, X, args=[{"tensor": "0"}, {"tensor": 1}]), "name each tensor once"),
        (call(X, X, args=[{"tensor": {"tensor": 0}}, {"tensor": {"tensor": 1}}]), "name each tensor once"),
        (call({**X, "dtype": "load"}), "a tensor of dtype 'load'"),
        (call({**X, "shape": [-1]}), "and shape (-1,)"),
        (call({**X, "shape": [2.0]}), "shape"),
        (call({**X, "shape": [1 << 40, 1 << 40]}), "inputs of more than 6000000 elements"),
        (call({**INDEX, "high": 0}), "integers from 0 to 0"),
        (call({**INDEX, "high": 1 << 80}), "to 1208925819614629174706176"),
    ],
)  # fmt: skip
def test_a_malformed_reply(changes: dict[str, Any], evidence: str) -> None:
    outcome = outcome_of(**changes)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.CRASHED, outcome
    assert outcome.evidence.startswith("garbled reply: ") and evidence in outcome.evidence
    assert len(outcome.evidence) <= 500


@pytest.mark.parametrize(
    ("reply", "reason", "evidence"),
    [
        ({"reason": "random", "evidence": "they differ"}, Reason.RANDOM, "they differ"),
        ({"reason": "random"}, Reason.RANDOM, ""),
        ({"reason": "unparsable", "evidence": "of another stage"}, Reason.CRASHED, "of another stage"),
        ({"reason": ["random"], "evidence": 3}, Reason.CRASHED, "3"),
        ({"reason": "too_big", "evidence": "x" * 9999}, Reason.TOO_BIG, "x" * 500),
    ],
)
def test_reasons(reply: dict[str, Any], reason: Reason, evidence: str) -> None:
    assert probe(make_module(), Stub(reply)) == Dropped(make_module().id, reason, evidence)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.TIMED_OUT, Reason.TIMED_OUT),
        (Status.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY),
        (Status.CRASHED, Reason.CRASHED),
    ],
)
def test_a_guest_without_a_reply(status: Status, reason: Reason) -> None:
    assert probe(make_module(), Stub(None, status, "why")) == Dropped(make_module().id, reason, "why")


def test_an_error_of_our_code_is_an_error() -> None:
    outcome = probe(make_module(), Stub(None, Status.RAISED, "KeyError: 'limits': twice"))
    assert outcome == Errored(make_module().id, "KeyError", "'limits': twice")


def test_the_request() -> None:
    stub = Stub(REPLY)
    module = make_module("class Model:\n    def __init__(self, *, dim): ...\n")
    probe(module, stub)
    (job,) = stub.jobs
    assert job.kind.name == "probe" and job.limits.processes == 1
    assert job.request.code == "class Model:\n    def __init__(self, dim): ...\n"
    assert job.request.entry_point == "Model"
    assert set(job.request.limits) == {"parameters", "elements", "flops", "contractions", "kernels", "layers"}
