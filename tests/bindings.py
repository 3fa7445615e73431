"""Modules whose graph arguments are easily confused: equal shapes, equal values, shared and tied weights, one name in
several places, use in another order. Each has its calls, and the expected binding of each argument of its graph.
"""

from __future__ import annotations

from modules import Call, source, whole

from kernelquarry.pipeline.schema.records import Source

X = Call({"x": (6, 8)})
NORM = ("running_mean", "running_var", "num_batches_tracked")
P, B, C, I = Source.PARAMETER, Source.BUFFER, Source.CONSTANT, Source.INPUT  # noqa: E741

Bound = tuple[str, list[Call], list[tuple[Source, str]]]
BOUND: dict[str, Bound] = {
    "parameters of one shape, used in another order": (
        source(
            "(x * self.c + self.a) / (1 + self.b * self.b)",
            "for name in 'abc':\n    setattr(self, name, nn.Parameter(torch.rand(8)))",
        ),
        [X],
        [(P, "a"), (P, "b"), (P, "c"), (I, "0")],
    ),
    "parameters, buffers and constants of one shape": (
        source(
            "(x * self.constant + self.buffer) / (1 + self.parameter * self.parameter)",
            "self.constant = torch.linspace(1, 2, 8)\nself.register_buffer('buffer', torch.rand(8))\n"
            "self.parameter = nn.Parameter(torch.rand(8))",
        ),
        [X],
        [(P, "parameter"), (B, "buffer"), (C, "constant"), (I, "0")],
    ),
    "parameters that a list has, too": (
        source(
            "(x * self.listed[1] + self.listed[0]) / (1 + self.a * self.a)",
            "self.listed = [nn.Parameter(torch.rand(8)) for _ in range(2)]\n"
            "self.a, self.b = self.listed",
        ),
        [X],
        [(P, "a"), (P, "b"), (I, "0")],
    ),
    "inputs of one shape, used in another order": (
        source("(z * 2 + x) / (1 + y * y)", signature="x, y, z"),
        [Call({"x": (6, 8), "y": (6, 8), "z": (6, 8)})],
        [(I, "0"), (I, "1"), (I, "2")],
    ),
    "keywords in another order than the signature": (
        source("(z * 2 + x) / (1 + y * y)", signature="x, *, y, z"),
        [Call({"x": (6, 8), "y": (6, 8), "z": (6, 8)}, [{"tensor": 1}], {"z": {"tensor": 0}, "y": {"tensor": 2}})],
        [(I, "0"), (I, "1"), (I, "2")],
    ),
    "one tensor as two arguments": (
        source("x * 2 - y.abs()", signature="x, y"),
        [Call({"x": (6, 8)}, [{"tensor": 0}, {"tensor": 0}])],
        [(I, "0")],
    ),
    "a square matrix and its transpose": (
        source("torch.relu(x @ self.a.T) @ self.b",
               "for n in 'ab':\n    setattr(self, n, nn.Parameter(torch.rand(8, 8)))"),
        [X],
        [(P, "a"), (P, "b"), (I, "0")],
    ),
    "a parameter used twice": (
        source("F.linear(x, self.weight).relu() @ self.weight", "self.weight = nn.Parameter(torch.rand(8, 8))"),
        [X],
        [(P, "weight"), (I, "0")],
    ),
    "a layer used twice": (
        source("self.fc(self.fc(x).relu())", "self.fc = nn.Linear(8, 8)"),
        [X],
        [(P, "fc.weight"), (P, "fc.bias"), (I, "0")],
    ),
    "tied weights, bound once by their first name": (
        source(
            "self.b(self.a(x).relu())",
            "self.a = nn.Linear(8, 8)\nself.b = nn.Linear(8, 8)\nself.b.weight = self.a.weight",
        ),
        [X],
        [(P, "a.weight"), (P, "a.bias"), (P, "b.bias"), (I, "0")],
    ),
    "layers of one shape in lists and dicts": (
        source(
            "self.parts['last'](self.layers[1](x).relu() + self.layers[0](x))",
            "self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))\n"
            "self.parts = nn.ModuleDict({'last': nn.Linear(8, 8, bias=False)})",
        ),
        [X],
        [
            *((P, f"layers.{i}.{name}") for i in range(2) for name in ("weight", "bias")),
            (P, "parts.last.weight"),
            (I, "0"),
        ],
    ),
    "constants in attributes, lists and dicts": (
        source(
            "x * self.parts[1] + self.named['b'] - self.named['a'] * self.one",
            "self.one = torch.rand(8)\nself.parts = [torch.rand(8), torch.rand(8)]\n"
            "self.named = {'b': torch.rand(8), 'a': torch.rand(8)}",
        ),
        [X],
        [(C, "one"), (C, "parts[0]"), (C, "parts[1]"), (C, "named['b']"), (C, "named['a']"), (I, "0")],
    ),
    "three layers of one shape, called in another order": (
        source("self.b(self.c(self.a(x).relu()).tanh())", "for n in 'abc':\n    setattr(self, n, nn.Linear(8, 8))"),
        [X],
        [*((P, f"{layer}.{name}") for layer in "abc" for name in ("weight", "bias")), (I, "0")],
    ),
    "one layer under two names": (
        source(
            "self.second(self.other(self.first(x).relu()))",
            "self.first = nn.Linear(8, 8)\nself.other = nn.Linear(8, 8)\nself.second = self.first",
        ),
        [X],
        [(P, "first.weight"), (P, "first.bias"), (P, "other.weight"), (P, "other.bias"), (I, "0")],
    ),
    "a layer twice in a list, another between": (
        source(
            "for layer in self.layers:\n    x = layer(x).tanh()\nreturn x",
            "a, b = nn.Linear(8, 8), nn.Linear(8, 8)\nself.layers = nn.ModuleList([a, b, a])",
        ),
        [X],
        [*((P, f"layers.{i}.{name}") for i in range(2) for name in ("weight", "bias")), (I, "0")],
    ),
    "a weight tied across two modules that call it otherwise": (
        source(
            "self.out(self.embed(x).relu() - self.out.bias)",
            "self.embed = nn.Embedding(8, 8)\nself.out = nn.Linear(8, 8)\nself.out.weight = self.embed.weight",
        ),
        [Call({"x": whole((6, 5), 8)})],
        [(P, "embed.weight"), (P, "out.bias"), (I, "0")],
    ),
    "a buffer that starts as a parameter's copy": (
        source(
            "(x - self.weight) * self.start + self.weight * self.weight",
            "self.weight = nn.Parameter(torch.rand(8))\nself.register_buffer('start', self.weight.detach().clone())",
        ),
        [X],
        [(P, "weight"), (B, "start"), (I, "0")],
    ),
    "two norms whose eight vectors have one shape": (
        source("self.a(self.b(x).relu())", "self.a = nn.BatchNorm1d(8)\nself.b = nn.BatchNorm1d(8)"),
        [X],
        [*((P, f"{norm}.{name}") for norm in "ab" for name in ("weight", "bias")),
         *((B, f"{norm}.{name}") for norm in "ab" for name in NORM), (I, "0")],
    ),
    "scale and shift in each other's role": (
        source("F.layer_norm(F.layer_norm(x, (8,), self.a, self.b), (8,), self.b, self.a)",
               "for n in 'ab':\n    setattr(self, n, nn.Parameter(torch.rand(8)))"),
        [X],
        [(P, "a"), (P, "b"), (I, "0")],
    ),
    "a cell whose two matrices have one shape": (
        source("self.cell(x)", "self.cell = nn.RNNCell(8, 8)"),
        [X],
        [*((P, f"cell.{name}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")), (I, "0")],
    ),
    "two recurrent layers": (
        source("self.rnn(x)[0]", "self.rnn = nn.GRU(4, 4, 2)"),
        [Call({"x": (3, 2, 4)})],
        [*((P, f"rnn.{name}_l{layer}") for layer in range(2)
           for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")), (I, "0")],
    ),
    "attention with four square projections": (
        source(
            """
            v, q, k = self.v(x), self.q(x), self.k(x)
            return self.o(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
            """,
            "for n in 'koqv':\n    setattr(self, n, nn.Linear(8, 8, bias=False))",
        ),
        [X],
        [*((P, f"{name}.weight") for name in "koqv"), (I, "0")],
    ),
    "one matrix that is three, in another order": (
        source(
            "k, v, q = F.linear(x, self.weight).chunk(3, -1)\nreturn torch.softmax(q @ k.T, -1) @ v",
            "self.weight = nn.Parameter(torch.rand(24, 8))",
        ),
        [X],
        [(P, "weight"), (I, "0")],
    ),
    "a list of parameters, from behind": (
        source(
            """
            for weight in reversed(self.weights):
                x = torch.tanh(x @ weight)
            return x * self.named["b"] + self.named["a"]
            """,
            "self.weights = nn.ParameterList(torch.rand(8, 8) for _ in range(3))\n"
            "self.named = nn.ParameterDict({'b': torch.rand(8), 'a': torch.rand(8)})",
        ),
        [X],
        [*((P, f"weights.{i}") for i in range(3)), (P, "named.a"), (P, "named.b"), (I, "0")],
    ),
    "two convolutions, one of them for both inputs": (
        source(
            "self.b(self.a(x)) - self.a(y)", signature="x, y",
            layers="self.b = nn.Conv1d(4, 4, 3, padding=1)\nself.a = nn.Conv1d(4, 4, 3, padding=1)",
        ),
        [Call({"x": (2, 4, 9), "y": (2, 4, 9)})],
        [*((P, f"{layer}.{name}") for layer in "ba" for name in ("weight", "bias")), (I, "0"), (I, "1")],
    ),
    "a parameter of the input's shape": (
        source("self.w @ x - x @ self.w", "self.w = nn.Parameter(torch.rand(8, 8))"),
        [Call({"x": (8, 8)})],
        [(P, "w"), (I, "0")],
    ),
    "a list of inputs, from behind": (
        source("last, first = xs[-1], xs[0]\nreturn last * 2 - first * xs[1].abs()", signature="xs"),
        [Call({"a": (6, 8), "b": (6, 8), "c": (6, 8)}, [[{"tensor": 2}, {"tensor": 0}, {"tensor": 1}]])],
        [(I, "0"), (I, "1"), (I, "2")],
    ),
    "a dict of inputs": (
        source("of['y'] - of['x'] * 2", signature="of"),
        [Call({"x": (6, 8), "y": (6, 8)}, [{"y": {"tensor": 0}, "x": {"tensor": 1}}])],
        [(I, "0"), (I, "1")],
    ),
    "indices in a buffer and in an input": (
        source(
            "self.table[index] * 2 - self.table[self.index]", signature="index",
            layers="self.table = nn.Parameter(torch.rand(9))\n"
            "self.register_buffer('index', torch.tensor([4, 1, 3, 0, 2]))",
        ),
        [Call({"index": whole((5,), 9)})],
        [(P, "table"), (B, "index"), (I, "0")],
    ),
    "a buffer in no state, a constant and a parameter of the same values": (
        source(
            "x * self.a + self.b / (2 + self.c)",
            "self.c = nn.Parameter(torch.ones(8))\nself.b = torch.full((8,), 2.0)\n"
            "self.register_buffer('a', torch.full((8,), 3.0), persistent=False)",
        ),
        [X],
        [(P, "c"), (B, "a"), (C, "b"), (I, "0")],
    ),
    "a norm and a direction": (
        source("self.fc(x)", "self.fc = nn.utils.parametrizations.weight_norm(nn.Linear(8, 1), dim=None)"),
        [X],
        [(P, "fc.bias"), *((P, f"fc.parametrizations.weight.original{i}") for i in range(2)), (I, "0")],
    ),
    "children that are called by numbers, out of order": (
        source(
            "for name in ('1', '0', '2'):\n    x = self.get_submodule(name)(x).tanh()\nreturn x",
            "for name in '201':\n    self.add_module(name, nn.Linear(8, 8, bias=False))",
        ),
        [X],
        [(P, "2.weight"), (P, "0.weight"), (P, "1.weight"), (I, "0")],
    ),
    "names that look like each other": (
        source(
            "(x * self.w_1 + self.w1) / (2 + self.w / self.part.w) - self.part_w",
            "for n in ('w', 'w1', 'w_1', 'part_w'):\n    setattr(self, n, nn.Parameter(torch.rand(8)))\n"
            "self.part = nn.Module()\nself.part.w = nn.Parameter(torch.rand(8))",
        ),
        [X],
        [*((P, name) for name in ("w", "w1", "w_1", "part_w", "part.w")), (I, "0")],
    ),
    "nested modules with the same names": (
        source(
            "self.block.block.fc(self.fc(x).relu()) - self.block.fc(x)",
            "self.block = Block(Block(None))\nself.fc = nn.Linear(8, 8)",
            helpers="""
            class Block(nn.Module):
                def __init__(self, block):
                    super().__init__()
                    self.fc = nn.Linear(8, 8)
                    self.block = block
            """,
        ),
        [X],
        [*((P, f"{path}.{name}") for path in ("block.fc", "block.block.fc", "fc") for name in ("weight", "bias")),
         (I, "0")],
    ),
    "buffers with the name of their parent's": (
        source(
            "(x - self.mean) * self.part.mean + self.part.part.mean.exp()",
            "self.register_buffer('mean', torch.rand(8))\nself.part = Part(Part(None))",
            helpers="""
            class Part(nn.Module):
                def __init__(self, part):
                    super().__init__()
                    self.register_buffer("mean", torch.rand(8))
                    self.part = part
            """,
        ),
        [X],
        [(B, "mean"), (B, "part.mean"), (B, "part.part.mean"), (I, "0")],
    ),
    "scalars": (
        source(
            "torch.tanh(x * self.gain + self.shift) ** 2 * self.scale - self.limit",
            "for n in ('scale', 'gain', 'limit', 'shift'):\n    setattr(self, n, nn.Parameter(torch.rand(())))",
        ),
        [X],
        [*((P, name) for name in ("scale", "gain", "limit", "shift")), (I, "0")],
    ),
    "two results from layers of one shape": (
        source("self.b(x), self.a(x).relu()", "for n in 'ab':\n    setattr(self, n, nn.Linear(8, 8))"),
        [X],
        [*((P, f"{layer}.{name}") for layer in "ab" for name in ("weight", "bias")), (I, "0")],
    ),
    "experts, each taken from behind": (
        source(
            "gates = self.gate(x).softmax(-1)\n"
            "return sum(gates[:, i, None] * e(x) for i, e in enumerate(reversed(self.experts)))",
            "self.gate = nn.Linear(8, 3, bias=False)\n"
            "self.experts = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(3))",
        ),
        [X],
        [(P, "gate.weight"), *((P, f"experts.{i}.weight") for i in range(3)), (I, "0")],
    ),
}  # fmt: skip
