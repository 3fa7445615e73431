"""The steps of the calling function, and the expressions of the graph's inputs."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
from modules import Call, probed, source

from kernelquarry.pipeline.schema.provenance import Generator
from kernelquarry.pipeline.schema.records import Binding, Lowered, Source
from kernelquarry.transforms.tidy.forward.arguments import arguments, short_roles, signature
from kernelquarry.transforms.tidy.kernel.kernel_names import kernel_name, operator_names
from kernelquarry.transforms.tidy.read.call_steps import Allocate, Bind, Define, LaunchKernel, Return, Run, Size, steps
from kernelquarry.transforms.tidy.read.inductor_source import parse
from kernelquarry.transforms.tidy.refusals import NotTidied
from kernelquarry.transforms.tidy.syntax.ast_tools import unused_name

CALL = """
arg0_1, arg1_1 = args
args.clear()
arg0_1_size = arg0_1.size()
s0 = arg0_1_size[1]
assert_size_stride(arg0_1, (4, s0), (s0, 1))
with torch.cuda._DeviceGuard(0):
    torch.cuda.set_device(0)
    ps0 = s0 // 2
    buf0 = empty_strided_cuda((4, ps0), (ps0, 1), torch.float32)
    raw_stream0 = get_raw_stream(0)
    k.run(arg0_1, buf0, 4*s0, stream=raw_stream0)
    buf1 = reinterpret_tensor(buf0, (2, 2), (2, 1), 0)
    extern_kernels.mm(buf0, arg1_1, out=buf1)
    del arg0_1
