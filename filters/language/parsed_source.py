"""A candidate's source, parsed once for all rules."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

# Imports of a module's namespace that constructor arguments may use; the source may rebind the names.
_ARGUMENT_IMPORTS = "import torch\nfrom torch import nn\n"
# Tests for whether the file runs as a program.
MAIN_TESTS = ("__name__ == '__main__'", "'__main__' == __name__")
_OTHER_LINE_ENDS = re.compile("[\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]")
_MAX_DEPTH = 200  # of the syntax tree: deeper ones, such as a sum of 200 terms, exceed the recursion limit of visitors


class Source:
    """Syntax tree of a candidate, with lookups that all rules share."""

    def __init__(self, code: str, arguments: str = "") -> None:
        """Parse `code`.

        Args:
            arguments: source of the constructor's arguments, which becomes the last expression of the tree.

        Raises:
            SyntaxError, RecursionError, MemoryError: as `ast.parse` does.
            ValueError: as `ast.parse` does; or a comment declares an encoding other than UTF-8. Triton reads a kernel's
                text from the file, and would read another text than this class. Or a character ends lines for
                `str.splitlines` alone: edits by line would change another line than the parser's.
        """
        if _OTHER_LINE_ENDS.search(code):
            raise ValueError("a character is a line end for some programs alone, such as a form feed")
        self.tree = parse(code)
        self.arguments = frozenset[ast.AST]()  # nodes of `arguments`
        if arguments:
            expression = parse_expression(arguments)
            self.arguments = frozenset(ast.walk(expression))
            self.tree.body = [*parse(_ARGUMENT_IMPORTS).body, *self.tree.body, ast.Expr(expression)]
        encoding, _ = tokenize.detect_encoding(io.BytesIO(code.encode()).readline)
        if encoding != "utf-8":
            raise ValueError(f"a comment declares the encoding {encoding}")
        self.nodes: list[ast.AST] = [self.tree]
        self.parents: dict[ast.AST, ast.AST] = {}
        depth: dict[ast.AST, int] = {self.tree: 0}
        for node in self.nodes:  # parents come before their children
            children = [*ast.iter_child_nodes(node)]
            self.nodes += children
            self.parents |= dict.fromkeys(children, node)
            depth |= dict.fromkeys(children, depth[node] + 1)
        if max(depth.values()) > _MAX_DEPTH:
            raise RecursionError(f"nested over {_MAX_DEPTH} times")
        self.imports = [node for node in self.nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        self.kernels = {node.name: node for node in functions if any(map(self._is_jit, node.decorator_list))}

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """`node`, its parent, and so on up to the module."""
        current: ast.AST | None = node
        while current is not None:
            yield current
            current = self.parents.get(current)

    def in_kernel(self, node: ast.AST) -> bool:
        """True if `node` is a kernel or part of one."""
        return any(each in self.kernels.values() for each in self.ancestors(node))

    @cached_property
    def launched(self) -> frozenset[str]:
        """Names of the kernels that host code launches, without those that only `backward` names.

        A jitted function that returns a value is a helper that kernels call, unless it is launched on a grid.
        """
        names = [node for node in self.nodes if isinstance(node, ast.Name) and node.id in self.kernels]
        outside = [node for node in names if not self.in_kernel(node)]
        host = [node for node in outside if self._of_backward.isdisjoint(self.ancestors(node))]
        on_grids = {node.id for node in host if isinstance(self.parents[node], ast.Subscript)}
        return frozenset(node.id for node in host if node.id in on_grids or not _returns(self.kernels[node.id]))

    @property
    def idle(self) -> frozenset[str]:
        """Names of the kernels that nothing launches, and that are no helpers."""
        named = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        return frozenset(name for name in self.kernels.keys() - named if not _returns(self.kernels[name]))

    @cached_property
    def _of_backward(self) -> frozenset[ast.AST]:
        """Functions called `backward`, and those of the file that they alone name."""
        functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        found = {node for node in functions if node.name == "backward"}
        others = [node for node in self.tree.body if node in functions and node not in self.kernels.values()]
        uses = {
            node: [each for each in self.nodes if isinstance(each, ast.Name) and each.id == node.name]
            for node in others
        }
        while more := {
            node
            for node, names in uses.items()
            if names and node not in found and all(not found.isdisjoint(self.ancestors(name)) for name in names)
        }:
            found |= more
        return frozenset(found)

    @cached_property
    def entry(self) -> ast.ClassDef | None:
        """The class `ModelNew`, which an assignment may have given this name; None if there is none."""
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        assigned = [
            node for node in self.tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        ]
        names = {ast.unparse(target): ast.unparse(node.value) for node in assigned for target in node.targets}
        return classes.get(CANDIDATE_ENTRY_POINT) or classes.get(names.get(CANDIDATE_ENTRY_POINT, ""))

    @cached_property
    def imported(self) -> dict[str, str]:
        """Full path of each name that an import at the top of the file, or the renaming of a module, binds."""
        paths: dict[str, str] = {}
        for statement in self.imports:
            if not self._is_at_top(statement):
                continue
            for alias in statement.names:
                if isinstance(statement, ast.ImportFrom):
                    paths[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
                elif alias.asname:
                    paths[alias.asname] = alias.name
                else:
                    paths[alias.name.split(".")[0]] = alias.name.split(".")[0]
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and (path := self._renamed_module(node, paths)):
                paths[ast.unparse(node.targets[0])] = path
        return paths

    @cached_property
    def binders(self) -> dict[str, list[ast.AST]]:
        """The nodes that bind each name, in whatever scope: statements, parameters, imports, patterns."""
        found: dict[str, list[ast.AST]] = {}
        for node in self.nodes:
            name: str | None
            match node:
                case ast.Name(ctx=ast.Store() | ast.Del()):
                    name = node.id
                case ast.arg():
                    name = node.arg
                case ast.alias():
                    name = node.asname or node.name.partition(".")[0]
                case _:  # functions, classes, handlers of exceptions, and patterns
                    name = getattr(node, "name", None)
            if isinstance(name, str):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names of built-in functions, and those that any statement, parameter or import of the source binds."""
        return frozenset(self.binders.keys() | vars(builtins).keys())

    def _is_at_top(self, node: ast.AST) -> bool:
        """True for a statement of the file, or of a `try` of the file."""
        around = (each for each in self.ancestors(self.parents[node]) if not isinstance(each, ast.ExceptHandler))
        return all(isinstance(each, (ast.Module, ast.Try)) for each in around)

    def renames_module(self, node: ast.AST) -> bool:
        """True for an assignment such as `F = torch.nn.functional`."""
        return isinstance(node, ast.Assign) and bool(self._renamed_module(node, self.imported))

    def _renamed_module(self, node: ast.Assign, paths: Mapping[str, str]) -> str:
        """Path of the module that an assignment binds to a name without another binding; "" for other assignments."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or not isinstance(node.value, ast.Attribute):
            return ""
        path = _path(node.value, paths)
        if not is_module(path):
            return ""
        names = [each for each in self.nodes if isinstance(each, ast.Name) and each.id == target.id]
        return path if sum(not isinstance(each.ctx, ast.Load) for each in names) == 1 else ""

    def path(self, node: ast.AST) -> str:
        """`torch.nn.functional.relu` for `F.relu`; "" for expressions that do not start with an imported name."""
        return _path(node, self.imported)

    def _is_jit(self, decorator: ast.expr) -> bool:
        """True for `triton.jit`, but not for another decorator called `jit`."""
        path = self.path(decorator.func if isinstance(decorator, ast.Call) else decorator)
        return path.startswith("triton") and path.endswith(".jit")


@lru_cache(maxsize=32)
def parsed(code: str, arguments: str = "") -> Source:
    """The source of a text, which many checks of one candidate read and none changes. Raises: as `Source`."""
    return Source(code, arguments)


def launched_kernels(code: str) -> tuple[str, ...]:
    """Names of the kernels that the host code launches; () if the source does not parse."""
    try:
        return tuple(sorted(Source(code).launched))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _returns(function: ast.FunctionDef) -> bool:
    """True if the function returns a value."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def _path(node: ast.AST, imported: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    start = imported.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join((start, *reversed(parts))) if start else ""


# Functions that shadow the modules that define them.
_FUNCTIONS = frozenset(("torch.nn.utils.spectral_norm", "torch.nn.utils.weight_norm"))


@cache
def is_module(path: str) -> bool:
    """True if a dotted path is an installed module of torch or Triton. Nothing is imported."""
    if path in _FUNCTIONS:
        return False
    first, *rest = path.split(".")
    found = find_spec(first) if first in ("torch", "triton") and rest else None
    places = [Path(place, *rest) for place in (found.submodule_search_locations or ())] if found else []
    return any(place.is_dir() or place.with_name(f"{place.name}.py").is_file() for place in places)


def root(node: ast.AST) -> str:
    """`torch` of `torch.nn.functional`; "" for expressions that do not start with a name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST) -> str:
    """`join` of `", ".join`, `list` of `list`; "" for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
