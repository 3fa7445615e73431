"""Plans of small candidates, from their text and the shapes of their inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.sandbox.executor.program import Copy, Fill
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.transforms.verify.plan import Plan, PlannedCall, Planner, Raised, Unsupported

_HEAD = """import functools
import math

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def copy(x, out, n, scale=1.0, BLOCK: tl.constexpr = 64):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
"""
_STATELESS: dict[str, Any] = {
    "root": 0,
    "modules": [{"class": "ModelNew", "attributes": [], "layers": []}],
    "tensors": [],
    "storages": [],
    "entries": [],
}


def plan_of(body: str, shape: tuple[int, ...] = (3, 5), head: str = _HEAD, **options: Any) -> Plan:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    planner = Planner(Source(head + lines), options.pop("snapshot", _STATELESS))
    return planner.plan(PlannedCall('[{"tensor": 0}]', "{}", (InputSpec(shape, "float32"),), **options))


def test_a_launch_has_its_grid_and_arguments() -> None:
    plan = plan_of(
        "out = torch.empty_like(x)\n"
        "copy[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']), 2)](x, out, x.numel(), num_warps=8)\n"
        "return out.view(-1)"
    )
    assert plan.launch_log() == (
        "copy[1, 2, 1](x=float32(input 0, [3, 5], [5, 1], 0), out=float32(1, [3, 5], [5, 1], 0), n=15, scale=1.0, "
        "BLOCK=64, num_warps=8)",
    )
    assert [storage.size_bytes for storage in plan.storages] == [60, 60]
    assert plan.tree == {"tensor": 0} and plan.outputs[0].shape == (15,)
    assert plan.operators == ()


def test_fills_copies_and_operators_are_steps() -> None:
    plan = plan_of("out = torch.full((2, 3), 7.0, device=x.device)\nreturn x.t().contiguous(), out, torch.relu(x)")
    fill, copy, relu = plan.steps
    assert isinstance(fill, Fill) and fill.value == 7.0 and fill.target.shape == (2, 3)
    assert isinstance(copy, Copy) and copy.source.strides == (1, 5) and copy.target.strides == (3, 1)
    assert plan.operators == ("aten.relu",) and relu.outputs[0].shape == (3, 5)  # type: ignore[union-attr]


def test_outputs_share_memory_with_inputs_and_each_other() -> None:
    assert plan_of("out = torch.empty_like(x)\nreturn x[1:], out, out[0]").shares() == ("input 0", "", "output 1")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("math.prod(x.shape)", 15),
        ("[a * b for a in range(3) for b in range(a) if b != 1]", [0, 0]),
        ("functools.reduce(lambda a, b: a - b, x.shape, 1)", -7),
        ("dict(zip('ab', x.stride())) | {'c': x.dim()}", {"a": 5, "b": 1, "c": 2}),
        ("[*map(lambda a, b: a * b, x.shape, map(int, '23'))]", [6, 15]),
        ("max(4, triton.next_power_of_2(x.shape[1]))", 8),
        ("1 < x.shape[0] < 3 or 'else'", "else"),
        ("(lambda a, *b, c=2, **d: (a, b, c, d))(1, 2, 3, e=4)", (1, (2, 3), 2, {"e": 4})),
        ("sorted(x.shape, key=lambda n: -n)", [5, 3]),
        ("[x.dtype in {torch.float16, torch.float32}, x.dim() not in {2, 3}]", [True, False]),
        ("[*x.shape, -x.shape[0] // 2, 7 % -3, 2 ** -1]", [3, 5, -2, -2, 0.5]),
    ],
)
def test_expressions_have_the_values_of_python(expression: str, value: Any) -> None:
    tree = plan_of(f"return ({expression},)").tree["tuple"][0]
    assert _value(tree) == value


def _value(tree: Any) -> Any:
    ((kind, content),) = tree.items()
    if kind == "dict":
        return {key: _value(value) for key, value in content}
    items = {"tuple": tuple, "list": list}
    return items[kind](map(_value, content)) if kind in items else content


def test_statements_follow_python() -> None:
    body = """total, kinds = 0, []
for n in range(10):
    if n % 2:
        continue
    if n > 6:
        break
    total += n
