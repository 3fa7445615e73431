"""A candidate's source, parsed once for all rules."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

# What arguments find there, unless the source has others of the names.
_FOR_ARGUMENTS = "import torch\nfrom torch import nn\n"
# How a file asks whether it is run as a program.
MAIN = ("__name__ == '__main__'", "'__main__' == __name__")
_DEEPEST = 200  # in Python's tree; what is deeper, as a sum of so many terms is, no visitor gets through


class Source:
    """The tree of a source, with what every rule asks of it; behind it that of the constructor's `arguments`, an
    expression which is evaluated among the source's names.

    Raises: SyntaxError, ValueError, RecursionError, MemoryError as `ast.parse` does, and where a comment says that the
        file has another encoding: Triton reads a kernel's text from the file.
    """

    def __init__(self, code: str, arguments: str = "") -> None:
        self.tree = parse(code)
        self.arguments = frozenset[ast.AST]()  # nodes of what `arguments` say
        if arguments:
            expression = parse_expression(arguments)
            self.arguments = frozenset(ast.walk(expression))
            self.tree.body = [*parse(_FOR_ARGUMENTS).body, *self.tree.body, ast.Expr(expression)]
        encoding, _ = tokenize.detect_encoding(io.BytesIO(code.encode()).readline)
        if encoding != "utf-8":
            raise ValueError(f"a comment says that it is {encoding}")
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        depth: dict[ast.AST, int] = {self.tree: 0}
        for node in self.nodes:  # parents come before their children
            depth |= dict.fromkeys(ast.iter_child_nodes(node), depth[node] + 1)
        if max(depth.values()) > _DEEPEST:
            raise RecursionError(f"nested over {_DEEPEST} times")
        self.imports = [node for node in self.nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        self.kernels = {node.name: node for node in functions if any(map(self._is_jit, node.decorator_list))}

    @cached_property
    def entry(self) -> ast.ClassDef | None:
        """The class of candidates; an assignment may have given it the name."""
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        assigned = [
            node for node in self.tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        ]
        names = {ast.unparse(target): ast.unparse(node.value) for node in assigned for target in node.targets}
        return classes.get(CANDIDATE_ENTRY_POINT) or classes.get(names.get(CANDIDATE_ENTRY_POINT, ""))

    @cached_property
    def imported(self) -> dict[str, str]:
        """Name -> full path of what an import binds it to."""
        paths: dict[str, str] = {}
        for node in self.imports:
            for alias in node.names:
                if alias.name == "*" and isinstance(node, ast.ImportFrom):
                    paths |= {name: f"{node.module}.{name}" for name in self._unbound}
                elif isinstance(node, ast.ImportFrom):
                    paths[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                elif alias.asname:
                    paths[alias.asname] = alias.name
                else:
                    paths[alias.name.split(".")[0]] = alias.name.split(".")[0]
        for given in self.nodes:
            if isinstance(given, ast.Assign) and (path := self._named_anew(given, paths)):
                paths[ast.unparse(given.targets[0])] = path
        return paths

    def names_anew(self, node: ast.AST) -> bool:
        """Whether it gives a module another name: `F = torch.nn.functional`."""
        return isinstance(node, ast.Assign) and bool(self._named_anew(node, self.imported))

    def _named_anew(self, node: ast.Assign, paths: Mapping[str, str]) -> str:
        """The module that gets a name that is given to nothing else."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or not isinstance(node.value, ast.Attribute):
            return ""
        path = _path(node.value, paths)
        if not is_module(path):
            return ""
        names = [each for each in self.nodes if isinstance(each, ast.Name) and each.id == target.id]
        return path if sum(not isinstance(each.ctx, ast.Load) for each in names) == 1 else ""

    @cached_property
    def _unbound(self) -> set[str]:
        """Names that nothing in the file gives a value: what `import *` is for."""
        names = [node for node in self.nodes if isinstance(node, ast.Name)]
        bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | vars(builtins).keys()
        bound |= {node.arg for node in self.nodes if isinstance(node, ast.arg)}
        bound |= {node.name for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        bound |= {alias.asname or alias.name.split(".")[0] for node in self.imports for alias in node.names}
        return {node.id for node in names} - bound

    def path(self, node: ast.AST) -> str:
        """`torch.nn.functional.relu` for `F.relu`; "" for what does not start at an imported name."""
        return _path(node, self.imported)

    def _is_jit(self, decorator: ast.expr) -> bool:
        """Triton's, and no other of the name."""
        path = self.path(decorator.func if isinstance(decorator, ast.Call) else decorator)
        return path.startswith("triton") and path.endswith(".jit")


def _path(node: ast.AST, imported: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    start = imported.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join((start, *reversed(parts))) if start else ""


# Functions that have taken the place of the files that they are from.
_FUNCTIONS = frozenset(("torch.nn.utils.spectral_norm", "torch.nn.utils.weight_norm"))


@cache
def is_module(path: str) -> bool:
    """Whether `torch.nn.functional`, say, is a file or a folder of what is installed; nothing is imported."""
    if path in _FUNCTIONS:
        return False
    first, *rest = path.split(".")
    found = find_spec(first) if first in ("torch", "triton") and rest else None
    places = [Path(place, *rest) for place in (found.submodule_search_locations or ())] if found else []
    return any(place.is_dir() or place.with_name(f"{place.name}.py").is_file() for place in places)


def root(node: ast.AST) -> str:
    """`torch` of `torch.nn.functional`; "" if it does not start at a name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
