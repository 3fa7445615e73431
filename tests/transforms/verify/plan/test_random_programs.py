"""Random programs of the language, evaluated and run by Python: both must launch, return and raise the same."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton

from kernelquarry.filters.language import check
from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.sandbox.executor.program import View
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.transforms.verify.plan import PlannedCall, Planner, Raised

_STATELESS: dict[str, Any] = {
    "root": 0,
    "modules": [{"class": "ModelNew", "attributes": [], "layers": []}],
    "tensors": [],
    "storages": [],
    "entries": [],
}
_KERNEL = """import functools
import math

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, n, flag=False, BLOCK: tl.constexpr = 64):
    pass


"""
_BATCHES, _PROGRAMS = 4, 40
_SHAPES = ((3, 5), (8, 4), (1, 7))


class Generator:
    """Writes programs. Variables are a, b (numbers), p, q (lists), d (dict) and x, t, u (tensors)."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def program(self) -> str:
        """Functions and the class of a candidate, without imports and kernels."""
        helper = f"def helper(n, m=2, *rest, scale=1):\n    {self.condition_of_helper()}\n    return n - m * scale\n"
        start = "a, b = x.shape\np, q, d = [a, 2, 3], [b], {'k': a, 'l': 4}\nt, u = x, x.t()\n"
        body = start + self.block(6, 2) + "return a, b, p, q, d, t, u"
        return f"{helper}\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n{_indented(body, 2)}\n"

    def condition_of_helper(self) -> str:
        return self.pick(
            "if n > 9:\n        return len(rest)", "assert n != 12", "n += len(rest)", "n = n if m else -n"
        )

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def one_of(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def block(self, statements: int, depth: int) -> str:
        return "".join(self.statement(depth) + "\n" for _ in range(self.random.randint(1, statements)))

    def statement(self, depth: int) -> str:
        number, items, tensor = self.pick("a", "b"), self.pick("p", "q"), self.pick("t", "u")
        plain = (
            lambda: f"{number} = {self.number(3)}",
            lambda: f"{number} {self.pick('+=', '-=', '*=', '//=', '%=', '|=')} {self.number(2)}",
            lambda: f"{items} = {self.items(2)}",
            lambda: f"{items} += {self.items(1)}",
            lambda: f"{tensor} = {self.tensor(3)}",
            lambda: f"({number}, *{items}) = {self.items(2)}",
            lambda: f"d = {{'k': {self.number(2)}, **d}}",
            lambda: f"{tensor}, {number} = {self.tensor(2)}, {self.number(1)}",
            lambda: f"assert {self.condition(2)}, {number}",
            lambda: f"kernel[({self.number(2)},)]({self.tensor(2)}, {self.number(2)}, {self.condition(1)})",
            lambda: f"kernel[lambda meta: (meta['n'], meta['BLOCK'])]({tensor}, n={self.number(2)}, num_warps=8)",
        )
        if not depth:
            return self.one_of(*plain)
        nested = (
            lambda: f"if {self.condition(2)}:\n{self.inner(depth)}\nelse:\n{self.inner(depth)}",
            lambda: f"if {self.condition(2)}:\n{self.inner(depth)}\nelif {self.condition(1)}:\n{self.inner(depth)}",
            lambda: f"for {number} in {self.items(2)}[:4]:\n{self.inner(depth, loop=True)}\nelse:\n{self.inner(depth)}",
            lambda: (
                f"for i, {number} in enumerate({self.items(1)}):\n    if i > 3:\n        break\n{self.inner(depth)}"
            ),
            lambda: f"def inner(n, a={self.pick('0', '4')}):\n    return n + a + b\n{number} = inner({self.number(1)})",
            lambda: f"with torch.no_grad():\n{self.inner(depth)}",
            lambda: f"new = [{self.number(1)}]\nnew.append({self.number(1)})\nnew[0] = {self.number(1)}\n{items} = new",
        )
        return self.one_of(*plain, *nested)

    def inner(self, depth: int, loop: bool = False) -> str:
        leave = f"\nif {self.condition(1)}:\n    {self.pick('break', 'continue')}\n" if loop else ""
        return _indented(self.block(2, depth - 1).rstrip() + leave.rstrip(), 1)

    def number(self, depth: int) -> str:
        if not depth:
            return self.pick("a", "b", "len(p)", "len(q)", "x.shape[0]", "t.ndim", *map(str, range(-1, 7)))
        inner, other = functools.partial(self.number, depth - 1), functools.partial(self.number, depth - 1)
        return self.one_of(
            lambda: f"({inner()} {self.pick('+', '-', '*', '//', '%', '&', '^')} {other()})",
            lambda: f"{self.pick('min', 'max')}({inner()}, {other()})",
            lambda: f"({inner()} if {self.condition(depth - 1)} else {other()})",
            lambda: f"sum({self.items(depth - 1)})",
            lambda: f"{self.items(depth - 1)}[{self.pick('0', '-1', '1', 'a')}]",
            lambda: f"abs({inner()}) ** 2",
            lambda: f"triton.cdiv({inner()}, {other()})",
            lambda: f"triton.next_power_of_2(abs({inner()}) % 99)",
            lambda: f"math.prod({self.tensor(1)}.shape)",
            lambda: f"helper({inner()}, {self.pick('', 'm=')}{other()})",
            lambda: f"helper(*{self.items(depth - 1)}, scale={inner()})",
            lambda: f"(lambda n, m=3: n * m - a)({inner()})",
            lambda: f"functools.reduce(lambda n, m: n - m, {self.items(depth - 1)}, {inner()})",
            lambda: f"d.get({self.pick(repr('k'), repr('z'))}, {inner()})",
            lambda: f"divmod({inner()}, {other()})[{self.pick('0', '1')}]",
            lambda: f"{self.tensor(1)}.{self.pick('numel()', 'dim()', 'stride(0)', 'size(-1)', 'element_size()')}",
            lambda: f"int({self.condition(depth - 1)})",
        )

    def condition(self, depth: int) -> str:
        numbers = [self.number(max(0, depth - 1)) for _ in range(3)]
        comparisons = [self.pick("<", "<=", "==", "!=", ">", ">=") for _ in range(2)]
        simple = (
            lambda: f"{numbers[0]} {comparisons[0]} {numbers[1]}",
            lambda: f"{numbers[0]} {comparisons[0]} {numbers[1]} {comparisons[1]} {numbers[2]}",
            lambda: f"{numbers[0]} {self.pick('in', 'not in')} {self.items(0)}",
            lambda: f"{self.tensor(1)}.is_contiguous()",
            lambda: f"isinstance({self.pick('a', 'p', 'd', 't')}, {self.pick('int', 'list', '(dict, torch.Tensor)')})",
            lambda: f"{self.pick('a', 't', 'None')} is {self.pick('', 'not ')}None",
            lambda: f"{self.pick('any', 'all')}(n > 1 for n in {self.items(0)})",
        )
        if not depth:
            return f"({self.one_of(*simple)})"
        joined = (
            lambda: f"{self.condition(depth - 1)} {self.pick('and', 'or')} {self.condition(depth - 1)}",
            lambda: f"not {self.condition(depth - 1)}",
        )
        return f"({self.one_of(*simple, *joined)})"

    def items(self, depth: int) -> str:
        if not depth:
            return self.pick("p", "q", "[a, b]", "[*x.shape]", "[]")
        inner = functools.partial(self.items, depth - 1)
        return self.one_of(
            lambda: f"[{self.number(depth - 1)}, *{inner()}]",
            lambda: f"[n + {self.number(0)} for n in {inner()} if n % 3]",
            lambda: f"[n * m for n in {inner()}[:3] for m in range(2)]",
            lambda: f"({inner()} + {inner()})[{self.pick('1:', ':-1', '::2', '::-1')}]",
            lambda: f"sorted({inner()}, key=lambda n: -n)",
            lambda: f"list(range({self.number(0)} % 9))",
            lambda: f"[n for _, n in zip({inner()}, {inner()})]",
            lambda: "list(d.values())",
            lambda: f"list(reversed({inner()}))",
        )

    def tensor(self, depth: int) -> str:
        if not depth:
            return self.pick("x", "t", "u")
        inner = functools.partial(self.tensor, depth - 1)
        return self.one_of(
            lambda: f"{inner()}.{self.pick('t()', 'T', 'flatten()', 'contiguous()', 'mT', 'clone()', 'unsqueeze(0)')}",
            lambda: f"{inner()}.{self.pick('view', 'reshape')}({self.pick('-1', 'a, b', 'b, -1', '1, -1')})",
            lambda: f"{inner()}[{self.pick('1:', '0', ':, ::2', '..., None', '-1:', 'a')}]",
            lambda: f"torch.empty(({self.pick('a', '2')}, abs({self.number(0)}) % 9), device=x.device)",
            lambda: f"torch.{self.pick('empty_like', 'zeros_like')}({inner()})",
            lambda: f"{inner()}.new_full(({self.pick('a', '3')},), {self.pick('0', '1.5')})",
            lambda: f"{inner()}.expand({self.pick('2, -1, -1', '-1, 4', '1, -1, -1')})",
            lambda: f"{inner()}.{self.pick('permute(1, 0)', 'transpose(0, -1)', 'squeeze()', 'narrow(0, 0, 1)')}",
            lambda: f"{inner()}.{self.pick('split(2)[0]', 'unbind(0)[-1]', 'select(0, 0)', 'chunk(2, -1)[0]')}",
            lambda: f"{inner()}.to({self.pick('torch.float16', 'torch.int32', 'x.device', 'x.dtype')})",
        )


def _indented(text: str, levels: int) -> str:
    return "\n".join("    " * levels + line for line in text.splitlines())


class _Launcher:
    """A kernel that records what it is launched with."""

    def __init__(self) -> None:
        self.launches: list[Any] = []

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(x: Any, n: int, flag: bool = False, BLOCK: int = 64, **options: Any) -> None:
            bound = {"x": x, "n": n, "flag": flag, "BLOCK": BLOCK}
            sizes = grid(bound) if callable(grid) else grid
            if 0 not in sizes:
                self.launches.append((tuple(sizes), *map(_plain, bound.values()), options))

        return launch


def _plain(value: Any) -> Any:
    """A value as data: tensors as their layout."""
    if isinstance(value, torch.Tensor | View):
        strides = value.strides if isinstance(value, View) else value.stride()
        offset = value.offset if isinstance(value, View) else value.storage_offset()
        return str(value.dtype), tuple(value.shape), tuple(strides), offset
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def run(program: str, shape: tuple[int, ...]) -> Any:
    """Launches and result of Python; the word "raises" if it raises."""
    kernel = _Launcher()
    namespace: dict[str, Any] = {"torch": torch, "nn": torch.nn, "math": math, "functools": functools, "kernel": kernel}
    namespace["triton"] = triton
    exec(program, namespace)
    try:
        result = namespace["ModelNew"]().forward(torch.zeros(shape))
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        NameError,
        RuntimeError,
        TypeError,
        ValueError,
    ):
        return "raises"
    return kernel.launches, _plain(result)


