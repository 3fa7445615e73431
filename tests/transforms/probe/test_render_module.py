"""`get_inputs()` and `get_init_inputs()` return a workload and the constructor's arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.probe.render_module import is_list, render

CODE = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    pass\n"
X = TensorSpec("x", (2, 3), "float32")


def workload(*tensors: TensorSpec, args: Any = None) -> Workload:
    return Workload(tensors, canonical([{"tensor": i} for i in range(len(tensors))] if args is None else args))


def run(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return namespace


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (X, "torch.randn(2, 3)"),
        (TensorSpec("x", (), "float32"), "torch.randn(())"),
        (TensorSpec("x", (0, 4), "float32"), "torch.randn(0, 4)"),
        (TensorSpec("x", (4,), "float16"), "torch.randn(4, dtype=torch.float16)"),
        (TensorSpec("x", (4,), "bfloat16"), "torch.randn(4, dtype=torch.bfloat16)"),
        (TensorSpec("x", (2, 5), "int64", 3, 9), "torch.randint(3, 9, (2, 5))"),
        (TensorSpec("x", (5,), "int64", 0, 9), "torch.randint(0, 9, (5,))"),
        (TensorSpec("x", (), "int64", 0, 9), "torch.randint(0, 9, ())"),
        (TensorSpec("x", (5,), "int32", 0, 9), "torch.randint(0, 9, (5,), dtype=torch.int32)"),
        (TensorSpec("x", (5, 2), "bool"), "torch.rand(5, 2) < 0.5"),
        (TensorSpec("x", (), "bool"), "torch.rand(()) < 0.5"),
    ],
)
def test_tensors(spec: TensorSpec, text: str) -> None:
    code = render(CODE, "[]", workload(spec))
    assert f"return [{text}]" in code
    (tensor,) = run(code)["get_inputs"]()
    assert tuple(tensor.shape) == spec.shape
    assert tensor.dtype is getattr(torch, spec.dtype)
    if spec.high:
        assert spec.low <= tensor.min() and tensor.max() < spec.high


def test_trees_of_arguments() -> None:
    args = [[{"tensor": 1}, {"tensor": 0}], {"k": {"tensor": 2}}, 3, None, True, 0.5, "a'b", [4, 5]]
    specs = [TensorSpec("x", (i,), "float32") for i in (1, 2, 3)]
    pair, table, *plain = run(render(CODE, "[]", workload(*specs, args=args)))["get_inputs"]()
    assert [len(t) for t in pair] == [2, 1]
    assert len(table["k"]) == 3
    assert plain == [3, None, True, 0.5, "a'b", [4, 5]]


def test_constructor_arguments_keep_their_text() -> None:
    code = render(CODE, "[[16, 32], nn.GELU(), (lambda x: x), type('C', (), {'a': 1})(), *[1, 2]]", workload(X))
    assert "return [[16, 32], nn.GELU(), lambda x: x, type('C', (), {'a': 1})(), *[1, 2]]" in code
    assert len(run(code)["get_init_inputs"]()) == 6


def test_long_lists_have_one_item_a_line() -> None:
    code = render(CODE, "[]", workload(*[X] * 8))
    assert "    return [\n        torch.randn(2, 3),\n" in code
    assert len(run(code)["get_inputs"]()) == 8
    assert max(map(len, code.splitlines())) <= 100


IMPORTS = {
    "import torch\n\n\nclass Model: ...\n": "",
    "class Model: ...\n": "import torch\nfrom torch import nn\n",
    "import torch.nn as nn\n\n\nclass Model: ...\n": "import torch\n",
    "import torch as th\nfrom torch import nn\n\n\nclass Model: ...\n": "import torch\n",
    '"""Of a module."""\n\nimport math\n\n\nclass Model: ...\n': "import torch\nfrom torch import nn\n",
    '"""Of a module."""\nfrom __future__ import annotations\n\nimport math\n\n\nclass Model: ...\n': (
        "import torch\nfrom torch import nn\n"
    ),
    '"""Of\f\u2028a module."""\nfrom __future__ import annotations\nclass Model: ...\n': (
        "import torch\nfrom torch import nn\n"
    ),
}


@pytest.mark.parametrize("code", IMPORTS)
def test_imports(code: str) -> None:
    """Missing imports are added where Python allows it."""
    init_args = "[nn.ReLU()]" if "nn" in IMPORTS[code] else "[]"
    rendered = render(code, init_args, workload(X))
    namespace = run(rendered)
    assert isinstance(namespace["get_inputs"]()[0], torch.Tensor)
    assert len(namespace["get_init_inputs"]()) == (init_args != "[]")
    assert namespace.get("__doc__") == run(code).get("__doc__")
    before = rendered.split("\n\n\ndef get_inputs")[0] + "\n"
    assert before.replace(IMPORTS[code], "", 1) == code


def test_functions_of_the_module_are_replaced() -> None:
    code = CODE + "\n\ndef get_inputs():\n    return 'of the module'\n"
    assert isinstance(run(render(code, "[]", workload(X)))["get_inputs"]()[0], torch.Tensor)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", True),
        ("[1, nn.ReLU()]", True),
        ("(1,)", False),
        ("[x for x in y]", False),
        ("[1] + [2]", False),
        ("[1]; print()", False),
        ("[1\n", False),
        ("[\0]", False),
        (f"[{'(' * 1000}", False),
        (f"[{'-' * 100_000}1]", False),
    ],
)
def test_is_list(text: str, expected: bool) -> None:
    assert is_list(text) is expected
