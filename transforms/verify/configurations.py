"""What an autotuned candidate may become on a GPU: its source with each of its launch configurations in turn.

Nothing that verifies a candidate times it, so of the configurations of a kernel the first is the one that runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelquarry.pipeline.schema.parse_python import parse


def others(code: str) -> Iterator[str]:
    """The source with the second configuration of each autotuned kernel first, then the third, until each was first.

    Of kernels with fewer than others, some are first again. What is not written as a list is not looked into.
    """
    tree = parse(code)
    lists = [found for node in ast.walk(tree) if (found := _configurations(node)) is not None]
    for _ in range(1, max((len(each.elts) for each in lists), default=0)):
        for each in lists:
            each.elts.append(each.elts.pop(0))
        yield ast.unparse(tree)


def _configurations(node: ast.AST) -> ast.List | None:
    """Of `triton.autotune(configs=[...])`; a list that is not empty."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "triton.autotune"):
        return None
    given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "configs")]
    return next((each for each in given if isinstance(each, ast.List) and each.elts), None)