def evaluate(program: str, shape: tuple[int, ...]) -> Any:
    """The same by the evaluator."""
    planner = Planner(Source(_KERNEL + program), _STATELESS)
    try:
        plan = planner.plan(PlannedCall('[{"tensor": 0}]', "{}", (InputSpec(shape, "float32"),)))
    except Raised:
        return "raises"
    launches = [(each.grid, *map(_plain, each.arguments.values()), dict(each.options)) for each in plan.launches]
    return launches, _tree(plan.tree, plan.outputs)


def _tree(tree: Any, outputs: tuple[View, ...]) -> Any:
    ((kind, content),) = tree.items()
    if kind == "dict":
        return {key: _tree(value, outputs) for key, value in content}
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(_tree(each, outputs) for each in content)
    return _plain(outputs[content]) if kind == "tensor" else content


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_random_programs(batch: int) -> None:
    returned = inside = 0
    for seed in range(batch * _PROGRAMS, (batch + 1) * _PROGRAMS):
        program = Generator(seed).program()
        inside += check(_KERNEL + program) is None
        for shape in _SHAPES:
            expected = run(program, shape)
            assert evaluate(program, shape) == expected, f"seed {seed}, shape {shape}:\n{program}"
            returned += expected != "raises"
    assert returned > _PROGRAMS, "most programs raise: they compare nothing"
    assert inside > _PROGRAMS // 2, "most programs are outside of the language"