else:
    total = -1
while total > 10:
    total -= 7
(first, *rest), last = [1, 2, 3], 4
kinds.append(total)
def add(n, to=kinds):
    to += [n]
    return to
return add(len(rest)), last"""
    assert _value(plan_of(body).tree) == ([5, 2], 4)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if x.shape[0] != 4:\n    raise ValueError('no')\nreturn x", "ValueError"),
        ("assert x.is_contiguous() and x.ndim == 3\nreturn x", "AssertionError"),
        ("return x.view(4, 4)", "RuntimeError"),
        ("copy[(1,)](x)\nreturn x", "missing arguments: out, n"),
        ("copy[(1,)](x, torch.empty(3), 3)\nreturn x", "on the CPU"),
        ("return [1, 2][x.shape[0]]", "IndexError"),
    ],
)
def test_a_plan_raises_where_python_would(body: str, message: str) -> None:
    with pytest.raises(Raised, match=message):
        plan_of(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return x if x.sum() > 0 else -x", "condition on a tensor"),
        ("return x.data_ptr()", "data_ptr"),
        ("return open('/etc/passwd')", "open"),
        ("return x.__class__", "__class__"),
        ("while True:\n    pass", "steps"),
        ("return 10 ** 10 ** 10", "bits"),
        ("return [0] * 10 ** 9", "items"),
        ("p = [1]\nwhile True:\n    p += p", "items"),
        ("p = []\nwhile True:\n    p += [[0] * 50_000]", "steps"),
        ("s = 'a'\nwhile True:\n    s = s + s", "items"),
        ("import_ = [*range(10 ** 9)]", "items"),
        ("return math.factorial(10 ** 6)", "so large"),
        ("return x.expand(10 ** 9, 3, 5).unbind(0)", "parts"),
        ("return x.expand(10 ** 9, 3, 5).split(2)", "parts"),
        ("return x.expand(10 ** 9, 3, 5).chunk(chunks=10 ** 8)", "parts"),
        ("return [*zip(x.expand(10 ** 9, 3, 5))]", "so large"),
        ("f = lambda g: g(g)\nreturn f(f)", "nested"),
    ],
)
def test_code_outside_of_the_evaluator_has_no_plan(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        plan_of(body)


def test_strided_inputs_begin_inside_their_memory() -> None:
    plan = plan_of("copy[(1,)](x, x, 1)\nreturn x", (2, 3), strided=True)
    assert "x=float32(input 0, [2, 3], [1, 3], 0)" in plan.launch_log()[0]


_TUNED = """import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune([triton.Config({"BLOCK": n}, num_warps=n // 16) for n in (16, 32, 64)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def copy(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
"""


def test_a_tuner_selects_by_trial_and_keeps_its_selection() -> None:
    planner = Planner(Source(f"{_TUNED}        copy[lambda meta: (meta['BLOCK'],)](x, x.numel())\n"), _STATELESS)

    def logged(size: int, trial: int) -> str:
        call = PlannedCall('[{"tensor": 0}]', "{}", (InputSpec((size,), "float32"),), trial=trial)
        return planner.plan(call).launch_log()[0]

    assert "[32, 1, 1]" in logged(64, 1) and "BLOCK=32" in logged(64, 1) and "EVEN=True" in logged(64, 1)
    assert "BLOCK=32" in logged(64, 2)  # the key is the same
    assert "BLOCK=64" in logged(65, 2) and "EVEN=False" in logged(65, 2)


_LINEAR = {"class": "torch.nn.Linear", "attributes": [["weight", {"tensor": 0}], ["bias", None]], "layers": []}
_WEIGHT = {
    "tensors": [{"storage": 0, "dtype": "float32", "shape": [7, 5], "strides": [5, 1], "offset": 0, "host": False}],
    "storages": [140],
}


def test_state_comes_from_the_snapshot() -> None:
    snapshot: dict[str, Any] = {
        "root": 0,
        "modules": [
            {"class": "ModelNew", "attributes": [["proj", {"module": 1}], ["eps", {"float": "0x1p-3"}]],
             "layers": ["proj"]},
            _LINEAR,
        ],
        **_WEIGHT,
        "entries": [["proj.weight", 0]],
    }  # fmt: skip
    plan = plan_of("copy[(1,)](x, self.proj.weight, 0, self.eps)\nreturn self.proj(x)", snapshot=snapshot)
    assert "out=float32(state proj.weight, [7, 5], [5, 1], 0), n=0, scale=0.125" in plan.launch_log()[0]
    assert plan.operators == ("aten.mm",) and plan.outputs[0].shape == (3, 7)


def test_parameters_have_names_and_layers_have_types() -> None:
    snapshot: dict[str, Any] = {
        "root": 0,
        "modules": [
            {"class": "ModelNew", "attributes": [["proj", {"module": 1}]], "layers": ["proj"]},
            _LINEAR,
        ],
        **_WEIGHT,
        "entries": [["proj.weight", 0]],
    }  # fmt: skip
    kinds = "isinstance(self.proj, nn.Linear) and not isinstance(self.proj, (nn.ReLU, nn.Conv2d))"
    loop = "for i, each in enumerate([self.proj]):\n    assert not i and isinstance(each, nn.Linear)"
    body = f"assert {kinds}\n{loop}\nn = 't'\ncopy[(1,)](x, getattr(self.proj, f'weigh{{n}}'), 0)"
    assert "out=float32(state proj.weight, [7, 5], [5, 1], 0)" in plan_of(body, snapshot=snapshot).launch_log()[0]
    for name in ("f'weight_{n}'", "'weight_' + str(n)"):
        with pytest.raises(Unsupported, match="getattr of weight_2, which is no parameter"):
            plan_of(f"n = 2\nreturn getattr(self.proj, {name})", snapshot=snapshot)


def test_static_methods_take_no_self() -> None:
    static = "    @staticmethod\n    def _flat(x):\n        return x.view(-1)\n\n"
    head = _HEAD.replace("    def forward", f"{static}    def forward")
    plan = plan_of("return self._flat(x), ModelNew._flat(x)", head=head)
    assert [view.shape for view in plan.outputs] == [(15,), (15,)]


@pytest.mark.parametrize(
    "change",
    [
        {"tensors": [{"storage": 0, "dtype": "float32", "shape": [2], "strides": [1], "offset": 0, "host": False}]},
        {"root": 1},
        {"entries": [["weight", 0]]},
        {"modules": [{"class": "ModelNew", "attributes": [["a", {"object": 1}]], "layers": []}]},
    ],
)
def test_a_malformed_snapshot_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        plan_of("return x", snapshot=_STATELESS | {"storages": [4]} | change)


def test_memory_is_only_metadata() -> None:
    before = torch.zeros(1)
    plan = plan_of("return torch.empty(1 << 40, device=x.device)")
    assert plan.storages[1].size_bytes == 1 << 42 and before.item() == 0


@pytest.mark.parametrize("base", ["nn.Sequential", "nn.LSTM"])  # candidates of models may derive from the first alone
def test_classes_derived_from_layers_hold_state_and_run_nothing_of_their_own(base: str) -> None:
    snapshot: dict[str, Any] = {
        "root": 0,
        "modules": [
            {"class": "ModelNew", "attributes": [["parts", {"module": 1}]], "layers": ["parts"]},
            {"class": "Parts", "attributes": [["0", {"module": 2}]], "layers": ["0"]},
            _LINEAR,
        ],
        **_WEIGHT,
        "entries": [["parts.0.weight", 0]],
    }  # fmt: skip
    head = _HEAD.replace("class ModelNew", f"class Parts({base}):\n    pass\n\n\nclass ModelNew")
    body = 'copy[(1,)](x, self.parts.get_submodule("0").weight, 0)\nreturn x'
    plan = plan_of(body, head=head, snapshot=snapshot)
    assert "out=float32(state parts.0.weight, [7, 5], [5, 1], 0)" in plan.launch_log()[0]
    by_number = "for each in self.parts:\n    copy[(1,)](x, each.weight, self.parts[0].weight.numel())"
    if base == "nn.Sequential":
        assert "n=35" in plan_of(by_number, head=head, snapshot=snapshot).launch_log()[0]
        with pytest.raises(Unsupported, match="a slice of a Parts"):
            plan_of("return self.parts[:1]", head=head, snapshot=snapshot)
        called = plan_of("return self.parts(x)", head=head, snapshot=snapshot)
        assert called.operators == plan_of("return self.parts[0](x)", head=head, snapshot=snapshot).operators
        assert [view.shape for view in called.outputs] == [(3, 7)]
    else:
        with pytest.raises(Unsupported, match="the attribute forward of a layer Parts"):
            plan_of("return self.parts(x)", head=head, snapshot=snapshot)
        with pytest.raises(Unsupported):
            plan_of(by_number, head=head, snapshot=snapshot)


def test_operators_by_the_names_of_lowered_rows_are_steps() -> None:
    plan = plan_of("return torch.ops.aten.sort.stable(x, stable=True)[0]")
    assert plan.operators == ("aten.sort",) and plan.outputs[0].shape == (3, 5)


_CACHED = """import logging
from contextlib import nullcontext

logger = logging.getLogger(__name__)


@functools.lru_cache(maxsize=None)
def block_of(n, least=8):
    return {"BLOCK": max(least, triton.next_power_of_2(n))}


@functools.cache
def kept(n):
    return [n, torch.empty(3)]


@functools.cache
def kind_of(n):
    return isinstance(n, bool)
"""


def test_caches_logs_and_contexts_change_no_value() -> None:
    head = _HEAD.replace("\n\nclass ModelNew", f"\n{_CACHED}\n\nclass ModelNew")
    body = """guard = torch.cuda.device(x.device) if x.is_cuda else nullcontext()
logger.debug(f"{x} of {x.shape[0]:>8}")
with guard:
    return block_of(x.shape[1]), block_of(x.shape[1], least=16).copy()"""
    assert _value(plan_of(body, head=head).tree) == ({"BLOCK": 8}, {"BLOCK": 16})
    for change, message in {
        "n = kind_of(1), kind_of(True)": "each of one type",
        "n = kind_of(x)": "integers and texts",
        "n = kind_of(-0.0)": "integers and texts",  # as 0.0
        "logger.info('%s', self)": "the text of a module",
        "print(f'{self}')": "the text of a module",
        "n = kept(1)": "makes more than numbers",
        "n = block_of(1)\nn.update(a=1)": "outlives the call",
        "with x:\n    n = 1": "with x",
    }.items():
        with pytest.raises(Unsupported, match=message):
            plan_of(f"{change}\nreturn x", head=head)


_KEPT = """
_FILE = {"last": []}


def count(log=[]):
    log.append(1)


class Held:
    ITEMS = [1]
"""


@pytest.mark.parametrize(
    "change",
    [
        "_FILE['last'] = x.shape[0]",
        "_FILE['last'].append(1)",
        "_FILE['last'] += [1]",
        "seen = _FILE['last']\nseen += [1]",
        "Held.ITEMS.pop()",
        "self.kept.extend([2])",
        "self.kept[0].update(a=1)",
        "count()",
        "each = {}\nfound = [each.update(a=1) for each in self.kept[:1]]",
    ],
)
def test_a_call_changes_no_list_or_dict_that_outlives_it(change: str) -> None:
    kept = {"list": [{"dict": []}, {"list": []}]}
    snapshot = _STATELESS | {"modules": [{"class": "ModelNew", "attributes": [["kept", kept]], "layers": []}]}
    head = _HEAD.replace("\n\nclass ModelNew", f"{_KEPT}\n\nclass ModelNew")
    with pytest.raises(Unsupported, match="that outlives the call"):
        plan_of(f"{change}\nreturn x", head=head, snapshot=snapshot)
    own = "mine = [*self.kept, _FILE]\nmine[1] = 2\nmine += [3]\nmine.append(4)\nreturn x"
    assert plan_of(own, head=head, snapshot=snapshot).tree == {"tensor": 0}


def test_no_iterator_outlives_a_call() -> None:
    head = _HEAD.replace("\n\nclass ModelNew", "\n_TURNS = (n for n in (1, 2))\n\n\nclass ModelNew")
    with pytest.raises(Unsupported, match="iterator"):
        plan_of("return x * sum(_TURNS)", head=head)
