"""Lower in a guest: the arguments of the kernels, symbolic sizes, and reasons without a kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pytest
from bindings import BOUND
from modules import Call, probed, source, whole

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, Status
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Binding, Lowered, Probed, Source
from kernelquarry.transforms.lower import TARGET, lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

X = Call({"x": (6, 8)})


def lowered(probe: Probed, sandbox: Sandbox, constructor_sizes: bool = False) -> Lowered:
    outcome = lower(probe, sandbox, constructor_sizes=constructor_sizes)
    assert isinstance(outcome, Kept), outcome
    return outcome.record


def named(record: Lowered) -> list[tuple[Source, str]]:
    return [(binding.source, binding.name) for binding in record.bindings]


def agrees(record: Lowered, sandbox: Sandbox) -> bool:
    """True if the candidate computes the module's results, with all state and inputs drawn separately."""
    candidate = tidy(record)
    assert isinstance(candidate, Kept), candidate
    return isinstance(verify(candidate.record, sandbox, VerifySettings(target="", find_counterexamples=False)), Kept)


stage = import_module("kernelquarry.transforms.lower.lower_module")  # its package has a function of the same name


@pytest.mark.parametrize("about", BOUND)
def test_every_argument_is_bound_by_its_name(about: str, sandbox: Sandbox) -> None:
    code, calls, expected = BOUND[about]
    record = lowered(probed(code, *calls), sandbox)
    assert named(record) == expected
    assert agrees(record, sandbox)


def test_a_swapped_binding_is_detected(sandbox: Sandbox) -> None:
    """`agrees` detects two swapped parameters of one shape."""
    code, calls, _ = BOUND["parameters of one shape, used in another order"]
    record = lowered(probed(code, *calls), sandbox)
    a, b, *rest = record.bindings
    swapped = (replace(a, name=b.name), replace(b, name=a.name), *rest)
    assert not agrees(replace(record, bindings=swapped), sandbox)


@pytest.mark.parametrize("factor", ["torch.view_as_complex(self.w)", "self.w[:, 0]"])
def test_products_of_complex_numbers_are_kernels(factor: str, sandbox: Sandbox) -> None:
    """The Fourier transforms stay operators of torch."""
    forward = f"torch.fft.irfft(torch.fft.rfft(x) * {factor}, n=x.shape[-1])"
    code = source(forward, "self.w = nn.Parameter(torch.rand(5, 2))")
    record = lowered(probed(code, Call({"x": (6, 8)}), Call({"x": (9, 8)})), sandbox)
    candidate = tidy(record)
    assert isinstance(candidate, Kept) and not {"mul", "add", "cat"} & set(candidate.record.extern_ops)
    assert agrees(record, sandbox)


# Sizes


@pytest.mark.parametrize(
    ("forward", "calls", "general"),
    [
        ("x.sum(1)", [Call({"x": (6, 8)}), Call({"x": (9, 5)})], True),
        ("x.sum(1)", [Call({"x": (6, 8)}), Call({"x": (9, 8)})], True),
        ("x.sum(1)", [Call({"x": (6, 8)})], True),
        ("x.sum(1)", [Call({"x": (6, 8)}), Call({"x": (1, 8)})], False),  # a symbol is at least 2
        ("x.sum(1)", [Call({"x": (1, 8)}), Call({"x": (6, 8)})], False),
        ("x.sum(1)", [Call({"x": (6, 8)}), Call({"x": (6, 8, 3)})], False),
        ("x.sum(1).float()", [Call({"x": (6, 8)}), Call({"x": whole((6, 8), 5)})], False),
        ("x.view(2, -1).sum(1) if x.shape[0] > 6 else x.sum(1)", [Call({"x": (6, 8)}), Call({"x": (8, 5)})], False),
    ],
)
def test_one_source_serves_all_sizes_that_can_be_symbols(
    forward: str, calls: list[Call], general: bool, sandbox: Sandbox
) -> None:
    record = lowered(probed(source(forward), *calls), sandbox)
    assert record.shape_general == general


