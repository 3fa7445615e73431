"""The linter on honest kernels and on hacks, and each rule about work outside of kernels on a small source."""

from __future__ import annotations

import pytest
from corpus import Case, load_cases

from kernelquarry.filters.lint import Rule, launched_kernels, lint

HONEST = load_cases("honest")
STATIC = [case for case in load_cases("evil") if case.lint]

KERNEL = """
import torch
import triton
import triton.language as tl
import torch.nn.functional as F
from torch import nn

@triton.jit
def double(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, 2 * tl.load(x_ptr + index, mask=index < size), mask=index < size)
"""
HELPERS = """
import functools
import operator

ACTIVATION = nn.ReLU()


def rectified(values):
    return torch.relu(values)


def scaled(values):
    return 2 * values
"""
MODEL = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3) * 2)
        self.linear = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.ReLU()])
        self.steps = nn.Sequential(nn.ReLU())
        self.rectify = lambda values: torch.relu(values)
        self.curve = F.gelu
        self.clipped = functools.partial(torch.clamp, min=0)
        self.table = {{"relu": torch.relu}}
        self.named = nn.ModuleDict({{"relu": nn.ReLU()}})
        self.add_module("added", nn.ReLU())
        setattr(self, "set", nn.ReLU())

    @staticmethod
    def _launched(x, out):
        double[(1,)](x, out, x.numel(), BLOCK=128)
        return out

    def forward(self, x):
        out = torch.empty_like(x)
        size = x.numel() * 1
        double[(triton.cdiv(size, 128),)](x.contiguous(), out, size, BLOCK=128)
        {body}
        return out
