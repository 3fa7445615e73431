"""Scopes of a candidate's source: variables of functions, and the names that a statement binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from .parsed_source import Source

Function = ast.FunctionDef
COMPREHENSIONS = (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)
_SCOPES = (*COMPREHENSIONS, ast.FunctionDef, ast.ClassDef, ast.Lambda)


def arguments(node: Function | ast.Lambda) -> set[str]:
    """Names of all parameters."""
    taken = node.args
    rest = filter(None, (taken.vararg, taken.kwarg))
    return {each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *rest)}


def defaults(node: Function | ast.Lambda) -> list[ast.expr]:
    """Defaults of the parameters."""
    return [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]


def passed(node: ast.expr) -> list[ast.expr]:
    """Arguments of a call; [] for other expressions."""
    return [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []


def is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def stored(node: ast.AST) -> set[str]:
    """Names that are set anywhere in `node`."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and is_stored(each)}


@lru_cache(maxsize=64)
def variables(function: Function) -> frozenset[str]:
    """Local variables of a function, without those of functions and comprehensions inside of it."""
    found, waiting = arguments(function), list[ast.AST](function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and is_stored(node):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def is_local(name: str, node: ast.AST, source: Source) -> bool:
    """True if `name` at `node` is a variable of a function, lambda or comprehension around it."""
    inner = node
    while (scope := source.parents.get(inner)) is not None:
        if isinstance(scope, Function) and inner in scope.body and name in variables(scope):
            return True
        if isinstance(scope, ast.Lambda) and inner is scope.body and name in arguments(scope):
            return True
        if isinstance(scope, ast.comprehension):
            around = source.parents[scope]
            assert isinstance(around, COMPREHENSIONS)
            if inner is scope.iter and scope is around.generators[0]:  # is evaluated outside
                inner = around
                continue
        if isinstance(scope, COMPREHENSIONS) and any(name in stored(each.target) for each in scope.generators):
            return True
        inner = scope
    return False


def bound_names(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that a statement of a file or a class binds, each with its path if it is imported, else ""."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            if isinstance(node, ast.ImportFrom):
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
            else:
                yield alias.asname or first, alias.name if alias.asname else first
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name, ""
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((name, "") for target in targets for name in sorted(stored(target)))
