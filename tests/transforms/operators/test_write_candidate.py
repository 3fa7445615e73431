"""A library of kernels writes modules: each function of it is right, and calls that it lacks are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from library_modules import MODULES
from modules import Call, probed, source, whole

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


def test_the_module_stays_with_other_calls(sandbox: Sandbox) -> None:
    helpers = """
    def halved(x):
        if x.shape[0] > 100:
            return torch.cumsum(x, 0)
        return x / 2

    class Block(nn.Module):
        \"\"\"A block.\"\"\"
        def __init__(self, width: int = 4):
            super().__init__()
            self.steps = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU())

        def forward(self, x):
            return self.steps(x)
    """
    body = "for block in self.blocks:\n    x = block(x) + 2 * halved(x)\nreturn x.flatten(1)"
    code = source(body, "self.blocks = nn.ModuleList([Block() for _ in range(2)])", helpers=helpers)
    text = written(code, IMAGE, sandbox=sandbox).triton_code.split("class TritonConv2d")[0]
    assert text.endswith(
        """\
def halved(x):
    if x.shape[0] > 100:
        return torch.cumsum(x, 0)
    return div_scalar(x, 2.0)


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.steps = nn.Sequential(TritonConv2d(width, width, 3, padding=1), TritonReLU())

    def forward(self, x):
        return self.steps(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            x = add(block(x), mul_scalar(halved(x), 2.0))
        return x.flatten(1)


"""
    )


def test_numbers_stay_as_the_module_computes_them(sandbox: Sandbox) -> None:
    code = source("x / x.shape[-1] ** 0.5 * self.scale", "self.scale = 1.5")
    text = written(code, Call({"x": (2, 5, 8)}), Call({"x": (3, 7, 14)}), sandbox=sandbox).triton_code
    assert "return mul_scalar(div_scalar(x, x.shape[-1] ** 0.5), self.scale)\n" in text


@pytest.mark.parametrize(("product", "text"), [("2 * y", "y, 2.0"), ("y * x.shape[1]", "y, x.shape[1]")])
def test_either_side_may_be_the_number(product: str, text: str, sandbox: Sandbox) -> None:
    code = source(f"y = torch.relu(x)\nreturn {product}")
    assert f"mul_scalar({text})" in written(code, IMAGE, sandbox=sandbox).triton_code


def test_names_of_the_module_give_way_to_the_library(sandbox: Sandbox) -> None:
    code = source("relu = x + 1\nreturn torch.relu(relu) * softmax(x)", helpers="def softmax(x):\n    return x * 2\n")
    text = written(code, IMAGE, sandbox=sandbox).triton_code
    assert "relu_ = add_scalar(x, 1.0)\n" in text and "mul(relu(relu_), softmax(x))" in text


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("x += 1", "x = add_scalar(x, 1.0)"),
        ("x.mul_(2)", "x = mul_scalar(x, 2.0)"),
        ("x, _ = x.max(1, keepdim=True)", "x = reduce_max(x, 1, keepdim=True)"),
        ("x = x.cumsum(1) if x.shape[0] > 9 else x * 2", "x = x.cumsum(1) if x.shape[0] > 9 else mul_scalar(x, 2.0)"),
    ],
)
def test_statements_set_variables(statement: str, text: str, sandbox: Sandbox) -> None:
    code = source(f"x = torch.relu(x)\n{statement}\nreturn x * 3")
    assert f"        {text}\n" in written(code, IMAGE, sandbox=sandbox).triton_code


def test_layers_of_other_classes_stay(sandbox: Sandbox) -> None:
    helpers = """
    class Scaled(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x * 2)

    class Plain(nn.Linear):
        def __init__(self, size):
            super().__init__(size, size, bias=False)
    """
    code = source("self.plain(self.norm(x))", "self.norm = Scaled(8)\nself.plain = Plain(8)", helpers=helpers)
    candidate = written(code, IMAGE, Call({"x": (3, 5, 8)}), sandbox=sandbox)
    text = candidate.triton_code
    assert (
        "        return layer_norm(mul_scalar(x, 2.0), self.normalized_shape, self.weight, self.bias, self.eps)\n"
        in text
    )
    assert "class Scaled(nn.LayerNorm):" in text and "class Plain(TritonLinear):" in text
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)


@pytest.mark.parametrize(
    ("forward", "layers"),
    [
        ("y = self.row.repeat(x.shape[0], 1)\ny[0] = x[0]\nreturn y + x", "self.row = nn.Parameter(torch.rand(4))"),
        ("y = x + 0\ny[:, 0] = 1.5\nreturn y", ""),
        ("y = torch.zeros_like(x)\nfor t in range(2):\n    y[t] = (x[t] * 2).unsqueeze(0)\nreturn y", ""),
    ],
)
def test_elements_are_set_in_new_tensors(forward: str, layers: str, sandbox: Sandbox) -> None:
    candidate = written(source(forward, layers), Call({"x": (5, 4)}), Call({"x": (3, 4)}), sandbox=sandbox)
    assert isinstance(verify(candidate, sandbox, QUICK), Kept), candidate.triton_code


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("torch.einsum('...ij->...ji', x * 2)", "mul_scalar(x, 2.0).permute(0, 1, 3, 2)"),
        ("(x * 2).flip(self.dim)", "flip_axis(mul_scalar(x, 2.0), self.dim)"),
    ],
)
def test_one_argument_stands_for_a_list(expression: str, text: str, sandbox: Sandbox) -> None:
    assert f"return {text}\n" in written(source(expression, "self.dim = 1"), IMAGE, sandbox=sandbox).triton_code


@pytest.mark.parametrize(
    ("name", "text"), [("'ReLU'", "TritonReLU"), ("act", '{"ReLU": TritonReLU}[act]'), ("'Identity'", "nn.Identity")]
)
def test_layers_are_found_by_name(name: str, text: str, sandbox: Sandbox) -> None:
    code = source("self.act(F.relu(x))", f"self.act = getattr(nn, {name})()", parameters="act", init_args="['ReLU']")
    candidate = written(code, IMAGE, Call({"x": (3, 5, 8)}), sandbox=sandbox)
    assert f"self.act = {text}()\n" in candidate.triton_code
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("torch._assert(x.ndim > 2, f'{x.ndim} axes')", "assert x.ndim > 2, f'{x.ndim} axes'"),
        ("with torch.autocast('cpu', enabled=False):\n    x = x + 1", "x = add_scalar(x, 1.0)"),
        ("x = typing.cast(torch.Tensor, x * np.pi)", "x = mul_scalar(x, 3.141592653589793)"),
        ("x = x if torch.jit.is_scripting() else x * 2", "x = x if False else mul_scalar(x, 2.0)"),
        ("x = self.act(x) if hasattr(self, 'act') else x", "x = self.act(x) if self.act is not None else x"),
        ("x = x * 2 if getattr(self, 'rate', 0.5) else x", "x = mul_scalar(x, 2.0) if self.rate else x"),
        ("check(x)\nx = x + 1", "x = add_scalar(x, 1.0)"),
        ("for layer in self._modules.values():\n    x = layer(x)", "for layer in self:"),
        ("x = self.fn(x)", "x = self.call_fn(x)"),
    ],
)
def test_the_language_has_other_words(statement: str, text: str, sandbox: Sandbox) -> None:
    helpers = """\
        def check(x):
            if x.ndim < 3:
                raise ValueError(f"{x.ndim} axes")

        class Base(nn.Module):
            def fn(self, x):
                return x + 1
    """
    base = "Base" if "self.fn" in statement else "nn.Sequential"
    code = source(f"{statement}\nreturn x * 3", "self.layer = nn.ReLU()", helpers=helpers, base=base)
    code = "import typing\nimport numpy as np\n" + code
    candidate = written(code, Call({"x": (2, 4, 6)}), Call({"x": (3, 5, 8)}), sandbox=sandbox)
    assert f"        {text}\n" in candidate.triton_code and "check" not in candidate.triton_code
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)


@pytest.mark.parametrize("change", ["x.mul_(2)", "x += 1", "x[0] = 1", "double(x)"])
def test_a_function_that_changes_something_is_no_check(change: str, sandbox: Sandbox) -> None:
    helpers = f"""\
        def double(x):
            if x.ndim < 3:
                raise ValueError
            x.mul_(2)

        def check(x):
            if x.ndim < 3:
                raise ValueError
            {change}
    """
    outcome = write_candidate(probed(source("y = x + 1\ncheck(y)\nreturn y", helpers=helpers), IMAGE), sandbox)
    assert not isinstance(outcome, Kept) or "check(y)" in outcome.record.triton_code


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (source("x.transpose(1, 2)"), "return copied(x.transpose(1, 2))"),
        (source("y = x.permute(2, 0, 1)\nreturn y"), "return copied(y)"),
    ],
)
def test_a_kernel_copies_what_a_module_of_views_returns(code: str, text: str, sandbox: Sandbox) -> None:
    candidate = written(code, Call({"x": (2, 4, 6)}), Call({"x": (3, 5, 8)}), sandbox=sandbox)
    assert text in candidate.triton_code
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)


def test_a_module_that_derives_from_another_is_written(sandbox: Sandbox) -> None:
    helpers = """
        class Base(nn.Module):
            def forward(self, x):
                return self.scaled(x) + 1

            def unused(self, x):
                return torch.linalg.inv(x)
    """
    code = source("2", helpers=helpers, base="Base").replace(
        "def forward(self, x):\n        return 2", "def scaled(self, x):\n        return x * 2"
    )
    candidate = written(code, Call({"x": (2, 4, 6)}), Call({"x": (3, 5, 8)}), sandbox=sandbox)
    assert "mul_scalar(x, 2.0)" in candidate.triton_code and "unused" not in candidate.triton_code
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)
    code = source(
        "self.both(x)", "self.both = Both(nn.ReLU(), nn.Softplus())", helpers="class Both(nn.Sequential):\n    pass"
    )
    candidate = written(code, IMAGE, Call({"x": (3, 5, 8)}), sandbox=sandbox)
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)
    helpers = (
        "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.ReLU()"
    )
    code = source("self.act(x) * 2 if hasattr(self, 'act') else x", helpers=helpers, base="Base")
    outcome = write_candidate(probed(code, IMAGE), sandbox)
    assert isinstance(outcome, Dropped) and "hasattr" in outcome.evidence, "the base sets it"
    code = source("2", base="nn.Linear", parameters="*sizes", init_args="[8, 4]")
    code = code.replace("    def forward(self, x):\n        return 2\n", "").replace("__init__()", "__init__(*sizes)")
    candidate = written(code, Call({"x": (2, 8)}), Call({"x": (3, 8)}), sandbox=sandbox)
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)


def test_layers_that_the_constructor_is_given_are_replaced(sandbox: Sandbox) -> None:
    code = source("self.act(x)", "self.act = act", parameters="act", init_args="[nn.GELU()]")
    text = written(code, IMAGE, sandbox=sandbox).triton_code
    assert "        act = TritonGELU() if isinstance(act, nn.GELU) else act\n" in text
    code = source("self.act(x)", "self.act = act(8, 3)", parameters="act", init_args="[nn.Linear]")
    candidate = written(code, IMAGE, Call({"x": (3, 5, 8)}), sandbox=sandbox)
    assert "        act = TritonLinear if act == nn.Linear else act\n" in candidate.triton_code
    candidate = replace(candidate, probed=replace(candidate.probed, init_args="[nn.Linear]"))
    assert isinstance(verify(candidate, sandbox, QUICK), Kept)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("y[index] = 0", "an index of tensors"),
        ("self.held[:, 0] = 0", "state that is set"),
        ("y[0] = y[1] = x[2]", "elements that are set together"),
    ],
)
def test_other_writes_by_index_are_refused(statement: str, why: str, sandbox: Sandbox) -> None:
    code = source(
        f"y = x * 2\n{statement}\nreturn y * 2 + self.held",
        "self.register_buffer('held', torch.ones(1, 4))",
        signature="x, index",
    )
    outcome = write_candidate(probed(code, Call({"x": (5, 4), "index": whole((3,), 4)})), sandbox)
    assert isinstance(outcome, Dropped) and why in outcome.evidence


@pytest.mark.parametrize("call", ["torch.softmax(input=x, dim=1)", "F.avg_pool2d(input=x, kernel_size=2)"])
def test_arguments_have_names(call: str, sandbox: Sandbox) -> None:
    assert written(source(call), IMAGE, sandbox=sandbox).triton_code.count("@triton.jit") == 1


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (source("torch.median(x, -1)[0]"), "torch.median"),
        (source("torch.linalg.inv(x @ x.mT)"), "linalg_inv"),
        (source("F.max_pool2d(x, 2, return_indices=True)[0]"), "max_pool2d_with_indices"),
        (source("x[x > 0].sum()"), "a tensor of bool"),
        (source("(x.transpose(2, 3), x)"), "no kernel"),
        (source("sum([x, x * 2])"), "a call that loops"),
        (source("self.act(x)", "self.act = getattr(nn, 'Re' + 'LU')()"), "a layer ReLU that the module does not make"),
        (source("x.cumsum(1, dtype=torch.float64).float()"), "a dtype of a sum"),
        (source("torch.round(x, decimals=1)"), "decimals of round"),
        (source("r = x.topk(2)\nreturn r.values * 2"), "results with names"),
        (source("torch.cat([*[x * 2], x], 1)"), "arguments that are spread"),
    ],
)
def test_calls_that_the_library_lacks_are_refused(code: str, why: str, sandbox: Sandbox) -> None:
    outcome = write_candidate(probed(code, IMAGE), sandbox)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.NOT_WRITTEN
    assert why in outcome.evidence


def test_functions_come_once_with_what_they_call() -> None:
    text = library_text(["conv1d", "conv2d", "tanh"])
    names = re.findall(r"^def (\w+)\(", text, re.MULTILINE)
    assert names == ["conv1d", "conv2d", "conv2d_kernel", "tanh", "tanh_kernel", "tanh_of"]
