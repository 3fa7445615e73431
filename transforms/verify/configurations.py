"""Variants of an autotuned candidate's source, each with another configuration first.

Verification does not autotune: it runs the first configuration of each kernel. On a GPU any other may be selected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelquarry.pipeline.schema.parse_python import parse


def rotate_configurations(code: str) -> Iterator[str]:
    """The source with the second configuration of each autotuned kernel first, then the third, and so on.

    Shorter lists start again from their beginning. Configurations that are not a literal list are left as they are.
    """
    tree = parse(code)
    lists = [configs for node in ast.walk(tree) if (configs := _configurations(node)) is not None]
    for _ in range(1, max((len(each.elts) for each in lists), default=0)):
        for each in lists:
            each.elts.append(each.elts.pop(0))
        yield ast.unparse(tree)


def _configurations(node: ast.AST) -> ast.List | None:
    """The non-empty list of configurations in a call `triton.autotune(configs=[...])`; None for other nodes."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "triton.autotune"):
        return None
    candidates = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "configs")]
    return next((each for each in candidates if isinstance(each, ast.List) and each.elts), None)