@pytest.mark.parametrize(
    ("forward", "calls", "guards"),
    [
        ("x.sum(1)", [Call({"x": (6, 8)}), Call({"x": (9, 5)})], ()),
        ("F.conv2d(x, self.w).relu()", [Call({"x": (2, 8, 12, 20)}), Call({"x": (3, 8, 11, 23)})], ()),
        ("x * 2 if x.shape[1] < 20 else x", [Call({"x": (6, 8)}), Call({"x": (9, 5)})], ("input0_1 <= 19",)),
        ("x.relu() if x.shape[0] == 3 or x.shape[1] > 4 else x * 2", [Call({"x": (6, 8)}), Call({"x": (9, 5)})],
         ("input0_0 != 3", "input0_1 >= 5")),
        ("x.unflatten(1, (4, -1)).sum(1)", [Call({"x": (6, 8)}), Call({"x": (9, 20)})], ("input0_1 % 4 == 0",)),
        ("F.max_pool2d(x, 8).flatten(1) * self.w[0, 0, 0, 0]", [Call({"x": (2, 8, 12, 9)}), Call({"x": (3, 8, 11, 8)})],
         ("input0_2 <= 15", "input0_3 <= 15")),
        ("x / math.sqrt(x.size(-1))", [Call({"x": (6, 8)}), Call({"x": (9, 5)})], ()),
        ("F.avg_pool2d(x, x.shape[2:])", [Call({"x": (2, 8, 12, 9)}), Call({"x": (3, 8, 11, 8)})], ()),
        ("F.max_pool2d(input=x, kernel_size=x.shape[2:])", [Call({"x": (2, 8, 12, 9)}), Call({"x": (3, 8, 11, 8)})],
         ()),
        ("x * 2 + y", [Call({"x": (6, 8), "y": (6, 8)}), Call({"x": (9, 5), "y": (9, 5)})],
         ("input1_0 == input0_0", "input1_1 == input0_1")),
        ("torch.cat([x, y]).relu()", [Call({"x": (6, 8), "y": (7, 8)}), Call({"x": (9, 5), "y": (3, 5)})],
         ("input1_1 == input0_1",)),
    ],
)  # fmt: skip
def test_relevant_assumptions_about_sizes_become_guards(
    forward: str, calls: list[Call], guards: tuple[str, ...], sandbox: Sandbox
) -> None:
    signature = "x, y" if "y" in calls[0].tensors else "x"
    code = source(forward, "self.w = nn.Parameter(torch.rand(8, 8, 3, 3))", signature=signature)
    record = lowered(probed(code, *calls), sandbox)
    assert record.shape_general
    assert record.guards == guards


# Sizes that follow from the constructor

X3 = [Call({"x": (4, 6, 32)}), Call({"x": (3, 5, 32)})]
IMAGES = [Call({"x": (4, 8, 6, 5)}), Call({"x": (3, 8, 7, 9)})]
TOKENS = [Call({"x": whole((4, 6), 50)}), Call({"x": whole((3, 5), 50)})]
SCALE = "self.scale = nn.Parameter(torch.rand(dim))\nself.bias = nn.Parameter(torch.rand(dim))"
HEADS = "self.q = nn.Linear(dim, dim)\nself.heads, self.depth = heads, dim // heads"
FOLLOWING = [
    ("x * self.scale + self.bias", SCALE, "dim", [32], X3, ["dim"], ["input0_2 == state0_0"]),
    ("self.norm(x)", "self.norm = nn.LayerNorm(dim)", "dim", [32], X3, ["dim"], ["input0_2 == state0_0"]),
    ("F.rms_norm(x, (x.shape[-1],), self.scale)", SCALE, "dim", [32], X3, ["dim"], ["input0_2 == state0_0"]),
    ("F.gelu(self.fc(x))", "self.fc = nn.Linear(n, m)", "n, m", [32, 48], X3, ["n", "m"], ["input0_2 == state0_1"]),
    ("x + self.fc(x)", "self.fc = nn.Linear(n, m)", "n, m", [32, 32], X3, ["m", "n"],
     ["input0_2 == state0_0", "state0_1 == state0_0"]),
    ("self.e(x) * 2", "self.e = nn.Embedding(vocab, dim)", "vocab, dim", [50, 32], TOKENS, ["dim", "vocab"], []),
    ("F.relu(self.bn(x))", "self.bn = nn.BatchNorm2d(c)", "c", [8], IMAGES, ["c"], ["input0_1 == state0_0"]),
    ("self.q(x).view(*x.shape[:2], self.heads, self.depth).sin()", HEADS, "dim, heads", [32, 4], X3, ["dim"],
     ["input0_2 == state0_0", "state0_0 % 4 == 0"]),
    ("x[..., :32] * self.scale", SCALE, "dim", [32], X3, [], []),
    ("sum(x[..., i] for i in range(self.dim)) * self.scale[0]", f"{SCALE}\nself.dim = dim", "dim", [8],
     [Call({"x": (4, 6, 8)}), Call({"x": (3, 5, 8)})], [], []),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "layers", "parameters", "arguments", "calls", "words", "guards"), FOLLOWING)