return (buf1, )
"""


def test_steps() -> None:
    found = steps(ast.parse(CALL).body)
    assert [type(step) for step in found] == [Size, Define, Allocate, LaunchKernel, Bind, Run, Return]
    size, define, allocate, launch, *_ = found
    assert size == Size("s0", "arg0_1", 1)
    assert isinstance(define, Define) and ast.unparse(define.value) == "s0 // 2"
    assert isinstance(allocate, Allocate) and allocate.dtype == "torch.float32"
    assert isinstance(launch, LaunchKernel) and list(map(ast.unparse, launch.args)) == ["arg0_1", "buf0", "4 * s0"]


def test_an_unknown_step_is_named() -> None:
    with pytest.raises(NotTidied, match="statement while"):
        steps(ast.parse("while True:\n    pass").body)


@pytest.mark.parametrize(
    ("code", "about"),
    [
        ("x = 1", "no function that launches"),
        ("k = async_compile.cpp('k', '''''')\ndef call(args):\n    pass", "a kernel in cpp"),
        (
            "k = async_compile.triton('k', '''\n@triton.jit\ndef k(x):\n    pass\n''')\ndef call(args): pass",
            "without launch",
        ),
    ],
)
def test_a_source_of_another_form_is_refused(code: str, about: str) -> None:
    with pytest.raises(NotTidied, match=about):
        parse(code)


def lowered(code: str, call: Call, *bindings: tuple[Source, str]) -> Lowered:
    return Lowered(
        probed(code, call),
        "",
        tuple(Binding(f"arg{i}_1", kind, name) for i, (kind, name) in enumerate(bindings)),
        "{}",
        True,
        Generator("inductor", "torch.inductor", "", "{}"),
    )


def reached(record: Lowered) -> list[tuple[str, str]]:
    return [(a.expression, a.role) for a in arguments(record, signature(record.probed)).values()]


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("weight", "self.weight"),
        ("blocks.1.fc.weight", "self.blocks[1].fc.weight"),
        ("parts[1]", "self.parts[1]"),
        ("named['a b']", "self.named['a b']"),
        ("block.tables[0]['x']", "self.block.tables[0]['x']"),
        ("first.conv-3/bn.weight", 'self.first.get_submodule("conv-3/bn").weight'),
    ],
)
def test_state_is_accessed_by_its_name(name: str, expression: str) -> None:
    record = lowered(source("x"), Call({"x": (2,)}), (Source.PARAMETER, name))
    assert reached(record) == [(expression, name)]


def test_numbered_children_of_a_module_that_names_its_children() -> None:
    code = source("x", "self.add_module('0', nn.Linear(2, 2))")
    record = lowered(code, Call({"x": (2,)}), (Source.PARAMETER, "0.weight"))
    assert reached(record) == [('self.get_submodule("0").weight', "0.weight")]


def test_state_whose_name_is_no_expression_is_refused() -> None:
    with pytest.raises(NotTidied, match="state called a-b"):
        reached(lowered(source("x"), Call({"x": (2,)}), (Source.BUFFER, "a-b")))


def test_literals_of_forward_have_names_of_their_own() -> None:
    said = '{"dtype": "torch.float32", "numbers": [1.0, 2.0]}'
    record = lowered(source("x * self.constant"), Call({"x": (2,)}), (Source.LITERAL, said), (Source.LITERAL, said))
    assert reached(record) == [("self.constant_2", "constant_2"), ("self.constant_3", "constant_3")]


def inputs(number: int) -> list[tuple[Source, str]]:
    return [(Source.INPUT, str(i)) for i in range(number)]


@pytest.mark.parametrize(
    ("forward", "args", "kwargs", "expected"),
    [
        ("x, y", [{"tensor": 1}, {"tensor": 0}], {}, ["y", "x"]),
        ("x, *, y", [{"tensor": 0}], {"y": {"tensor": 1}}, ["x", "y"]),
        ("x, n, y", [{"tensor": 0}, 3, {"tensor": 1}], {}, ["x", "y"]),
        ("xs", [[{"tensor": 0}, [{"tensor": 1}]]], {}, ["xs[0]", "xs[1][0]"]),
        ("xs", [{"a": {"tensor": 0}, "b": {"tensor": 1}}], {}, ["xs['a']", "xs['b']"]),
        ("x, *more, **named", [{"tensor": 0}, 1, {"tensor": 1}], {}, ["x", "more_1"]),
        ("x, **named", [{"tensor": 0}], {"k": {"tensor": 1}}, ["x", "k"]),
    ],
)
def test_inputs_are_expressions_of_the_arguments_of_forward(
    forward: str, args: list[Any], kwargs: dict[str, Any], expected: list[str]
) -> None:
    call = Call({"a": (2,), "b": (2,)}, args, kwargs)
    record = lowered(source("x", signature=forward), call, *inputs(2))
    assert [expression for expression, _ in reached(record)] == expected


@pytest.mark.parametrize(
    ("forward", "args", "kwargs", "about"),
    [("x", [{"tensor": 0}, 1], {}, "more arguments"), ("x", [{"tensor": 0}], {"k": 1}, "no argument k")],
)
def test_a_call_that_forward_does_not_take(forward: str, args: list[Any], kwargs: dict[str, Any], about: str) -> None:
    with pytest.raises(NotTidied, match=about):
        reached(lowered(source("x", signature=forward), Call({"a": (2,)}, args, kwargs), *inputs(1)))


def test_a_forward_of_torch_has_the_names_of_the_tensors() -> None:
    code = textwrap.dedent("""
        import torch.nn as nn

        class Model(nn.ReLU):
            pass

        def get_init_inputs():
            return []
        """)
    assert ast.unparse(signature(lowered(code, Call({"the input": (2,)})).probed)) == "self, the_input"
    with pytest.raises(NotTidied, match="torch's own"):
        signature(lowered(code, Call({"x": (2,)}, [{"tensor": 0}, 3])).probed)


# Names


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([], []),
        (["fc.weight", "fc.bias", "x"], ["weight", "bias", "x"]),
        (["a.fc.weight", "b.fc.weight"], ["a_fc_weight", "b_fc_weight"]),
        (["a.weight", "a.weight"], ["weight", "weight"]),
        (["layers.0.weight", "layers.1.weight"], ["layer0_weight", "layer1_weight"]),
    ],
)
def test_roles_are_as_short_as_possible(roles: list[str], expected: list[str]) -> None:
    assert short_roles(roles) == expected


def test_kernels_are_named_after_their_operators() -> None:
    taken: set[str] = set()
    assert kernel_name(["addmm", "view", "relu"], taken) == "linear_relu_kernel"
    assert kernel_name(["addmm", "relu"], taken) == "linear_relu_kernel_2"
    assert kernel_name(list("abcdef"), taken) == "a_b_e_f_kernel"
    assert kernel_name([], taken) == "copy_kernel"
    assert operator_names(["clone"]) == ["clone"], "views are named where there is nothing else"
    assert unused_name("a_b_e_f_kernel", taken) == "a_b_e_f_kernel_2"
