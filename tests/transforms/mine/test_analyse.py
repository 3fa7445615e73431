"""The names that a definition uses, by Python's scope rules."""

from __future__ import annotations

import pytest

from kernelquarry.transforms.mine import tree_sitter_nodes as ts
from kernelquarry.transforms.mine.analyse import analyse
from kernelquarry.transforms.mine.usage import Usage

EXPRESSIONS = {
    "f(a, b=c, d = e, *g, **h) == f(k) <= m": "f a c e g h f k m",
    "f('b', \"c.d\", 'é', '''e''', 'a\\'b', g)": "f g",
    "[rb'a', b, f'{c.d!r:{e}} f', r\"\"\"g\"\"\", u'h']": "b c e",
    "[a for b in c(d) for e in b.f if e] + (lambda a, b=g: a.h(b, i))(a) + b": "c d a g i a b",
    "größe.µ(b)": "größe b",
    "(a.\n  b,  # c.d\n  e \\\n .f)": "a e",
}


def usage_of(source: str) -> Usage:
    (statement,) = ts.parse(source.encode()).named_children
    return analyse(statement).usage


@pytest.mark.parametrize(("expression", "names"), EXPRESSIONS.items())
def test_names_of_an_expression(expression: str, names: str) -> None:
    assert " ".join(reference.name for reference in usage_of(f"x = {expression}").references) == names


def test_references_have_their_attributes_and_places() -> None:
    usage = usage_of("self.conv(x, stride=s).mean(1e3) if y is None else 'a b'")
    found = [(reference.name, reference.attributes, reference.start) for reference in usage.references]
    assert found == [("self", ("conv",), 0), ("x", (), 10), ("s", (), 20), ("y", (), 36)]
    assert usage.attributes == {"conv", "mean"}


def test_a_name_is_local_before_its_binding_too() -> None:
    usage = usage_of("def f():\n    a()\n    b()\n    a = 1\n    return [a for c in a] + c")
    assert [reference.name for reference in usage.references] == ["b", "c"]


def test_a_long_chain_of_operators_does_not_recurse() -> None:
    assert len(usage_of("x = " + " + ".join(["a"] * 5000)).references) == 5000
