"""Code of a file that its class `ModelNew` does not use: programs, tests, copies of the module."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from ..lint.parsed_source import MAIN_TESTS, Source, root
from . import tables

# Modules whose import changes nothing that a candidate uses; the last ones may be missing.
_INSTALLED = frozenset(("numpy", "pytest"))
_HARMLESS = _INSTALLED | frozenset(
    "abc argparse ast builtins collections contextlib copy csv dataclasses datetime enum functools gc glob hashlib "
    "importlib inspect io itertools json logging math multiprocessing numbers operator os os.path pathlib pickle "
    "platform pprint random re shutil signal statistics string struct subprocess sys tempfile textwrap threading time "
    "timeit traceback types typing unittest uuid warnings".split()
)
_OTHER_DECORATORS = frozenset(
    "abc.abstractmethod contextlib.contextmanager functools.cache functools.lru_cache pytest.mark.parametrize "
    "triton.testing.perf_report".split()
)
_STATIC = frozenset(("staticmethod", "classmethod", "property"))
_DECORATORS = (tables.CONTEXTS.names | tables.KERNEL_DECORATORS | _OTHER_DECORATORS) - _STATIC
# Calls that make a value and do nothing else.
_CALLS = frozenset(
    ("logging.getLogger", "typing.TypeVar", "torch.device", "triton.Config", "triton.testing.Benchmark", "enum.auto")
)
# Methods that only instances have, and none of these is made.
_METHODS = frozenset(
    ("__init__", "__post_init__", "__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__", "__repr__")
)
_BUILTINS = frozenset(dir(builtins))
_GAP = 2  # blank lines between the definitions of a file


@dataclass(frozen=True, slots=True)
class Used:
    """A text without what its entry point does not use."""

    code: str  # blank lines stand for what was left out, so that lines keep their numbers
    removed: tuple[str, ...] = ()  # names of what was left out


def without_unused(code: str, arguments: str = "", entry: str = CANDIDATE_ENTRY_POINT) -> Used:
    """Leave out what the definition `entry` does not use, if it does nothing when the file is imported.

    These are programs (`if __name__ == "__main__"`), definitions that compute nothing but what is listed above, and
    imports of listed modules. A text that does not parse, or does not define `entry`, stays as it is.

    Args:
        arguments: source of the constructor's arguments, which may name functions of the file.
    """
    try:
        source = Source(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Used(code)
    body = source.tree.body
    if not any(entry in bound(node) for node in body):
        return Used(code)
    others = [node for node in body if entry not in bound(node)]
    file = _File(source)
    idle = [node for node in others if file.is_idle(node) and not _is_decoy(source, node)]
    roots = [node for node in body if node not in idle]
    roots += [ast.Expr(parse_expression(arguments))] if arguments else []
    used = reach(roots, idle)
    removed = [node for node in idle if node not in used and _has_own_lines(body, node)]
    lines = code.splitlines(keepends=True)
    for node in removed:
        lines[_first_line(node) - 1 : node.end_lineno] = ["\n"] * len(_lines(node))
    return Used("".join(lines), tuple(name for node in removed if not _is_import(node) for name in sorted(bound(node))))


def close_gaps(code: str) -> str:
    """The text with at most two blank lines between the statements of the file."""
    lines = code.splitlines(keepends=True)
    within = {line for node in parse(code).body for line in _lines(node)}
    blank = 0
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        blank = blank + 1 if not line.strip() and number not in within else 0
        if blank <= _GAP and (kept or not blank):
            kept.append(line)
    return "".join(kept).rstrip() + "\n"


def reach(roots: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> set[ast.AST]:
    """The roots, and the statements of the others that they use by the names that these bind."""
    found, waiting = set[ast.AST](), [*roots]
    while waiting:
        node = waiting.pop()
        found.add(node)
        waiting += [each for each in others if each not in found and _names(node) & bound(each)]
    return found


def _names(node: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def bound(node: ast.stmt) -> set[str]:
    """Names that a statement of the file defines."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return set()


