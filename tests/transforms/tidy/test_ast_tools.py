"""Walking and copying syntax trees."""

from __future__ import annotations

import ast
import inspect

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.transforms.tidy.kernel import passes
from kernelquarry.transforms.tidy.syntax.ast_tools import copied, walk

TREE = parse(inspect.getsource(passes))


def test_walk_yields_the_nodes_of_the_standard_library_in_its_order() -> None:
    expected = [node for node in ast.walk(TREE) if not isinstance(node, ast.expr_context)]
    assert [node for node in walk(TREE) if not isinstance(node, ast.expr_context)] == expected


def test_children_are_read_before_the_node_is_yielded() -> None:
    names = []
    for node in walk(parse("first(second)")):
        if isinstance(node, ast.Call):
            node.args = []
        names += [node.id] if isinstance(node, ast.Name) else []
    assert names == ["first", "second"]


def test_a_copy_is_equal_and_shares_no_name() -> None:
    copy = copied(TREE)
    assert ast.dump(copy, include_attributes=True) == ast.dump(TREE, include_attributes=True)
    for node in ast.walk(copy):
        if isinstance(node, ast.Name):
            node.id = "renamed"
    assert "renamed" not in {node.id for node in ast.walk(TREE) if isinstance(node, ast.Name)}
