"""Modules, each with the call that the probe finds or the reason for a drop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import make_module
from probe_cases import HEADER, Case, describe, read_cases, sizes_of

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed, StateSpec
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.probe.probe_module import ProbeLimits

FOUND = [case for name in ("shapes", "inputs", "constructors") for case in read_cases(name)]
REFUSED = read_cases("refused")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def by_title(case: Case) -> str:
    return case.about


@pytest.mark.parametrize("case", FOUND, ids=by_title)
def test_found(case: Case, sandbox: Sandbox) -> None:
    outcome = probe(case.module, sandbox)
    assert isinstance(outcome, Kept), outcome
    call, *conditions = case.expected
    assert describe(outcome.record) == call
    for sizes in sizes_of(outcome.record):
        for condition in conditions:
            assert eval(condition.removeprefix("where "), {}, dict(sizes)), (condition, sizes)
    check_record(outcome.record)


def check_record(probed: Probed) -> None:
    """Check the properties of every kept record."""
    shapes = [[(spec.shape, spec.dtype) for spec in workload.tensors] for workload in probed.workloads]
    assert len({str(shape) for shape in shapes}) == len(shapes) == 3, "workloads have different sizes"
    assert probed.operators == tuple(sorted(set(probed.operators))) != ()
    result = run_alone(probed.python_code)
    tensors = [t for t in (result if isinstance(result, list | tuple) else [result]) if isinstance(t, torch.Tensor)]
    assert all(t.isfinite().all() for t in tensors)
    for tensor in tensors:
        assert f'"shape":{str(list(tensor.shape)).replace(" ", "")}' in probed.outputs


def run_alone(python_code: str) -> Any:
    """Run the rendered file as KernelBench does. Its code is from the cases, so it is trusted."""
    namespace: dict[str, Any] = {"__name__": "alone"}
    exec(python_code, namespace)
    model = namespace["Model"](*namespace["get_init_inputs"]()).eval()
    with torch.no_grad():
        return model(*namespace["get_inputs"]())


@pytest.mark.parametrize("case", REFUSED, ids=by_title)
def test_dropped(case: Case, sandbox: Sandbox) -> None:
    outcome = probe(case.module, sandbox)
    assert isinstance(outcome, Dropped), outcome
    reason, _, evidence = case.expected[0].partition(": ")
    assert outcome.reason.value == reason, outcome
    assert evidence in outcome.evidence
    assert 0 < len(outcome.evidence) <= 500


def test_every_reason_of_the_stage_has_a_case() -> None:
    tested = {case.expected[0].partition(":")[0] for case in REFUSED}
    assert tested == {reason.value for reason in Reason if reason.stage == "probe"}


CONV = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 4, 3, stride=2)

    def forward(self, x):
        return self.conv(x){end}
"""


