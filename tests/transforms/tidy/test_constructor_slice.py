"""The slice of a reference has just enough to make the same state."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
import torch

from kernelquarry.transforms.tidy.constructor.constructor_slice import forward_of, slice_constructor
from kernelquarry.transforms.tidy.refusals import NeedsImport, NotTidied


def made(code: str, state: tuple[str, ...] = (), kept: tuple[str, ...] = ()) -> str:
    constructor = slice_constructor(textwrap.dedent(code), state, kept)
    statements = [*constructor.imports, *constructor.definitions, constructor.entry]
    return "\n".join(ast.unparse(ast.fix_missing_locations(statement)) for statement in statements)


def state(code: str, name: str, *args: Any) -> dict[str, torch.Tensor]:
    namespace: dict[str, Any] = {"__name__": "sliced"}
    exec("import torch\nimport torch.nn as nn\n" + code, namespace)
    torch.manual_seed(0)
    return dict(namespace[name](*args).state_dict())


def same_state(code: str, *args: Any) -> str:
    """The constructor's slice, after checking that it makes the reference's state from the same seed."""
    code = textwrap.dedent(code)
    expected = state(code, "Model", *args)
    text = made(code, tuple(expected))
    found = state(text, "ModelNew", *args)
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    return text


BLOCK = '''
import torch
import torch.nn as nn
import torch.nn.functional as F
from typing import Optional


class Unused(nn.Module):
    pass


class Block(nn.Module):
    """A layer and code after it."""

    def __init__(self, width: int, act: Optional[nn.Module] = None) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.act = act or nn.ReLU()
        self.width: int = width
        print("made")

    def forward(self, x):
        return self.act(self.fc(x))

    def extra(self):
        return unknown


def helper(x):
    return F.relu(x)


class Model(nn.Module):
    """The entry point."""

    def __init__(self, width=4):
        super().__init__()
        self.block = Block(width)
        self.dropout = nn.Dropout(0.1)
        self.scale = width ** -0.5

    def forward(self, x):
        return helper(self.block(x)) * self.scale


def get_inputs():
    return [torch.rand(2, 4)]


def get_init_inputs():
    return [4]
'''


def test_unneeded_code_is_dropped() -> None:
    text = same_state(BLOCK, 4)
    for word in (
        "Unused",
        "forward",
        "extra",
        "helper",
        "get_inputs",
        "Optional",
        "int",
        '"""',
        "print",
        "F",
        "width: ",
    ):
        assert word not in text.replace("print", "print"), f"{word}\n{text}"
    assert "self.dropout" not in text and "self.scale" not in text, "nothing reads them"
    assert "class ModelNew(nn.Module):" in text and "def __init__(self, width=4):" in text


def test_containers_that_a_constructor_extends_stay() -> None:
    code = BLOCK.replace("self.scale = width ** -0.5", "self.count = 1\n        self.count += width")
    assert "self.count = 1" in made(code, ())


def test_methods_that_a_layer_constructor_calls_stay() -> None:
    code = """
        import torch
        from torch import nn

        class Model(nn.Embedding):
            def reset_parameters(self):
                nn.init.constant_(self.weight, 0.5)

            def forward(self, x):
                return super().forward(x) + 1
    """
    assert "nn.init.constant_(self.weight, 0.5)" in made(textwrap.dedent(code), ("weight",))
    assert "constant_" not in made(textwrap.dedent(code).replace("nn.Embedding", "nn.Module"), ())


@pytest.mark.parametrize("base", ["torch.nn.Conv1d", "Convolution"])
def test_a_layer_is_recognised_under_any_import(base: str) -> None:
    code = f"""
        import torch
        from torch.nn import Conv1d as Convolution

        class Model({base}):
            def __init__(self):
                super().__init__(2, 3, 1, bias=False)

            def reset_parameters(self):
                torch.nn.init.constant_(self.weight, 0.5)
    """
    assert "torch.nn.init.constant_(self.weight, 0.5)" in same_state(code)


def test_the_initial_value_of_a_parametrization_stays() -> None:
    code = """
        class Halved(nn.Module):
            def forward(self, weight):
                return weight / 2

            def right_inverse(self, weight):
                return weight * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                torch.nn.utils.parametrize.register_parametrization(self.fc, "weight", Halved())
    """
    assert "def right_inverse" in same_state(code)


def test_constants_that_forward_reads_stay() -> None:
    code = BLOCK.replace("width ** -0.5", "torch.full((4,), 0.5)")
    assert "self.scale = torch.full((4,), 0.5)" in made(code, (), ("scale",))