def test_sizes_that_follow_from_the_constructor_are_symbols(
    forward: str,
    layers: str,
    parameters: str,
    arguments: list[int],
    calls: list[Call],
    words: list[str],
    guards: list[str],
    sandbox: Sandbox,
) -> None:
    code = source(forward, layers, parameters=parameters, init_args=repr(arguments))
    record = lowered(probed(code, *calls), sandbox, constructor_sizes=True)
    assert record.shape_general
    assert [size.word for size in record.constructor_sizes] == words
    assert sorted(record.guards) == sorted(guards)
    assert agrees(record, sandbox)


def test_sizes_are_numbers_if_tidy_does_not_support_symbols(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    code = source("x * self.scale", SCALE, parameters="dim", init_args="[32]")
    monkeypatch.setattr(stage, "tidy", lambda record: Dropped(record.id, Reason.NOT_TIDIED, ""))
    record = lowered(probed(code, *X3), sandbox, constructor_sizes=True)
    assert not record.constructor_sizes and not record.constructions and not record.guards


def test_other_constructions_have_their_own_calls_and_state(sandbox: Sandbox) -> None:
    code = source("self.fc(x)", "self.fc = nn.Linear(n, m)", parameters="n, m", init_args="[32, 48]")
    record = lowered(probed(code, *X3), sandbox, constructor_sizes=True)
    found = [(one.init_args, *(w.tensors[0].shape for w in one.workloads)) for one in record.constructions]
    assert found == [("[64, 96]", (4, 6, 64), (3, 5, 64)), ("[96, 144]", (4, 6, 96), (3, 5, 96))]
    assert [spec.shape for spec in record.constructions[0].state] == [(96, 64), (96,)]


def test_sizes_of_the_state_are_numbers_by_default_and_those_of_kernels_always(sandbox: Sandbox) -> None:
    code = source("self.fc(x)", "self.fc = nn.Linear(n, m)", parameters="n, m", init_args="[32, 48]")
    assert not lowered(probed(code, *X3), sandbox).constructor_sizes
    conv = source("self.conv(x)", "self.conv = nn.Conv1d(6, n, k)", parameters="n, k", init_args="[8, 3]")
    calls = Call({"x": (4, 6, 32)}), Call({"x": (3, 6, 40)})
    record = lowered(probed(conv, *calls), sandbox, constructor_sizes=True)
    assert [size.word for size in record.constructor_sizes] == ["n"]


# Reasons

MANY_LAYERS = "self.layers = nn.Sequential(*(nn.Linear(8 + i, 9 + i) for i in range(12)))"
REFUSED = [
    ("x + torch.rand_like(x)", "", Reason.RANDOM_OP, "rand"),
    ("F.dropout(x)", "", Reason.RANDOM_OP, "aten."),
    ("x * 2 if x.sum() > 0 else x", "", Reason.GRAPH_BREAK, "data-dependent"),
    ("x[x > 0] * 2", "", Reason.GRAPH_BREAK, "depends on values"),
    ("x.relu(), object()", "", Reason.GRAPH_BREAK, "a result of type object"),
    ("x * self.count.add_(1)", "self.register_buffer('count', torch.zeros(()))", Reason.STATEFUL, "count"),
    ("torch.linalg.qr(x).Q", "", Reason.UNSUPPORTED_OP, "linalg_qr"),
    ("x[:, :2] * torch.tensor([[1.0, 2.0]] * 99).sum(0)", "", Reason.UNSUPPORTED_OP, "a constant of shape (99, 2)"),
    ("x[:, :4] * self.noise[0].sum(0)", "self.noise = (torch.randn(3, 4),)", Reason.UNSUPPORTED_OP, "constructor"),
    ("x.no_such_method()", "", Reason.GRAPH_BREAK, "AttributeError"),
    ("x.t()", "", Reason.NOTHING_TO_LOWER, "views or copies"),
    ("self.layers(x)", MANY_LAYERS, Reason.TOO_MANY_KERNELS, "more than 10 kernels"),
    ("x * 2", "raise RuntimeError('not to be made')", Reason.UNSUPPORTED_OP, "not to be made"),
    ("x * 2", "while True: pass", Reason.TIMED_OUT, ""),
    ("x * 2", "__import__('os')._exit(0)", Reason.CRASHED, ""),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "layers", "reason", "evidence"), REFUSED)
