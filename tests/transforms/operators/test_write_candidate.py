"""A library of kernels writes modules: each function of it is right, and calls that it lacks are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from library_modules import MODULES
from modules import Call, probed, source

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate
from kernelquarry.transforms.operators import write_candidate
from kernelquarry.transforms.operators.library_text import FUNCTIONS, library_text
from kernelquarry.transforms.verify import VerifySettings, verify

QUICK = VerifySettings(target="", find_counterexamples=False)
IMAGE = Call({"x": (2, 4, 6, 8)})


def written(code: str, *calls: Call, sandbox: Sandbox) -> Candidate:
    outcome = write_candidate(probed(code, *calls), sandbox)
    assert isinstance(outcome, Kept), outcome
    return outcome.record


def forward(candidate: Candidate) -> str:
    return candidate.triton_code.partition("    def forward(")[2].partition("\n\n\n")[0]


@pytest.mark.parametrize("name", MODULES)
def test_functions_of_the_library_are_right(name: str, sandbox: Sandbox) -> None:
    code, calls = MODULES[name]
    candidate = written(code, *calls, sandbox=sandbox)
    verified = verify(candidate, sandbox, QUICK)
    assert isinstance(verified, Kept), f"{verified}\n{candidate.triton_code}"


def test_a_wrong_kernel_of_the_library_is_rejected(sandbox: Sandbox) -> None:
    code, calls = MODULES["two tensors"]
    candidate = written(code, *calls, sandbox=sandbox)
    wrong = replace(candidate, triton_code=candidate.triton_code.replace("x - y,", "x - 2 * y,"))
    assert wrong.triton_code != candidate.triton_code
    outcome = verify(wrong, sandbox, QUICK)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.WRONG_VALUES


def test_every_function_of_the_library_is_tried(sandbox: Sandbox) -> None:
    texts = [written(code, *calls, sandbox=sandbox).triton_code for code, calls in MODULES.values()]
    called = {name for text in texts for name in re.findall(r"^def (\w+)\(", text, re.MULTILINE)}
    assert called >= FUNCTIONS, FUNCTIONS - called


def test_layers_are_called_by_their_names_and_variables_are_used_again(sandbox: Sandbox) -> None:
    code = source(
        "y = self.bn(self.conv(x))\nreturn F.relu(y) + x",
        "self.conv = nn.Conv2d(4, 4, 3, padding=1)\nself.bn = nn.BatchNorm2d(4)",
    )
    lines = forward(written(code, IMAGE, sandbox=sandbox)).splitlines()[1:]
    assert [line.strip() for line in lines] == [
        "# y = self.bn(self.conv(x))",
        "y = conv2d_layer(x, self.conv)",
        "y = batch_norm_layer(y, self.bn)",
        "# return F.relu(y) + x",
        "y = relu(y)",
        "y = add(y, x)",
        "return y",
    ]


def test_comments_are_of_the_innermost_line_of_the_file(sandbox: Sandbox) -> None:
    helpers = """
    def halved(x):
        if x.sum() != 0:
            x = x / 2
        return x
    """
    text = forward(written(source("halved(x) * 3", helpers=helpers), IMAGE, sandbox=sandbox))
    assert "# x = x / 2\n        x = div_scalar(x, 2.0)\n        # return halved(x) * 3\n" in text


def test_sizes_that_vary_are_read_from_tensors(sandbox: Sandbox) -> None:
    code = source("b, n, c = x.shape\nreturn torch.softmax(x.reshape(b, n, 2, c // 2).transpose(1, 2), -1)")
    candidate = written(code, Call({"x": (2, 5, 8)}), Call({"x": (3, 7, 14)}), sandbox=sandbox)
    assert "x.reshape(x.shape[0], x.shape[1], 2, x.shape[2] // 2).transpose(1, 2)" in forward(candidate)


def test_numbers_that_follow_from_sizes_are_computed(sandbox: Sandbox) -> None:
    code = source("x / x.shape[-1] ** 0.5 * (1 / x.shape[1])")
    text = forward(written(code, Call({"x": (2, 5, 8)}), Call({"x": (3, 7, 14)}), sandbox=sandbox))
    assert "div_scalar(x, width ** 0.5)" in text and "mul_scalar(x, 1.0 / length)" in text


def test_a_write_by_index_is_refused(sandbox: Sandbox) -> None:
    outcome = write_candidate(probed(source("y = x * 2\ny[:, 0] = 0\nreturn y * 2"), IMAGE), sandbox)
    assert isinstance(outcome, Dropped) and outcome.evidence == "unknown __setitem__"


@pytest.mark.parametrize("call", ["torch.softmax(input=x, dim=1)", "F.avg_pool2d(input=x, kernel_size=2)"])
def test_arguments_have_names(call: str, sandbox: Sandbox) -> None:
    assert written(source(call), IMAGE, sandbox=sandbox).triton_code.count("@triton.jit") == 1


def test_what_no_kernel_computes_is_copied(sandbox: Sandbox) -> None:
    candidate = written(source("x.transpose(2, 3)"), IMAGE, sandbox=sandbox)
    assert "return copied(x.transpose(2, 3))" in forward(candidate)
    assert candidate.kernels == ("copied_kernel",)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (source("torch.sort(x, -1)[0]"), "items of sort"),
        (source("torch.linalg.inv(x @ x.mT)"), "linalg_inv"),
        (source("F.max_pool2d(x, 2, return_indices=True)[0]"), "max_pool2d_with_indices"),
        (source("x[x > 0].sum()"), "index"),
        (source("x.cumsum(1, dtype=torch.float64).float()"), "a dtype of a sum"),
        (source("torch.round(x, decimals=1)"), "decimals of round"),
    ],
)
def test_calls_that_the_library_lacks_are_refused(code: str, why: str, sandbox: Sandbox) -> None:
    outcome = write_candidate(probed(code, IMAGE), sandbox)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.NOT_WRITTEN
    assert why in outcome.evidence


def test_functions_come_once_with_what_they_call() -> None:
    text = library_text(["conv1d_layer", "conv2d_layer", "tanh"])
    names = re.findall(r"^def (\w+)\(", text, re.MULTILINE)
    assert names == [
        "conv1d_layer",
        "conv1d",
        "conv2d",
        "conv2d_kernel",
        "conv2d_layer",
        "tanh",
        "tanh_kernel",
        "tanh_of",
    ]
