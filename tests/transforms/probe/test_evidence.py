"""Behaviour digests and operator signatures: equal for spellings of one function, different for other functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from factories import make_module

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n"
STATE = "    def __init__(self, features):\n        super().__init__()\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def probed(sandbox: Sandbox, body: str, state: str = "", features: str = "features") -> Probed:
    """A module with this code. `features` is the name of the constructor's parameter."""
    state = STATE + "".join(f"        {line}\n" for line in state.splitlines()) if state else ""
    outcome = probe(make_module((HEAD + state + body).replace("features", features)), sandbox)
    assert isinstance(outcome, Kept), outcome
    return outcome.record


def forward(expression: str, arguments: str = "x") -> str:
    return f"    def forward(self, {arguments}):\n        return {expression}\n"


LAYER = "self.norm = nn.LayerNorm(features)"
SPELLED = "self.scale = nn.Parameter(torch.ones(features))\nself.shift = nn.Parameter(torch.zeros(features))"
CENTRED = "x - x.mean(-1, keepdim=True)"
NORMED = "(x - x.mean(-1, True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5) * self.scale + self.shift"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((forward("F.silu(x)"),), (forward("x / (1 + torch.exp(-x))"),)),
        ((forward("F.softmax(x, dim=-1)"),), (forward("torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)"),)),
        ((forward("((a - b) ** 2).mean()", "a, b"),), (forward("F.mse_loss(target, guess)", "target, guess"),)),
        ((forward("a - 2 * b", "a, b"),), (forward("second - first * 2.0", "first, second"),)),
        ((forward("self.norm(x)"), LAYER), (forward(NORMED), SPELLED)),
    ],
    ids=["silu", "softmax", "loss", "order of arguments", "layer norm"],
)
def test_one_function_has_one_behaviour(one: tuple[str, ...], other: tuple[str, ...], sandbox: Sandbox) -> None:
    first, second = probed(sandbox, *one), probed(sandbox, *other)
    assert first.behaviour == second.behaviour != ""


def test_other_functions_have_another_behaviour(sandbox: Sandbox) -> None:
    expressions = ("F.silu(x)", "F.gelu(x)", "F.gelu(x, approximate='tanh')", "x * 2", "x * 3", "x.sum(-1)", CENTRED)
    behaviours = [probed(sandbox, forward(expression)).behaviour for expression in expressions]
    assert all(behaviours) and len(set(behaviours)) == len(behaviours)


SQUARE = "self.inner = nn.Linear(features, features)"
LINEAR = forward("F.gelu(self.inner(x)).sum(-1)")
JOINED = "q, k = self.both(x).chunk(2, -1)\n        return (q @ k.mT).softmax(-1)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((LINEAR, SQUARE), (LINEAR, SQUARE)),
        (
            (LINEAR, SQUARE),
            (forward("F.gelu(x @ self.w + self.b).sum(-1)"), "self.w = nn.Parameter(torch.rand(features, features))\n"
             "self.b = nn.Parameter(torch.rand(features))"),
        ),
        (
            ("    def forward(self, x):\n        " + JOINED + "\n", "self.both = nn.Linear(features, 2 * features)"),
            (forward("(self.q(x) @ self.k(x).mT).softmax(-1)"), "self.q = nn.Linear(features, features)\n"
             "self.k = nn.Linear(features, features)"),
        ),
        (
            (forward("F.relu(1 - target * x).mean()", "x, target"),),
            (forward("(1 - x * labels).relu().mean()", "x, labels"),),
        ),
        ((forward("torch.einsum('nd,nd->n', x, y)", "x, y"),), (forward("(x * y).sum(-1)", "x, y"),)),
    ],
    ids=["sizes", "transposed", "joined", "dtypes", "axes"],
)  # fmt: skip
def test_spellings_share_a_behaviour(one: tuple[str, ...], other: tuple[str, ...], sandbox: Sandbox) -> None:
    """The guessed sizes, dtypes and numbers of axes make no difference."""
    first = probed(sandbox, *one)
    state = other[1] if len(other) > 1 else ""
    second = probed(sandbox, other[0], state, features="in_channels")
    assert set(first.behaviours) & set(second.behaviours)
    assert not state or first.init_args != second.init_args


def test_other_functions_share_no_behaviour(sandbox: Sandbox) -> None:
    layers = "self.one = nn.Linear(features, features)\nself.two = nn.Linear(features, features, bias=False)"
    expressions = ("self.one(x)", "self.two(x)", "F.relu(self.one(x))", "self.one(x) + x", "self.two(self.one(x))")
    found = [probed(sandbox, forward(expression), layers).behaviours for expression in expressions]
    assert all(found) and len({digest for each in found for digest in each}) == sum(map(len, found))


def test_equal_sizes_that_make_another_module_do_not_count(sandbox: Sandbox) -> None:
    """With 32 for all sizes, this block would leave out its projection, and be a GELU."""
    inner = "self.inner = nn.Identity() if features == 32 else nn.Linear(features, features)"
    block = probed(sandbox, forward("F.gelu(self.inner(x))"), inner, "in_channels")
    assert block.init_args != "[32]" and block.behaviours
    assert not set(block.behaviours) & set(probed(sandbox, forward("F.gelu(x)")).behaviours)


@pytest.mark.parametrize("expression", ["x.t().contiguous()", "torch.flip(x, [0])", "torch.cat([x, x])"])
def test_a_module_that_only_moves_values_has_no_behaviour(expression: str, sandbox: Sandbox) -> None:
    assert probed(sandbox, forward(expression)).behaviour == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            (forward("torch.relu(self.inner(x))"), "self.inner = nn.Linear(features, 16)"),
            (forward("F.linear(x, self.w, self.b).relu_()"), "self.w = nn.Parameter(torch.rand(16, features))\n"
             "self.b = nn.Parameter(torch.rand(16))"),
        ),
        ((forward("self.norm(x)"), LAYER), (forward("F.layer_norm(x, x.shape[-1:], self.scale, self.shift)"), SPELLED)),
    ],
    ids=["linear", "layer norm"],
)  # fmt: skip
def test_spellings_have_one_signature(one: tuple[str, ...], other: tuple[str, ...], sandbox: Sandbox) -> None:
    first, second = (signature_of(paths_of(probed(sandbox, *spelling).graph)) for spelling in (one, other))
    assert first == second != ""


def test_a_value_written_into_a_view_is_in_the_graph(sandbox: Sandbox) -> None:
    lines = ("def forward(self, x):", "    y = torch.zeros_like(x)", "    y[:1] = x[:1].sin()", "    return y.cos()")
    body = "".join(f"    {line}\n" for line in lines)
    paths = paths_of(probed(sandbox, body).graph)
    assert paths["sin>cos"] == 1