def test_reasons_without_a_kernel(
    forward: str, layers: str, reason: Reason, evidence: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason is Reason.TIMED_OUT:
        monkeypatch.setattr(stage, "_GUEST", replace(stage._GUEST, wall_s=2))
    probe = replace(probed(source("x"), X), python_code=source(forward, layers))
    outcome = lower(probe, sandbox)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.reason is reason, outcome
    assert evidence in outcome.evidence


WITHOUT_GRADIENT = [
    ("(x > 0).float() * 2", "", Reason.NO_GRADIENT, "no output depends"),
    ("x.mul_(2) + 1", "", Reason.GRAPH_BREAK, "in-place"),
    ("x + 1", "", Reason.NOTHING_TO_LOWER, "views or copies"),  # its gradient is that of the output
]


@pytest.mark.parametrize(("forward", "layers", "reason", "evidence"), WITHOUT_GRADIENT)
def test_reasons_without_a_backward(forward: str, layers: str, reason: Reason, evidence: str, sandbox: Sandbox) -> None:
    outcome = lower(probed(source(forward, layers), X), sandbox, training=True)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.reason is reason, outcome
    assert evidence in outcome.evidence


def test_every_reason_of_the_stage_is_tested() -> None:
    assert {reason for reason in Reason if reason.stage == "lower"} <= {case[2] for case in REFUSED + WITHOUT_GRADIENT}


# What the host makes of a reply

REPLY = {
    "inductor_code": "k = async_compile.triton('k', '''''')",
    "bindings": [["arg0_1", "input", "0"]],
    "outputs": {"tensor": 0},
    "shape_general": True,
    "guards": [],
}


class Stub(Sandbox):
    """A sandbox that returns the same report for every job."""

    def __init__(self, reply: dict[str, Any] | None, status: Status = Status.OK) -> None:
        self.report = Report(status, reply, {}, "e" * 10_000, "", "", 0.1, 0.1, 1.0)

    def run(self, job: Job) -> Report:
        return self.report


def replied(**changes: Any) -> Kept[Lowered] | Dropped:
    outcome = lower(probed(source("x * 2"), X), Stub({**REPLY, **changes}))
    assert isinstance(outcome, Kept | Dropped)
    return outcome


def test_the_record_has_the_content_of_the_reply() -> None:
    outcome = replied()
    assert isinstance(outcome, Kept)
    assert outcome.record.bindings == (Binding("arg0_1", Source.INPUT, "0"),)
    assert outcome.record.outputs == '{"tensor":0}'


def test_the_generator_has_the_options_of_the_request() -> None:
    outcome = replied()
    assert isinstance(outcome, Kept)
    generator = outcome.record.generator
    assert (generator.kind, generator.name) == ("inductor", "torch.inductor")
    assert generator.version == version("torch")
    options = json.loads(generator.options)
    assert options == {"target": TARGET, "triton": version("triton")}
    assert generator.options == canonical(options)


@pytest.mark.parametrize(
    "changes",
    [
        {"inductor_code": 3},
        {"bindings": [["arg0_1", "nowhere", "0"]]},
        {"bindings": [["arg0_1", "input"]]},
        {"shape_general": "perhaps"},
        {"guards": ["__import__('os')"]},
        {"reason": "WRONG_VALUES"},  # of another stage
        {"reason": ["RANDOM_OP"]},
    ],
)
def test_a_garbled_reply_is_a_crash(changes: dict[str, Any]) -> None:
    outcome = replied(**changes)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.CRASHED


@pytest.mark.parametrize(
    ("kernels", "reason"), [(0, Reason.NOTHING_TO_LOWER), (stage.MOST_KERNELS + 1, Reason.TOO_MANY_KERNELS)]
)
def test_kernels_are_counted_by_the_host(kernels: int, reason: Reason) -> None:
    outcome = replied(inductor_code=REPLY["inductor_code"] * kernels)
    assert isinstance(outcome, Dropped) and outcome.reason is reason
    assert isinstance(replied(inductor_code=REPLY["inductor_code"] * stage.MOST_KERNELS), Kept)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.RAISED, Reason.UNSUPPORTED_OP),
        (Status.TIMED_OUT, Reason.TIMED_OUT),
        (Status.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY),
        (Status.CRASHED, Reason.CRASHED),
    ],
)
def test_a_guest_without_a_reply(status: Status, reason: Reason) -> None:
    outcome = lower(probed(source("x * 2"), X), Stub(None, status))
    assert isinstance(outcome, Dropped) and outcome.reason is reason
    assert len(outcome.evidence) < 1000


def test_the_same_module_lowers_to_the_same_source(sandbox: Sandbox) -> None:
    code = source("F.softmax(self.b(self.a(x)), -1)", "self.a = nn.Linear(8, 8)\nself.b = nn.Linear(8, 8)")
    probe = probed(code, X, Call({"x": (9, 8)}))
    assert lowered(probe, sandbox) == lowered(probe, sandbox)
