"""Comments that map kernels and launches to the reference's expressions."""

from __future__ import annotations

import ast
import textwrap

import pytest
from inductor import POINTWISE, raw_kernel, text, tidied
from modules import Call, probed, source

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.tidy.kernel.comments import Commenter, comment
from kernelquarry.transforms.tidy.read.source_expressions import Origin, call_sources, launched_for, value_origins

MAPPING = """\
# Topologically Sorted Source Nodes: [x.exp(), self.act(x)], Original ATen: [aten.exp, aten.relu]
# Source node to ATen node mapping:
#   self.act(x) => relu
# Source node to value mapping:
#   self.act(x), aten.relu => tmp2, tmp4
#   x.exp(), aten.exp => tmp0, tmp1
#   mul_3, aten.mul => tmp3
#   max(x, key=lambda y: (y, 1)) => tmp5
"""


def test_origins_of_values() -> None:
    found = value_origins(MAPPING)
    assert found["tmp2"] == found["tmp4"] == Origin("self.act(x)", "relu")
    assert found["tmp3"] == Origin("", "mul"), "a node of Inductor's is no expression"
    assert found["tmp5"] == Origin("max(x, key=lambda y: (y, 1))", "")
    assert [origin.operator for origin in dict.fromkeys(found.values())] == ["exp", "mul", "relu", ""]


def test_sources_of_launches() -> None:
    code = """\
        # Topologically Sorted Source Nodes: [f(x, (1, 2)), y + 'a, b'], Original ATen: [aten.add]
        k_0.run(arg0_1, buf0)
        buf1 = torch.ops.aten.topk.default(buf0)
        # Topologically Sorted Source Nodes: [], Original ATen: [aten.add]
        k_1.run(arg0_1, buf0)
    """
    both = ("f(x, (1, 2))", "y + 'a, b'")
    assert call_sources(textwrap.dedent(code)) == {2: both, 3: both, 5: ()}


def test_a_launch_has_the_expressions_that_its_kernel_computes() -> None:
    assert launched_for(["a(x)", "b(x)"], ["a(x)", "b(x)"], ["b(x)"]) == ["b(x)"]
    assert launched_for(["c(x)", "d(x)"], ["a(x)", "b(x)"], ["b(x)"]) == ["d(x)"], "a kernel of two launches"
    assert launched_for(["c(x)"], ["a(x)", "b(x)"], ["b(x)"]) == []


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([], ""),
        (["mul_3"], ""),
        (["f(x)", "g(x)", "f(x)"], "# f(x); g(x)"),
        (["x.exp()", "x.exp() + 1"], "# x.exp() + 1"),
        (["first(x)" + " + 1" * 20, "last(x)" + " * 2" * 5], "# ...; last(x)" + " * 2" * 5),
        (["f(" + "x" * 100 + ")"], ""),
    ],
)
def test_comment(expressions: list[str], expected: str) -> None:
    assert comment(expressions) == expected


def test_a_new_expression_gets_a_comment() -> None:
    statements = ast.parse("x = tl.load(p)\na = f(x)\nfor i in r:\n    b = g(a)\n    c = g(b)\nd = a + c").body
    commented = Commenter({1: "x + x", 2: "F.f(x)", 4: "F.g(x)", 5: "F.g(x)", 6: "F.f(x)"}).body(statements)
    lines = [ast.unparse(statement) for statement in commented]
    assert lines == [
        "x = tl.load(p)",
        "'# F.f(x)'",
        "a = f(x)",
        "for i in r:\n    '# F.g(x)'\n    b = g(a)\n    c = g(b)",
        "'# F.f(x)'",
        "d = a + c",
    ]


def test_no_comment_is_repeated_in_a_row() -> None:
    commented = Commenter({1: "f(x).g()", 2: "f(x)", 3: "f(x).g()"}).body(ast.parse("a = g(x)\nb = h(\na, y)").body)
    assert [ast.unparse(statement) for statement in commented] == ["'# f(x).g()'", "a = g(x)", "b = h(a, y)"]


def test_a_kernel_that_only_copies_has_its_comment_at_the_load() -> None:
    commented = Commenter({1: "x.t()"}).body(ast.parse("x = tl.load(p)\ntl.store(q, x)").body)
    assert [ast.unparse(statement) for statement in commented] == ["'# x.t()'", "x = tl.load(p)", "tl.store(q, x)"]


def test_an_absorbed_value_keeps_its_expression() -> None:
    body = """
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tmp0 + tmp0
    tmp2 = tl.exp(tmp1)
    tl.store(out_ptr0 + (x0), tmp2, xmask)
    """
    comments = (
        "# Source node to value mapping:\n#   x + x, aten.add => tmp0, tmp1\n#   torch.exp(x), aten.exp => tmp2\n"
    )
    lines = text(tidied(raw_kernel(body, {}, opening=POINTWISE, comments=comments))).splitlines()
    assert lines[-2:] == ["    # x + x; torch.exp(x)", "    tl.store(out_ptr + offset, tl.exp(x + x), mask=mask)"]
    assert '    """add, exp"""' in lines, "the operators that its values come from"


NESTED = source(
    "self.two(self.one(x).softmax(-1))",
    "self.one = Part()\nself.two = Part()",
    helpers="""
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            return F.silu(self.fc(x)).sum(-1, keepdim=True) + x
    """,
)


def test_a_file_has_comments_with_source_expressions(sandbox: Sandbox) -> None:
    lowered = lower(probed(NESTED, Call({"x": (6, 8)}), Call({"x": (9, 8)})), sandbox)
    assert isinstance(lowered, Kept), lowered
    outcome = tidy(lowered.record)
    assert isinstance(outcome, Kept)
    code = outcome.record.triton_code
    forward, *kernels = code.partition("    def forward(self, x):")[2].split("@triton.jit")
    commented = [line.strip() for line in forward.splitlines() if line.strip().startswith("#")]
    assert commented == [
        "# self.one.fc(x)",
        "# F.silu(self.one.fc(x)).sum(-1, keepdim=True) + x; self.one(x).softmax(-1)",
        "# self.two.fc(x)",
        "# F.silu(self.two.fc(x)).sum(-1, keepdim=True) + x",
    ]
    shared, first, second, *_ = kernels
    assert "#" not in shared, "a kernel of two launches that are for different expressions"
    assert "    # self.one(x).softmax(-1)\n    peak = nan_max(" in first
    assert "    # F.silu(self.two.fc(x)).sum(-1, keepdim=True)\n    total = tl.sum(" in second