def is_program(node: ast.stmt) -> bool:
    """True for code that runs only when the file is not imported."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in MAIN_TESTS and not node.orelse


class _File:
    """The statements of a file, judged by their effect when it is imported."""

    def __init__(self, source: Source) -> None:
        self._source, self._body = source, source.tree.body
        self._once = {name for name, nodes in source.binders.items() if len(nodes) == 1 or self._import_alone(nodes)}

    def _import_alone(self, nodes: Sequence[ast.AST]) -> bool:
        """True if all are imports such as `import torch` and `import torch.nn`, which bind the same module."""
        plain = (isinstance(each, ast.alias) and not each.asname for each in nodes)
        return all(plain) and all(isinstance(self._source.parents[each], ast.Import) for each in nodes)

    def is_idle(self, node: ast.stmt) -> bool:
        """True if nothing happens when the statement is imported, but that it binds names."""
        return not any(map(_is_special, bound(node))) and self._does_nothing(node)

    def _does_nothing(self, node: ast.stmt) -> bool:
        match node:
            case ast.FunctionDef():
                values = (*node.args.defaults, *filter(None, node.args.kw_defaults))
                return (
                    all(map(self._is_decorator, node.decorator_list))
                    and all(self._is_value(each, node) for each in values)
                    and all(map(self._is_annotation, _annotations(node)))
                )
            case ast.ClassDef():
                members = [each for each in node.body if not is_text(each) and not isinstance(each, ast.Pass)]
                return (
                    not node.keywords
                    and all(map(self._is_decorator, node.decorator_list))
                    and all(self._is_value(each, node) for each in node.bases)
                    and all(isinstance(each, _DEFINITIONS) and self._is_member(each) for each in members)
                )
            case ast.Assign():
                return all(_is_target(each, node.value) for each in node.targets) and self._is_value(node.value, node)
            case ast.AnnAssign():
                is_plain = isinstance(node.target, ast.Name) and self._is_annotation(node.annotation)
                return is_plain and (node.value is None or self._is_value(node.value, node))
            case ast.Import():
                return all(_is_harmless(alias.name) for alias in node.names)
            case ast.ImportFrom():
                return not node.level and all(_has(node.module or "", alias.name) for alias in node.names)
        return is_program(node)

    def _is_member(self, node: ast.stmt) -> bool:
        """True if nothing happens for a statement of a class, whose instances nothing makes."""
        if isinstance(node, ast.FunctionDef) and node.name in _METHODS:
            return self._does_nothing(node)
        return self.is_idle(node)

    def _is_value(self, node: ast.expr, where: ast.AST) -> bool:
        """True for an expression that only reads, of names that are bound before the statement `where`."""
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return node.id in _BUILTINS or node.id in self._bound_before(where)
            case ast.Attribute():
                return self._is_of_import(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return all(self._is_value(each, where) for each in node.elts)
            case ast.Dict():
                entries = (*node.keys, *node.values)
                return all(each is not None and self._is_value(each, where) for each in entries)
            case ast.Call():
                listed = self._is_of_import(node.func) and self._source.path(node.func) in _CALLS
                given = (*node.args, *(each.value for each in node.keywords))
                return listed and all(self._is_value(each, where) for each in given)
        return self._is_number(node)

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return isinstance(node.value, int | float)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                return self._is_number(node.operand)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
                return self._is_number(node.left) and self._is_number(node.right)
            case ast.Name() if node.id in self._once:
                found = [each for each in self._body if node.id in bound(each) and each.lineno < node.lineno]
                return any(isinstance(each, ast.Assign) and self._is_number(each.value) for each in found)
        return False

    def _is_annotation(self, node: ast.expr) -> bool:
        """True for an annotation of names that the file does not define, which subscripts and `|` may combine."""
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return self._is_of_import(node) or (node.id in _BUILTINS and node.id not in self._source.binders)
            case ast.Attribute():
                return self._is_of_import(node)
            case ast.Subscript():
                return self._is_annotation(node.value) and self._is_annotation(node.slice)
            case ast.Tuple() | ast.List():
                return all(map(self._is_annotation, node.elts))
            case ast.BinOp(op=ast.BitOr()):
                return self._is_annotation(node.left) and self._is_annotation(node.right)
        return False

    def _is_decorator(self, node: ast.expr) -> bool:
        function = node.func if isinstance(node, ast.Call) else node
        given = (*node.args, *(each.value for each in node.keywords)) if isinstance(node, ast.Call) else ()
        is_own = isinstance(function, ast.Name) and function.id in _STATIC and function.id not in self._source.binders
        listed = is_own or (self._is_of_import(function) and self._source.path(function) in _DECORATORS)
        return listed and all(self._is_value(each, node) for each in given)

    def _is_of_import(self, node: ast.expr) -> bool:
        """True for a name of an import, or an attribute of one, if nothing else binds the name."""
        name = root(node)
        return name in self._once and name in self._source.imported

    def _bound_before(self, where: ast.AST) -> set[str]:
        line = getattr(where, "lineno", 0)
        return {name for each in self._body if each.lineno < line for name in bound(each)}


_DEFINITIONS = (ast.FunctionDef, ast.Assign, ast.AnnAssign)


def _annotations(function: ast.FunctionDef) -> Iterator[ast.expr]:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    yield from (each.annotation for each in every if each is not None and each.annotation is not None)
    if function.returns is not None:
        yield function.returns


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_target(target: ast.expr, value: ast.expr) -> bool:
    """True for a name, or for names in a tuple that the tuple `value` fills."""
    if not isinstance(target, ast.Tuple):
        return isinstance(target, ast.Name)
    fits = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
    return fits and all(isinstance(each, ast.Name) for each in target.elts)


def _is_decoy(source: Source, node: ast.stmt) -> bool:
    """True for a kernel that nothing names: such a text is rejected."""
    if not isinstance(node, ast.FunctionDef) or node.name not in source.kernels:
        return False
    return not any(node.name in _names(each) for each in source.tree.body if each is not node)


def _is_harmless(module: str) -> bool:
    return module in _HARMLESS and module not in tables.IMPORTS.names


def _has(module: str, name: str) -> bool:
    """True if importing the name from the module does nothing, and does not raise."""
    if not _is_harmless(module) or name == "*":
        return False
    return module in _INSTALLED or hasattr(import_module(module), name)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))


def is_text(node: ast.stmt) -> bool:
    """True for a docstring, or another constant that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _lines(node: ast.stmt) -> range:
    assert node.end_lineno is not None  # of parsed code
    return range(_first_line(node), node.end_lineno + 1)


def _has_own_lines(body: list[ast.stmt], node: ast.stmt) -> bool:
    """False for a statement that shares a line with another."""
    ours = _lines(node)
    return not any(each is not node and {*ours} & {each.lineno, each.end_lineno} for each in body)
