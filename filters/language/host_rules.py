"""Rules on a candidate's file: what stands in it, its classes, and the signatures of its functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from . import tables
from .body_rules import Body, Found, check_annotation, check_decorator, named
from .definitions import CALLED, Context, Definitions, Function, Kind
from .idle import is_program, is_text
from .scopes import bound_names, defaults, passed, stored

# Modules that choices between imports may replace by each other: they hold the same functions of Triton.
_ALIKE = ("triton.language.extra.cuda.libdevice", "triton.language.extra.libdevice", "triton.language.math")
_SPECIAL = frozenset(("__all__",))  # names that mean nothing to Python when they are set
_FILE = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)


def check_host(file: Definitions, copied: frozenset[ast.AST] = frozenset()) -> Iterator[Found]:
    """Findings in the host code of a file. Args: copied: parts of it that may be outside of the language."""
    yield from _check_names(file)
    for found in _check_code(file):
        node, parent = found[0], file.source.parents.get(found[0])
        around = [each for each in file.source.ancestors(node) if each is node or not isinstance(each, ast.ClassDef)]
        is_annotation = node in (getattr(parent, "annotation", None), getattr(parent, "returns", None))
        if is_annotation or copied.isdisjoint(around):  # a copy may have other annotations
            yield found


def _check_names(file: Definitions) -> Iterator[Found]:
    """Names that a file and its classes define. A copy may break these rules no more than another text."""
    bound: dict[str, str] = {}
    for node in file.source.tree.body:
        for name, path in bound_names(node):
            if not path and (name in vars(builtins) or (name.startswith("__") and name not in _SPECIAL)):
                yield node, f"a definition of {name}", "name it otherwise"
            if name in bound and not (path and path == bound[name]):
                yield node, f"another definition of {name}", "define each name once"
            bound[name] = path
    for node in file.classes.values():
        yield from _check_members(file, node)


def _check_members(file: Definitions, node: ast.ClassDef) -> Iterator[Found]:
    kind = file.kind(node)
    is_module = kind in (Kind.MODULE, Kind.LAYER)
    refused = tables.TAKEN | tables.MODULE_METHODS if is_module else tables.TAKEN
    refused |= tables.CONTEXTS.names | file.source.imported.keys()  # decorators of the members behind them
    special = ("__init__", "__post_init__", "__constants__")
    skips = is_module and not node.decorator_list  # in a dataclass, annotations are fields
    members = [each for each in node.body if not (skips and _is_annotation(each))]
    names = [name for member in members for name, _ in bound_names(member)]
    for member in members:
        for name, _ in bound_names(member):
            # A layer calls methods of its own, and no class may replace these.
            replaces = kind is Kind.LAYER and name not in ("__init__", "forward")
            if replaces or name in refused - CALLED or (name.startswith("__") and name not in special):
                is_helper = replaces and isinstance(member, Function)
                yield member, f"a member {name} of a class", "write a function" if is_helper else "name it otherwise"
            elif names.count(name) > 1:
                yield member, f"another definition of {name}", "define each name once"


def _is_annotation(node: ast.stmt) -> bool:
    """True for an annotation without a value, which binds nothing."""
    return isinstance(node, ast.AnnAssign) and node.value is None


def _check_code(file: Definitions) -> Iterator[Found]:
    yield from _check_file(file)
    methods = [member for node in file.classes.values() for member in node.body if isinstance(member, Function)]
    for node in file.classes.values():
        yield from _check_class(file, node)
    for function in (*file.functions.values(), *methods):
        for decorator in function.decorator_list:
            yield from check_decorator(file, decorator)
            yield from _check_values(file, passed(decorator))
        if id(function) in file.reached:
            yield from Body(file, function, file.context(function)).check()
    for function in (*file.functions.values(), *methods, *file.kernels.values()):
        yield from _check_signature(file, function)
    yield from _check_recursion(file)


def _check_values(file: Definitions, nodes: list[ast.expr], context: Context = Context.CALL) -> Iterator[Found]:
    """Check expressions that run when the file is imported."""
    for node in nodes:
        yield from Body(file, None, context).expression(node)


def _check_file(file: Definitions) -> Iterator[Found]:
    for node in file.source.tree.body:
        if isinstance(node, ast.Try) and _tries_imports(node):
            choices = [*node.body, *(each for handler in node.handlers for each in handler.body)]
            for inner in choices:
                yield from _check_import(inner)
            yield from _check_choices(node, [pair for inner in choices for pair in bound_names(inner)])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _check_import(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from _check_constant(file, node)
        elif isinstance(node, ast.Expr) and node.value in file.source.arguments:
            yield from _check_values(file, [node.value], Context.CONSTRUCTOR)
        elif isinstance(node, ast.Expr) and _sets_allocator(file, node.value):
            yield from _check_values(file, passed(node.value))
        elif is_program(node):
            defined = {each.name for each in ast.walk(node) if isinstance(each, (Function, ast.ClassDef))}
            if changed := (stored(node) | defined) & (file.names | file.source.imported.keys()):
                yield node, f"a program that sets {min(changed)} of the file", "name its variables otherwise"
        elif not isinstance(node, _FILE) and not is_text(node):
            yield node, named(node), "set constants, and define kernels, functions and classes"
    for name, kernel in file.kernels.items():
        if kernel not in file.source.tree.body:
            yield kernel, f"the kernel {name} in a function", "define it at the top of the file"


def _sets_allocator(file: Definitions, node: ast.expr) -> bool:
    """True for `triton.set_allocator(function)`, which descriptors made in kernels need."""
    match node:
        case ast.Call(func=function, args=[ast.Name(id=name)], keywords=[]):
            return file.path(function) == "triton.set_allocator" and name in file.functions
    return False


def _tries_imports(node: ast.Try) -> bool:
    """True for a choice between imports, for names that moved between versions of Triton."""
    parts = [*node.body, *(each for handler in node.handlers for each in handler.body)]
    caught = {ast.unparse(handler.type) if handler.type else "" for handler in node.handlers}
    imports = all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in parts)
    return imports and not (node.orelse or node.finalbody) and caught <= {"ImportError", "ModuleNotFoundError"}


def _check_choices(node: ast.Try, bound: list[tuple[str, str]]) -> Iterator[Found]:
    """A name has one path, or those of functions of Triton that are called the same."""
    paths: dict[str, set[str]] = {}
    for name, path in bound:
        module = next((each for each in _ALIKE if path == each or path.startswith(f"{each}.")), "")
        paths.setdefault(name, set()).add(path.removeprefix(module) if module else path)
    for name in (name for name, found in paths.items() if len(found) > 1):
        yield node, f"a choice between definitions of {name}", "import the same function or module in each branch"


def _check_import(node: ast.AST) -> Iterator[Found]:
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    for module in modules:
        if module not in tables.IMPORTS.names or (isinstance(node, ast.ImportFrom) and node.level):
            yield node, f"an import from {module}", "import torch, triton and what the language lists"
    if any(alias.name == "*" for alias in node.names):
        yield node, "an import of *", "import names"


def _check_constant(file: Definitions, node: ast.Assign | ast.AnnAssign) -> Iterator[Found]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    if not all(isinstance(each, ast.Name) for each in flat):
        is_switch = any(file.path(each).startswith("torch.backends.") for each in flat)
        instead = "leave it out" if is_switch else "set names at the top of a file"
        yield node, f"an assignment to {ast.unparse(targets[0])}", instead
    if isinstance(node, ast.AnnAssign):
        yield from check_annotation(node.annotation)
    if node.value is not None and not (file.source.renames_module(node) or _makes_logger(file, node.value)):
        yield from _check_values(file, [node.value])


def _makes_logger(file: Definitions, node: ast.expr) -> bool:
    """True for `logging.getLogger(__name__)`, or with another name that calls at most `lstrip`."""
    if not isinstance(node, ast.Call) or file.path(node.func) != tables.LOGGER or node.keywords:
        return False
    parts = [part for each in node.args for part in ast.walk(each) if isinstance(part, (ast.Name, ast.Attribute))]
    return all(part.id == "__name__" if isinstance(part, ast.Name) else part.attr == "lstrip" for part in parts)


def _check_class(file: Definitions, node: ast.ClassDef) -> Iterator[Found]:
    kind = file.kind(node)
    paths = {file.source.path(base) for base in node.bases} - {""}
    if kind is Kind.OTHER or (kind is Kind.LAYER and not paths <= tables.LAYERS.names):
        shown = ", ".join(map(ast.unparse, (*node.bases, *node.decorator_list, *(k.value for k in node.keywords))))
        yield node, f"a class of {shown}", "derive from torch.nn.Module, or from another base that the language lists"
    for decorator in node.decorator_list:
        yield from _check_values(file, passed(decorator))
    for member in node.body:
        if isinstance(member, (ast.Assign, ast.AnnAssign)):
            yield from _check_constant(file, member)
        elif not isinstance(member, (Function, ast.Pass)) and not is_text(member):
            yield member, f"{named(member)} in a class", "define methods and constants"


def _check_signature(file: Definitions, node: Function) -> Iterator[Found]:
    for default in defaults(node):
        named = file.classes.get(default.id) if isinstance(default, ast.Name) else None
        is_layer = named is not None and file.kind(named) in (Kind.MODULE, Kind.LAYER)
        if not (file.is_constant(default) or (is_layer and node.name not in file.kernels)):
            yield default, f"a default that is no constant, {ast.unparse(default)}", "use None or a constant"
    taken, owner = node.args, file.owner(node)
    if taken.kwarg and owner and owner.name == CANDIDATE_ENTRY_POINT and node.name == "forward":
        yield taken.kwarg, "a forward that takes any arguments", "name the arguments"
    rest = filter(None, (taken.vararg, taken.kwarg))
    annotations = [each.annotation for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *rest)]
    for annotation in filter(None, (*annotations, node.returns)):
        yield from check_annotation(annotation)


def _check_recursion(file: Definitions) -> Iterator[Found]:
    calls = {
        name: {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & file.functions.keys()
        for name, node in file.functions.items()
    }
    for name, node in file.functions.items():
        reached, waiting = set[str](), list(calls[name])
        while waiting:
            if (other := waiting.pop()) not in reached:
                reached.add(other)
                waiting += calls[other]
        if name in reached:
            yield node, f"the recursive function {name}", "write a loop"
