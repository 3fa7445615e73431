"""The reference on calls of their own: refused ones decide nothing, and no call sees what another left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from corpus import load_case

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.inputs import NAMED
from kernelquarry.pipeline.sandbox.jobs.calls import CONSTRUCTOR
from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.verify.evidence import InputRejected
from kernelquarry.transforms.verify.reference_run import _PRODUCT, Reference
from kernelquarry.transforms.verify.task import PlannedTrial, Task, VerifySettings, draw

HEAD = "import time\nimport torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as opened:
        yield opened


def run(body: str, trials: list[PlannedTrial], sandbox: Sandbox, limit_s: float, rows: tuple[int, ...]) -> Reference:
    task = Task.of_candidate(load_case("honest", "softmax").candidate)
    workloads = tuple(Workload((TensorSpec("x", (n, 8), "float32"),), '[{"tensor":0}]') for n in rows)
    task = replace(task, python_code=HEAD + body, workloads=workloads, shape_general=False)
    return Reference(task, trials, draw(task, trials), sandbox, VerifySettings(), limit_s)


SLOW = """
    def forward(self, x):
        if len(x) == 3:
            raise ValueError
        while len(x) == 5 and time.process_time():
            pass
        return x.softmax(-1)
"""


def test_a_call_that_the_reference_refuses_or_is_slow_on_decides_nothing(sandbox: Sandbox) -> None:
    trials = [PlannedTrial(at, at, "normal") for at in range(4)]
    reference = run(SLOW, trials, sandbox, 0.3, (2, 3, 5, 7))
    assert [reference.decides(index) for index in range(4)] == [True, False, False, True]
    observed = reference._runs[0]["eager"]
    assert [reference.is_right(index, observed) for index in range(4)] == [True, True, True, False]


def test_trials_that_the_reference_refuses_end_the_run(sandbox: Sandbox) -> None:
    with pytest.raises(InputRejected) as raised:
        run(SLOW, [PlannedTrial(0, 0, "normal"), PlannedTrial(1, 1, "sparse")], sandbox, 0.0, (2, 3))
    assert list(raised.value.trials) == [1]


COUNTS = """
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x.softmax(-1) * self.calls
"""


def test_each_call_starts_from_the_constructor_s_state(sandbox: Sandbox) -> None:
    trials = [PlannedTrial(0, 0, "normal", CONSTRUCTOR) for _ in range(3)]
    reference = run(COUNTS, trials, sandbox, 1.0, (2,))
    first, *others = (reference._runs[index]["eager"].values[0] for index in range(3))
    assert all(torch.equal(first, other) for other in others)


BOUNDED = """
    def forward(self, x):
        return x.masked_fill(x > 0, torch.finfo(x.dtype).min) / torch.finfo(x.dtype).min
"""


def test_bounds_that_depend_on_the_dtype_are_the_row_s_in_the_oracle(sandbox: Sandbox) -> None:
    reference = run(BOUNDED, [PlannedTrial(0, 0, "normal")], sandbox, 0.0, (2,))
    (oracle,), (eager,) = (reference._runs[0][name].values for name in ("oracle", "eager"))
    assert oracle.dtype == torch.float64 and torch.equal(oracle == 1, eager == 1)
    negative = oracle != 1
    torch.testing.assert_close(oracle[negative], eager[negative].double(), rtol=1e-6, atol=1e-44)


STEP = """
    def forward(self, x):
        return (x > 0.5) * 2.0, (x * 3 > 1.5) * 2.0
"""


def test_a_value_on_a_boundary_is_on_one_side_of_it(sandbox: Sandbox) -> None:
    reference = run(STEP, [PlannedTrial(0, 0, NAMED)], sandbox, 0.0, (16,))
    x = reference.tensors["input.0.0"]
    right, wrong = ([(x > 0.5) * 2.0, (x * 3 > 1.5) * 2.0], [(x >= 0.5) * 2.0, (x * 3 > 1.5) * 2.0])
    assert (x == 0.5).any() and reference._bounds[0].measure(right).passes
    assert not reference._bounds[0].measure(wrong).passes


POOLED = """
    def forward(self, x):
        return nn.functional.max_pool1d(x, 2), (x >= 0).sum(-1)
"""


def test_counts_next_to_a_pool_are_compared_where_values_are_equal(sandbox: Sandbox) -> None:
    reference = run(POOLED, [PlannedTrial(0, 0, "sparse")], sandbox, 0.0, (16,))
    x = reference.tensors["input.0.0"]
    pooled = torch.nn.functional.max_pool1d(x, 2)
    assert reference._bounds[0].measure([pooled, (x >= 0).sum(-1)]).passes
    assert not reference._bounds[0].measure([pooled, (x > 0).sum(-1)]).passes


ROUTER = """
    def forward(self, x):
        return x.softmax(-1).max(-1)
"""


def test_any_index_of_computed_values_that_round_to_equal_ones_is_right(sandbox: Sandbox) -> None:
    reference = run(ROUTER, [PlannedTrial(0, 0, "scaled")], sandbox, 0.0, (16,))
    values, places = reference.tensors["input.0.0"].softmax(-1).max(-1)
    largest = reference.tensors["input.0.0"].argmax(-1)
    assert not torch.equal(largest, places)
    assert reference._bounds[0].measure([values, largest]).passes
    assert not reference._bounds[0].measure([values, 1 + places]).passes, "the rows of large values have no ties"


@pytest.mark.parametrize(
    ("text", "is_product"),
    [
        ("x.prod(1)", True),
        ("torch.cumprod(x, 0)", True),
        ("(x + 1).prod()", True),
        ("x[0].prod()", True),
        ("torch.relu(x) * self.scales.prod()", False),
        ("x.view(math.prod(x.shape))", False),
        ("np.prod(sizes)", False),
    ],
)
def test_products_of_inputs_depend_on_their_order(text: str, is_product: bool) -> None:
    assert bool(_PRODUCT.search(text)) == is_product