@pytest.mark.parametrize(("end", "known"), [("", True), ("if len(x) == 2 else self.conv(x).flatten(1)", False)])
def test_calls_have_the_shapes_of_all_workloads_that_make_the_same_calls(
    end: str, known: bool, sandbox: Sandbox
) -> None:
    outcome = probe(make_module(HEADER + CONV.format(end=" " + end)), sandbox)
    assert isinstance(outcome, Kept), outcome
    shapes = [workload.tensors[0].shape for workload in outcome.record.workloads]
    first, *further = ((batch, 4, (height - 1) // 2, (width - 1) // 2) for batch, _, height, width in shapes)
    assert [each.call for each in outcome.record.shapes] == ["self.conv", ""]
    assert all(each.shape == first for each in outcome.record.shapes)
    assert all(each.further == (tuple(further) if known else ()) for each in outcome.record.shapes)


LINEAR = """
class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.Linear(dim, dim))

    def forward(self, x):
        return self.layers(x)
"""
TANH = """
class Model(nn.Module):
    def forward(self, x):
        return x.tanh()
"""


@pytest.mark.parametrize(
    ("limits", "evidence"),
    [
        (ProbeLimits(parameters=3), "more than 3 elements in parameters and buffers"),
        (ProbeLimits(elements=100), "one forward writes 3072 elements"),
        (ProbeLimits(flops=1000), "one forward writes 3072 elements and takes 196608 flops"),
        (ProbeLimits(contractions=1, kernels=0), "one forward has 2 convolutions and matrix products"),
    ],
)
def test_limits(limits: ProbeLimits, evidence: str, sandbox: Sandbox) -> None:
    outcome = probe(make_module(HEADER + LINEAR), sandbox, limits)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.TOO_BIG, outcome
    assert evidence in outcome.evidence


def test_a_module_at_its_limits_is_kept(sandbox: Sandbox) -> None:
    limits = ProbeLimits(parameters=2 * (32 * 32 + 32), contractions=2)
    assert shapes(probe(make_module(HEADER + LINEAR), sandbox, limits)) == [(2, 24, 32), (3, 29, 32), (5, 18, 32)]


REPEATED = """
class Model(nn.Module):
    def __init__(self, dim, hidden=64):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        for _ in range(6):
            x = self.down(self.up(x))
        return x
"""


def test_repeated_layers_count_as_few_kernels(sandbox: Sandbox) -> None:
    outcome = probe(make_module(HEADER + REPEATED), sandbox, ProbeLimits(layers=12, kernels=2))
    assert isinstance(outcome, Kept) and len(outcome.record.workloads) == 3, outcome
    for limits, number in (
        (ProbeLimits(layers=12, kernels=1), "12"),
        (ProbeLimits(layers=11, kernels=2), "at least 12"),  # the call stops there
    ):
        outcome = probe(make_module(HEADER + REPEATED), sandbox, limits)
        assert isinstance(outcome, Dropped) and outcome.evidence.startswith(f"one forward has {number} conv"), outcome


def test_inputs_are_reduced_to_the_limits(sandbox: Sandbox) -> None:
    """The first workload may use half of a limit, the others all of it."""
    free = shapes(probe(make_module(HEADER + TANH), sandbox))
    small = shapes(probe(make_module(HEADER + TANH), sandbox, ProbeLimits(elements=8000)))
    assert free == [(2, 16, 12, 20), (3, 21, 11, 23), (5, 26, 10, 14)]
    assert small == [(2, 16, 6, 10), (3, 21, 6, 10), (5, 26, 6, 10)]


def shapes(outcome: Outcome[Probed]) -> list[tuple[int, ...]]:
    """Shape of the first tensor of each workload."""
    assert isinstance(outcome, Kept), outcome
    return [workload.tensors[0].shape for workload in outcome.record.workloads]


def test_the_same_module_gives_the_same_record(sandbox: Sandbox, tmp_path: Path) -> None:
    """Repeated probes are equal, also in a second sandbox with another warm process."""
    abouts = {"heads divide the width", "a list by its use", "a residual block needs equal sizes"}
    modules = [case.module for case in FOUND if case.about in abouts]
    with Sandbox(SandboxSettings(workers=1, scratch=str(tmp_path))) as other:
        for module in modules:
            assert probe(module, sandbox) == probe(module, sandbox) == probe(module, other)


def test_the_record_has_state_outputs_and_operators(sandbox: Sandbox) -> None:
    code = """
class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4.0))
        self.register_buffer("limit", torch.tensor([-float("inf"), 2.0]))
        self.register_buffer("unsaved", torch.ones(1), persistent=False)

    def forward(self, x: list[torch.Tensor]):
        return {"product": x[0] @ x[1].mT, "mean": (x[1].mean(), 3)}
"""
    outcome = probe(make_module(HEADER + code), sandbox)
    assert isinstance(outcome, Kept), outcome
    weight, limit = outcome.record.state
    assert weight == StateSpec("weight", "parameter", (4,), "float32", mean=1.5, std=1.25**0.5, minimum=0.0)
    assert limit == StateSpec("limit", "buffer", (2,), "float32", mean=2.0, std=0.0, minimum=2.0)
    product = {"tensor": 0, "shape": [2, 16, 12, 12], "dtype": "float32"}
    mean = {"tuple": [{"tensor": 1, "shape": [], "dtype": "float32"}, {"value": 3}]}
    assert json.loads(outcome.record.outputs) == {"dict": [["product", product], ["mean", mean]]}
    assert {"aten.mean", "aten.bmm"} <= set(outcome.record.operators)


def test_the_page_of_the_stage_has_its_reasons_and_limits() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/stages/probe.md").read_text()
    assert all(f"| `{reason.value}` |" in page for reason in Reason if reason.stage == "probe")
    assert all(f"| `{name}` | {limit:,} |" in page for name, limit in asdict(ProbeLimits()).items())