"""


def rules(code: str, extern_ops: tuple[str, ...] = ()) -> set[Rule]:
    return {finding.rule for finding in lint(code, extern_ops)}


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_an_honest_kernel_has_no_findings(case: Case) -> None:
    assert lint(case.candidate.triton_code, case.candidate.extern_ops) == ()
    assert launched_kernels(case.candidate.triton_code)


@pytest.mark.parametrize("case", STATIC, ids=lambda case: case.name)
def test_hacks_that_the_source_shows_are_found(case: Case) -> None:
    assert Rule(case.lint) in rules(case.candidate.triton_code, case.candidate.extern_ops)


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "out = out.view(-1).view(x.shape)",
        "scale = x.shape[-1] ** -0.5",
        "weight = self.linear.weight.t()",
        "extra = torch.zeros((2, x.shape[0] + 1), device=x.device)",
        "assert x.is_contiguous(), 'contiguous'",
        "weights = [layer.weight for layer in self.layers]",
        "rows = 1 if x.shape[0] > 4 else 2",
        "count = functools.reduce(operator.mul, x.shape)",
        "block = max(16, min(128, size))",
        "a, b = torch.broadcast_tensors(x, out); c = torch.broadcast_to(x, (2, *x.shape))",
        "out = ModelNew._launched(x, out)",
        "raise ValueError(f'{x} is of another size') if x.dim() > 9 else None",
        "assert x.dim() == 2, f'2 dimensions, not those of {x}'",
        "grid = (lambda meta: (triton.cdiv(size, meta['BLOCK']),))",
        "while size > 1 << 40: size -= 1",
    ],
)
def test_code_that_prepares_a_launch_has_no_findings(body: str) -> None:
    assert rules(KERNEL + MODEL.format(body=body)) == set()


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("out = torch.relu(out)", Rule.TORCH_COMPUTE),
        ("out = F.relu(out)", Rule.TORCH_COMPUTE),
        ("out = out.relu_()", Rule.TORCH_COMPUTE),
        ("out = self.linear(out)", Rule.TORCH_COMPUTE),
        ("out = out @ self.weight", Rule.TORCH_COMPUTE),
        ("out = out + 1", Rule.TORCH_COMPUTE),
        ("out = -x", Rule.TORCH_COMPUTE),
        ("out = 2 * self.weight", Rule.TORCH_COMPUTE),
        ("out = torch.linalg.norm(out)", Rule.TORCH_COMPUTE),
        ("scale = x.mean()", Rule.TORCH_COMPUTE),
        ("out = self.linear.forward(out)", Rule.TORCH_COMPUTE),
        ("out = nn.Linear.forward(self.linear, out)", Rule.TORCH_COMPUTE),
        ("out = self.steps(out)", Rule.TORCH_COMPUTE),
        ("out = self.layers[0](out)", Rule.TORCH_COMPUTE),
        ("for layer in self.layers: out = layer(out)", Rule.TORCH_COMPUTE),
        ("out = ACTIVATION(out)", Rule.TORCH_COMPUTE),
        ("out = rectified(out)", Rule.TORCH_COMPUTE),
        ("product = torch.matmul", Rule.TORCH_COMPUTE),
        ("rectify = out.relu", Rule.TORCH_COMPUTE),
        ("out = torch.Tensor.relu(out)", Rule.TORCH_COMPUTE),
        ("out = torch.sparse.mm(out, out)", Rule.TORCH_COMPUTE),
        ("out = operator.mul(out, out)", Rule.TORCH_COMPUTE),
        ("out = sum([out, out])", Rule.TORCH_COMPUTE),
        ("out += 1", Rule.TORCH_COMPUTE),
        ("out @= self.weight", Rule.TORCH_COMPUTE),
        ("out[out < 0] = 0", Rule.TORCH_COMPUTE),
        ("flat = x.view(-1)\n        out = flat + flat", Rule.TORCH_COMPUTE),
        ("out = scaled(out)", Rule.TORCH_COMPUTE),
        ("scale = x.view(-1)[0].item()", Rule.VALUES_LEAVE),
        ("scale = float(x[0])", Rule.VALUES_LEAVE),
        ("out = functools.partial(torch.add, 1)(out)", Rule.TORCH_COMPUTE),
        ("out = functools.reduce(lambda a, b: a + b, [out, x])", Rule.TORCH_COMPUTE),
        ("out = self.rectify(out)", Rule.TORCH_COMPUTE),
        ("out = self.curve(out)", Rule.TORCH_COMPUTE),
        ("out = self.clipped(out)", Rule.TORCH_COMPUTE),
        ("out = self.table['relu'](out)", Rule.TORCH_COMPUTE),
        ("out = self.named['relu'](out)", Rule.TORCH_COMPUTE),
        ("out = self.added(out)", Rule.TORCH_COMPUTE),
        ("out = self.set(out)", Rule.TORCH_COMPUTE),
        ("for layer in self.children(): out = layer(out)", Rule.TORCH_COMPUTE),
        ("scale = bool(x[0])", Rule.VALUES_LEAVE),
    ],
)
def test_work_outside_of_kernels_is_found(body: str, rule: Rule) -> None:
    assert rules(KERNEL + HELPERS + MODEL.format(body="pass")) == set()
    assert rule in rules(KERNEL + HELPERS + MODEL.format(body=body))


@pytest.mark.parametrize(
    "line", ["relu = lambda values: torch.relu(values)", "TABLE = {'relu': torch.relu}", "relu = torch.relu"]
)
def test_aliases_of_pytorch_functions_are_found(line: str) -> None:
    assert rules(KERNEL + line + MODEL.format(body="pass")) == {Rule.TORCH_COMPUTE}


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("double[(triton", "if False: double[(triton", Rule.NOT_LAUNCHED),
        ("double[(triton", "while not True: double[(triton", Rule.NOT_LAUNCHED),
        ("double[(triton", "if size and 0: double[(triton", Rule.NOT_LAUNCHED),
        ("double[(triton", "for _ in range(0): double[(triton", Rule.NOT_LAUNCHED),
        ("double[(triton", "for _ in (): double[(triton", Rule.NOT_LAUNCHED),
        ("    index = ", "    return\n    index = ", Rule.STORES_NOTHING),
        ("    tl.store", "    if False: tl.store", Rule.STORES_NOTHING),
        ("out = torch.empty_like(x)", "return x\n        out = torch.empty_like(x)", Rule.NOT_LAUNCHED),
        ("(triton.cdiv(size, 128),)", "(0,)", Rule.NOT_LAUNCHED),
        ("tl.store(out_ptr + index, ", "tl.where(index < size, ", Rule.STORES_NOTHING),
        ("@triton.jit", "@jit", Rule.NO_KERNEL),
    ],
)
def test_a_kernel_that_does_nothing_is_found(old: str, new: str, rule: Rule) -> None:
    code = KERNEL + "def jit(function): return function\n" + MODEL.format(body="pass")
    assert rules(code) == set()
    assert old in code and rule in rules(code.replace(old, new, 1))


@pytest.mark.parametrize(
    "behind",
    [
        'if __name__ == "__main__":\n    x = torch.randn(4)\n    assert torch.allclose(ModelNew()(x), 2 * x)\n',
        "def test():\n    x = torch.randn(4)\n    torch.testing.assert_close(ModelNew()(x), 2 * x)\n",
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x) * 2\n",
    ],
)
def test_code_after_the_class_has_no_findings(behind: str) -> None:
    assert rules(KERNEL + MODEL.format(body="pass") + behind) == set()


@pytest.mark.parametrize(
    "body",
    [
        "if self.training:\n            return self.linear(out)",
        "if x.device.type == 'cpu' or not torch.cuda.is_available():\n            return rectified(x)",
        "if not x.is_cuda:\n            double[(1,)](x, out, size, BLOCK=64)\n            return torch.relu(x)",
        "out = torch.relu(x) if x.device.type != 'cuda' else out",
        "if x.is_cuda:\n            return out\n        return torch.relu(x)",
    ],
)
def test_branches_for_training_or_the_cpu_are_ignored(body: str) -> None:
    helper = "def rectified(values): return torch.relu(values)\n"
    code = KERNEL + helper + MODEL.format(body=body)
    assert rules(code) == set()
    for old in ("self.training", "not x.is_cuda", "!= 'cuda'", "== 'cpu'", "x.is_cuda"):
        if old in body:
            other = {"!= 'cuda'": "== 'cuda'", "== 'cpu'": "== 'cuda'"}.get(old, "x.is_contiguous()")
            assert rules(code.replace(old, other)) == {Rule.TORCH_COMPUTE}
            return
    raise AssertionError(body)


def test_a_kernel_for_training_only_need_not_be_launched() -> None:
    second = KERNEL + KERNEL.replace("double", "triple")
    assert rules(second + MODEL.format(body="if self.training: triple[(1,)](x, out, size, BLOCK=64)")) == set()
    assert rules(second + MODEL.format(body="if False: triple[(1,)](x, out, size, BLOCK=64)")) == {Rule.NOT_LAUNCHED}


def test_a_mixed_candidate_may_use_what_it_declares() -> None:
    code = KERNEL + MODEL.format(body="out = F.linear(out, self.weight)\n        out = self.linear(out)")
    assert rules(code, ("aten.addmm",)) == set()
    assert rules(code, ("aten.convolution",)) == {Rule.TORCH_COMPUTE}


def test_a_jitted_function_that_returns_a_value_is_a_helper() -> None:
    """A helper need not be launched: it may be unused, or a constant that a kernel calls."""
    helper = "@triton.jit\ndef silu(x):\n    return x * tl.sigmoid(x)\n\nTABLE = {'silu': silu}\n"
    code = KERNEL + helper + MODEL.format(body="pass")
    assert rules(code) == set() == rules(code.replace("TABLE = {'silu': silu}", ""))
    assert launched_kernels(code) == ("double",)
    assert launched_kernels(code.replace("x.contiguous()", "silu[(1,)](x)")) == ("double", "silu")
    assert rules(code.replace("return x *", "x *").replace("TABLE = {'silu': silu}", "")) == {Rule.NOT_LAUNCHED}


def test_kernels_and_the_entry_must_be_there() -> None:
    model = MODEL.format(body="pass")
    renamed = KERNEL + model.replace("ModelNew", "Model")
    assert rules(renamed) == {Rule.NO_ENTRY}
    assert [finding.what for finding in lint(renamed)] == ["no class ModelNew with forward, but class Model"]
    assert rules(renamed + "\nModelNew = Model\n") == set()
    computing = renamed.replace("pass", "out = torch.relu(out)") + "\nModelNew = Model\n"
    assert rules(computing) == {Rule.TORCH_COMPUTE}
    assert Rule.NO_KERNEL in rules("import torch\nfrom torch import nn\n" + model)
    second = KERNEL + KERNEL.replace("double", "triple")
    assert rules(second + model) == {Rule.NOT_LAUNCHED}
    assert (
        rules(second + model + "class F(torch.autograd.Function):\n    def backward(ctx, g): triple[1](g)\n") == set()
    )


def test_self_may_have_another_name() -> None:
    block = MODEL.format(body="pass").replace("ModelNew", "Block")
    entry = """
class ModelNew(nn.Module):
    def __init__(this):
        super().__init__()
        this.block = Block()

    def forward(this, x):
        return this.block(x)
"""
    assert rules(KERNEL + block + entry) == set()
    assert rules(KERNEL + block + entry.replace("Block()", "nn.ReLU()")) == {Rule.TORCH_COMPUTE}


def test_a_source_that_does_not_parse_is_one_finding() -> None:
    assert rules("def (") == {Rule.UNPARSABLE}
    assert rules("(" * 5000) == {Rule.UNPARSABLE}
    assert launched_kernels("def (") == ()
