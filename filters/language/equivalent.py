"""Rewrites of a candidate's text into the language, of statements that do the same wherever the text is checked.

- An attempt to import modules that are always there, with a flag that says so, becomes its imports and its flag.
- An import in a function moves to the top of the file.
- Switches of PyTorch's own backends, of logging and of warnings, which change no kernel, are left out. So is a function
  that describes launches to a profiler.
- Branches that draw a random number in training mode raise.

Each rewrite keeps the number of lines.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from . import tables
from .idle import exists
from .parsed_source import parsed
from .scopes import bound_names, passed

_CAUGHT = frozenset(("", "Exception", "ImportError", "ModuleNotFoundError"))
_SWITCHES = "torch.backends."
_SETTERS = frozenset(
    ("logging.basicConfig", "torch.set_float32_matmul_precision", "warnings.filterwarnings", "warnings.simplefilter")
)
_METADATA = "launch_metadata"
_RANDOM = frozenset(("random.randint", "torch.rand", "torch.randint"))
_RAISE = 'raise NotImplementedError("training mode")'
_RAISING = "[][0]"  # an expression that raises

_Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A text that does the same, and the names of what was left out."""

    code: str
    removed: tuple[str, ...] = ()


def in_language(code: str) -> Equivalent:
    """The text after all rewrites that apply. A text that does not parse stays as it is."""
    try:
        rewrites = _Rewrites(code)
        rewrites.apply()
        if not rewrites.are_made:
            return Equivalent(code)
        found = Equivalent("".join(rewrites.lines), tuple(dict.fromkeys(rewrites.removed)))
        parsed(found.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Equivalent(code)
    return found


class _Rewrites:
    """Rewrites of the lines of a text, each of which at most one rewrite changes."""

    def __init__(self, code: str) -> None:
        self._source = parsed(code)
        self._before = code.splitlines(keepends=True)
        self.lines = [*self._before]
        self.removed: list[str] = []

    @property
    def are_made(self) -> bool:
        return self.lines != self._before

    def apply(self) -> None:
        for node in self._source.tree.body:
            if isinstance(node, ast.Try) and self._always_imports(node):
                self._take_body(node)
            elif (name := self._switch(node)) and self._has_own_lines(node):
                self._blank(node)
                self.removed.append(name)
            elif isinstance(node, ast.FunctionDef):
                self._leave_description(node)
        for each in self._source.imports:
            self._move(each)
        for inner in self._source.nodes:
            if isinstance(inner, ast.If | ast.IfExp) and self._is_training(inner.test):
                self._block(inner)

    # Imports

    def _always_imports(self, node: ast.Try) -> bool:
        """True for a `try` of imports and constants that always succeeds, unless it chooses between two imports."""
        caught = {ast.unparse(handler.type) if handler.type else "" for handler in node.handlers}
        handled = [each for handler in node.handlers for each in handler.body]
        if node.orelse or node.finalbody or not caught <= _CAUGHT:
            return False
        if all(isinstance(each, _Import) for each in (*node.body, *handled)):
            return False  # a choice between imports
        has_own_lines = node.body[0].lineno > node.lineno and self._has_own_lines(node)
        return has_own_lines and all(map(_succeeds, node.body))

    def _take_body(self, node: ast.Try) -> None:
        first, last, indentation = node.body[0].lineno, node.body[-1].end_lineno or 0, node.body[0].col_offset
        for number in range(node.lineno, (node.end_lineno or 0) + 1):
            line = self.lines[number - 1]
            removed = min(indentation, len(line) - len(line.lstrip()))
            self.lines[number - 1] = line[removed:] if first <= number <= last else "\n"

    def _move(self, node: _Import) -> None:
        """Move an import in a function to a blank line at the top of the file, if nothing else binds its names."""
        function = self._source.parents[node]
        if not isinstance(function, ast.FunctionDef) or self._source.in_kernel(node) or not self._has_own_lines(node):
            return
        names = [name for name, _ in bound_names(node)]
        binders = [each for name in names for each in self._source.binders[name]]
        kinds = {
            (name, path, isinstance(each, ast.Import))
            for each in self._source.imports
            for name, path in bound_names(each)
            if name in names
        }
        is_same = len(kinds) == len(names) and all(isinstance(each, ast.alias) for each in binders)
        if not is_same or not _succeeds(node):
            return
        text = f"{ast.unparse(node)}\n"
        if not all(name in self._source.imported for name in names) and text not in self.lines:
            free = self._free_line()
            if free is None:
                return
            self.lines[free] = text
        self._blank(node, "pass" if len(function.body) == 1 else "")

    def _free_line(self) -> int | None:
        """The index of the first blank line before the first function or class of the file; None without one."""
        body = self._source.tree.body
        first = next(number for number, each in enumerate(body) if isinstance(each, ast.FunctionDef | ast.ClassDef))
        start = body[first - 1].end_lineno or 0 if first else 0
        end = min([body[first].lineno, *(each.lineno for each in getattr(body[first], "decorator_list", ()))])
        return next((number for number in range(start, end - 1) if not self.lines[number].strip()), None)

    # Settings

    def _switch(self, node: ast.stmt) -> str:
        """The name of the setting that a statement of the file sets to constants; "" for other statements."""
        match node:
            case ast.Assign(targets=[ast.Attribute() as target], value=ast.Constant()):
                path = self._source.path(target)
                return path if path.startswith(_SWITCHES) else ""
            case ast.Expr(value=ast.Call(func=function) as call):
                path = self._source.path(function)
                is_plain = all(isinstance(each, ast.Constant | ast.Name | ast.Attribute) for each in passed(call))
                return path if path in _SETTERS and is_plain else ""
        return ""

    def _leave_description(self, node: ast.FunctionDef) -> None:
        """Leave out the only keyword of a kernel's `triton.jit` if it names a function, for profilers."""
        for made in node.decorator_list:
            match made:
                case ast.Call(func=function, args=[], keywords=[ast.keyword(arg=name, value=ast.Name()) as keyword]):
                    if name == _METADATA and self._source.path(function) == "triton.jit":
                        self._replace(keyword, "")

    # Training mode

    def _is_training(self, node: ast.expr) -> bool:
        """True for `self.training`, for conditions that hold in training mode alone, and for variables set to one."""
        match node:
            case ast.Attribute():
                return node.attr == "training"
            case ast.BoolOp(op=ast.And()):
                return any(map(self._is_training, node.values))
            case ast.Name():
                (*others, bound) = self._source.binders.get(node.id) or [node]
                parent = self._source.parents.get(bound)
                is_once = not others and isinstance(parent, ast.Assign) and not isinstance(parent.value, ast.Name)
                return is_once and isinstance(parent, ast.Assign) and self._is_training(parent.value)
        return False

    def _block(self, node: ast.If | ast.IfExp) -> None:
        """Let a branch raise, if it draws random numbers or copies one to the host."""
        parts: list[ast.stmt] | list[ast.expr] = [node.body] if isinstance(node, ast.IfExp) else node.body
        if not any(self._draws(inner) for part in parts for inner in ast.walk(part)):
            return
        if isinstance(node, ast.IfExp):
            self._replace(node.body, _RAISING)
        elif node.body[0].lineno > node.lineno and all(map(self._has_own_lines, node.body)):
            for each in node.body:
                self._blank(each, _RAISE if each is node.body[0] else "")

    def _draws(self, node: ast.AST) -> bool:
        reads = isinstance(node, ast.Attribute) and node.attr == "item"
        return reads or (isinstance(node, ast.expr) and self._source.path(node) in _RANDOM)

    # Lines

    def _replace(self, node: ast.expr | ast.keyword, text: str) -> None:
        """Replace a part of a line that no rewrite has changed."""
        at = node.lineno - 1
        if node.lineno == node.end_lineno and self.lines[at] == self._before[at]:
            line = self.lines[at].encode()
            self.lines[at] = (line[: node.col_offset] + text.encode() + line[node.end_col_offset :]).decode()

    def _blank(self, node: ast.stmt, text: str = "") -> None:
        """Replace the lines of a statement by a text of one line."""
        for number in range(node.lineno, (node.end_lineno or 0) + 1):
            self.lines[number - 1] = "\n"
        if text:
            self.lines[node.lineno - 1] = f"{' ' * node.col_offset}{text}\n"

    def _has_own_lines(self, node: ast.stmt) -> bool:
        """False for a statement whose first or last line has a part of another statement, but of those around it."""
        inside, around = {*ast.walk(node)}, {*self._source.ancestors(node)}
        for each in self._source.nodes:
            if isinstance(each, ast.stmt) and each not in inside:
                taken = {each.lineno} if each in around else {each.lineno, each.end_lineno}
                if taken & {node.lineno, node.end_lineno}:
                    return False
        return True


def _succeeds(node: ast.stmt) -> bool:
    """True for an import of listed names that are always there, or an assignment of a constant to names."""
    match node:
        case ast.Import():
            return all(alias.name in tables.IMPORTS.names and exists(alias.name) for alias in node.names)
        case ast.ImportFrom():
            is_listed = node.module in tables.IMPORTS.names and not node.level
            return is_listed and all(exists(f"{node.module}.{alias.name}") for alias in node.names)
        case ast.Assign(value=ast.Constant(value=value)):
            return not isinstance(value, str | bytes) and all(isinstance(each, ast.Name) for each in node.targets)
    return False