@pytest.mark.parametrize(
    "code",
    [
        # A helper of the constructor, one that it calls through a name, and a constant of the module
        """
        WIDTHS = {"small": 4}

        def make(width):
            return nn.Linear(width, width)

        class Model(nn.Module):
            def __init__(self, kind="small"):
                super().__init__()
                self.layers = nn.Sequential(*[make(WIDTHS[kind]) for _ in range(2)])
                self._reset()

            def _reset(self):
                nn.init.ones_(self.layers[0].weight)

            def forward(self, x):
                return self.layers(x)
        """,
        # Inheritance, and a class that refers to itself
        """
        class Base(nn.Module):
            kind = nn.Linear

            def __init__(self):
                super().__init__()
                self.a = self.kind(3, 3)

        class Model(Base):
            def __init__(self, deep=True):
                super(Model, self).__init__()
                self.inner = Model(False) if deep else None

            def forward(self, x):
                return self.a(x)
        """,
        # A constructor that runs a module to learn a shape
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(1, 2, 3)
                with torch.no_grad():
                    size = self.features(torch.zeros(1, 1, 8, 8)).numel()
                self.fc = nn.Linear(size, 2)

            def features(self, x):
                return self.conv(x).flatten(1)

            def forward(self, x):
                return self.fc(self.features(x))
        """,
        # A constant that is made in steps
        """
        table = torch.zeros(3, 3)
        table[1, :2] = torch.tensor([4.0, 5.0])
        table += 1
        table = nn.Parameter(table * 2)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = table

            def forward(self, x):
                return x * self.table
        """,
        # A parametrization runs at construction
        """
        class Doubled(nn.Module):
            def forward(self, weight):
                return weight * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                torch.nn.utils.parametrize.register_parametrization(self.fc, "weight", Doubled())

            def forward(self, x):
                return self.fc(x)
        """,
        # The same, by its own name
        """
        from torch.nn.utils.parametrize import register_parametrization

        class Doubled(nn.Module):
            def forward(self, weight):
                return weight * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                register_parametrization(self.fc, "weight", Doubled())

            def forward(self, x):
                return self.fc(x)
        """,
        # Buffers, conditions, and what is registered by name
        """
        class Model(nn.Module):
            def __init__(self, bias=True):
                super().__init__()
                self.register_buffer("scale", torch.arange(3.0))
                if bias:
                    self.bias = nn.Parameter(torch.rand(3))
                else:
                    self.register_parameter("bias", None)
                for i in range(2):
                    self.add_module(f"fc{i}", nn.Linear(3, 3))
                    setattr(self, f"norm{i}", nn.LayerNorm(3))

            def forward(self, x):
                return x * self.scale
        """,
        # What is added to a definition where it stands, by a call and by a decorator
        """
        class Registry(dict):
            def add(self, name, kind):
                self[name] = kind

            def named(self, name):
                return lambda kind: self.setdefault(name, kind)

        LAYERS = Registry()
        OTHERS = Registry()
        LAYERS.add("linear", nn.Linear)
        OTHERS.add("unused", nn.Linear)

        @LAYERS.named("twice")
        def twice(width):
            return nn.Sequential(*(LAYERS["linear"](width, width) for _ in range(2)))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = LAYERS["twice"](3)

            def forward(self, x):
                return self.layers(x)
        """,
        # The standard library in plain Python
        """
        import math
        from collections import OrderedDict
        from functools import partial

        class Model(nn.Module):
            def __init__(self, width=6):
                super().__init__()
                linear = partial(nn.Linear, width, bias=False)
                size = int(math.sqrt(4))
                self.layers = nn.Sequential(OrderedDict(a=linear(math.ceil(width / 4)), b=nn.Linear(size, 2)))
                self.scale = nn.Parameter(torch.full((2,), math.pi * math.log(width)))

            def forward(self, x):
                return self.layers(x) * self.scale
        """,
    ],
)
def test_the_slice_has_the_state_of_the_reference(code: str) -> None:
    header = "import torch\nimport torch.nn as nn\n"
    text = same_state(header + textwrap.dedent(code))
    modules = {name.split(".")[0] for line in ast.walk(ast.parse(text)) for name in _imported(line)}
    assert modules <= {"torch"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nn.Parameter(torch.ones(int(np.prod([2, width]))))", "math.prod([2, width])"),
        ("nn.Parameter(torch.ones(width) * np.cos(width))", "math.cos(width)"),
        ("nn.Parameter(torch.ones(2 if isinstance(width, (int, np.integer)) else 3))", "isinstance(width, (int,))"),
        ("nn.Parameter(torch.ones(2 if isinstance(width, np.ndarray) else 3))", "isinstance(width, ())"),
    ],
)
def test_numpy_numbers_are_written_with_math(line: str, said: str) -> None:
    text = same_state(f"import numpy as np\n{BLOCK}".replace("Block(width)", line))
    assert said in text and "np." not in text and ("import math" in text) == ("math." in said)


@pytest.mark.parametrize(
    "line",
    [
        "nn.Parameter(torch.from_numpy(np.linspace(0.0, 1.0, width)))",
        "nn.Parameter(torch.ones(int(np.asarray([2, width]).prod())))",
        # What one of its functions makes, another one takes.
        "nn.Parameter(torch.ones(2 if isinstance(np.int64(np.sqrt(width)), (int, np.integer)) else 3))",
    ],
)
def test_numpy_stays_with_all_its_uses_if_math_lacks_one(line: str) -> None:
    text = same_state(f"import numpy as np\n{BLOCK}".replace("Block(width)", line))
    assert "import numpy as np" in text and line in text and "import math" not in text


def test_additions_to_unneeded_objects_are_dropped() -> None:
    assert "OTHER" not in made(f"OTHER = []\nOTHER.append(nn.Linear)\n{BLOCK}")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def test_imports_of_torch_stay() -> None:
    code = BLOCK.replace("import torch.nn as nn", "import torch.nn as nn\nfrom torch.nn import Linear as L").replace(
        "nn.Linear(width", "L(width"
    )
    assert "from torch.nn import Linear as L" in made(code)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("self.n = einops.rearrange(torch.ones(4), '(a b) -> a b', a=2)", "einops"),
        ("self.n = nn.Parameter(torch.tensor(random.random()))", "random"),
        ("self.n = nn.Parameter(torch.from_numpy(np.random.rand(3)))", "numpy.random"),
        ("self.n = nn.Parameter(torch.from_numpy(np.load('n.npy')))", "numpy.load"),
    ],
)
def test_a_needed_package_is_named(line: str, named: str) -> None:
    code = f"import random\nimport einops\nimport numpy as np\n{BLOCK}".replace("self.block = Block(width)", line)
    with pytest.raises(NeedsImport, match=named):
        made(code, ("n",))


TURN = """
class Turn(nn.Module):
    def __init__(self, length):
        super(Turn, self).__init__()
        self.length = length

    def forward(self, x):
        return x.unflatten(0, (self.length, -1))


class Model("""


def test_an_empty_module_becomes_an_identity() -> None:
    code = BLOCK.replace("class Model(", TURN).replace("Block(width)", "nn.Sequential(Turn(width + 1))")
    text = made(code, ("block",))
    assert "self.block = nn.Sequential(nn.Identity())" in text and "class Turn" not in text


@pytest.mark.parametrize(
    "line", ["self.block = Turn(torch.rand(1))", "self.block = [Turn][0](width)", "self.n = Turn(width).length"]
)
def test_an_empty_module_stays_where_it_matters(line: str) -> None:
    code = BLOCK.replace("class Model(", TURN).replace("self.block = Block(width)", line)
    text = made(code, ("block", "n"))
    assert line in text and "class Turn" in text


def test_a_layer_that_removes_a_parameter_still_does() -> None:
    code = """
    import torch
    import torch.nn as nn


    class Model(nn.LayerNorm):
        def __init__(self, width):
            super().__init__(width)
            self.note = width
            self.bias = None
    """
    text = same_state(code, 4)
    assert "self.bias = None" in text and "note" not in text


def test_a_statement_without_a_definition_is_refused() -> None:
    with pytest.raises(NotTidied, match="statement at the top"):
        made(f"{BLOCK}\ntorch.manual_seed(0)\n")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (BLOCK, "self, x"),
        ("class A(nn.Module):\n    def forward(self, a, *, b: int = 3): pass\nclass Model(A): pass", "self, a, *, b=3"),
        ("class Model(nn.ReLU): pass", None),
        ("class Model(nn.Module):\n    @staticmethod\n    def forward(a, b): pass", "self, a, b"),
    ],
)
def test_the_signature_of_forward(code: str, expected: str | None) -> None:
    found = forward_of(code)
    assert (ast.unparse(found.args) if found is not None else None) == expected


def test_the_reference_forward_is_dropped_even_if_a_parametrization_keeps_other_forwards() -> None:
    code = """
        class Doubled(nn.Module):
            def forward(self, weight):
                return weight * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                torch.nn.utils.parametrize.register_parametrization(self.fc, "weight", Doubled())

            def prepared(self, x):
                return x + 1

            def forward(self, x):
                return self.fc(self.prepared(x))
    """
    found = slice_constructor("import torch\nfrom torch import nn\n" + textwrap.dedent(code), ["fc.bias"], ["fc"])
    assert "def forward" in ast.unparse(found.definitions[0])
    assert [node.name for node in found.entry.body if isinstance(node, ast.FunctionDef)] == ["__init__"]


def test_definitions_named_in_the_arguments_stay() -> None:
    text = same_state(
        """
        from functools import partial
        import torch
        import torch.nn as nn

        class Scaled(nn.Module):
            def __init__(self, n, factor):
                super().__init__()
                self.weight = nn.Parameter(torch.full((n,), float(factor)))

        class Model(nn.Module):
            def __init__(self, make):
                super().__init__()
                self.make = make(8)

        def get_init_inputs():
            return [partial(Scaled, factor=3)]
        """,
        lambda n: torch.nn.Linear(n, 1),
    )
    assert text.splitlines()[0] == "from functools import partial" and "class Scaled" in text
