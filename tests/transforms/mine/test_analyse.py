"""What a definition uses is the same whether its expressions are read by their text or visited by their tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest

from kernelquarry.transforms.mine import analyse as analysis
from kernelquarry.transforms.mine import tree_sitter_nodes
from kernelquarry.transforms.mine.analyse import analyse
from kernelquarry.transforms.mine.expression_names import plain_names
from kernelquarry.transforms.mine.usage import DefinitionUsage, Usage
from tests.transforms.mine.golden import CASES, read_case

EXPRESSIONS = {
    "chains": "a.b . c(d).e[f.g:h, ...] @ -i ** j",
    "argument_names": "f(a, b=c, d = e, *g, **h) == f(k) <= m",
    "numbers": "1.e5 + 0x1F + 1_0.5j + 2.5.real + .5e-3 + a",
    "strings": "f('b', \"c.d\", 'é', '''e''', 'a\\'b', g)",
    "prefixed": "[rb'a', b, f'{c.d!r:{e}} f', r\"\"\"g\"\"\", u'h']",
    "on_lines": "(a.\n  b,  # c.d\n  e \\\n .f)",
    "scopes": "[a for b in c(d) for e in b.f if e] + (lambda a, b=g: a.h(b, i))(a) + b",
    "walrus": "(a := b.c) + a",
    "words": "a if b is not None and not c else [True, False, ...]",
    "not_ascii": "größe.µ(b)",
    "certain": "a if True else b",
    "asked": "f(a) if is_torch_version('>=', '1.0') else torch.__version__ > '1' or os.environ.get('A', b)",
    "looked_up": "getattr(a, b) + getattr(a, 'b') + vars(a)[c]",
    "wrapped": "torch.jit.script(a)(re.compile('b'), compile(c))",
}
STATEMENTS = {
    "attribute": "def f(a):\n    a.b = c.d = a.e(f=g, h\n=i)\n    a(b=c).d = e\n    a.b = f = g\n    f.h, a[c] = d, i",
    "late": "def f(a):\n    b = c\n    d()\n    c = d = e\n    del g\n    h: int = g",
    "global": "def f():\n    global a\n    a = b\n    def g():\n        nonlocal c\n        c = a\n    c = 1",
    "class": "@a.b\nclass C(d.D, metaclass=e):\n    f: g.G = h\n    i = f\n    def j(self: 'C', *k: l): return i, f, j",
    "decorators": "def f(a):\n    @a.b\n    def g(): pass\n    @c.d\n    def h(): pass",
    "match": "def f(a):\n    match a:\n        case B(c) | d.E: print(c, g)\n    with h as (i, j): return i.j",
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_of_expressions(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (
        f"x = {expression}",
        f"def f(a):\n    if {expression}:\n        return ({expression})",
        f"{expression}",
    ):
        assert _same_by_text_and_tree(text.encode(), monkeypatch)


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_of_statements(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _same_by_text_and_tree(statement.encode(), monkeypatch)


def test_of_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for path in CASES.glob("*.txt"):
        for text in read_case(path).files.values():
            found += _same_by_text_and_tree(text.encode(), monkeypatch)
    assert found


def test_plain_names() -> None:
    found = plain_names(b"self.conv(x, stride=s).mean(1e3) if y is None else 'a b'")
    assert found is not None
    names = [(chain.name, chain.attributes, start) for chain, start in found.used]
    assert names == [("self", ("conv",), 0), ("x", (), 10), ("s", (), 20), ("y", (), 36)]
    assert found.attributes == ["conv", "mean"]


@pytest.mark.parametrize("expression", ["lambda: x", "[y for y in x]", "f'{x}'", "(x, # y\n)", "a if True else b"])
def test_not_plain(expression: str) -> None:
    assert plain_names(expression.encode()) is None


def test_a_name_is_local_from_where_it_is_bound_and_before() -> None:
    (statement,) = tree_sitter_nodes.parse(
        b"def f():\n    a()\n    b()\n    a = 1\n    return [a for c in a] + c"
    ).named_children
    assert [reference.name for reference in analyse(statement).usage.references] == ["b", "c"]


def _same_by_text_and_tree(source: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    """Asserts it of each statement without errors. Returns their number."""
    statements = [node for node in tree_sitter_nodes.statements(tree_sitter_nodes.parse(source)) if not node.has_error]
    by_text = [_said(analyse(statement)) for statement in statements]
    with monkeypatch.context() as context:
        context.setattr(analysis, "plain_names", lambda expression: None)
        assert [_said(analyse(statement)) for statement in statements] == by_text
    return len(statements)


def _said(usage: DefinitionUsage) -> list[object]:
    return [usage.stores, usage.locals, *_all(usage.usage)]


def _all(usage: Usage) -> Iterator[object]:
    yield [getattr(usage, field.name) for field in fields(usage) if field.name != "parts"]
    for part in usage.parts:
        yield part.kind, part.node, part.instead, part.conditions
        yield from _all(part.usage)
        if part.fallback is not None:
            yield from _all(part.fallback)
