"""Slice a reference down to its constructor, so that `ModelNew` has the reference's state.

The slice keeps the calls and their order: the same seed gives the same state. Forward methods, annotations,
docstrings, unneeded definitions and attributes without state go.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT

from ..refusals import NeedsImport, NotTidied
from ..syntax.ast_tools import called, names_in, walk
from .constructor_imports import Imports

# Methods that torch or Python calls without naming them in the source.
_IMPLICIT = frozenset(
    "__init__ __new__ __init_subclass__ __post_init__ __getattr__ __setattr__ __getitem__ __len__ __iter__ "
    "__contains__ __hash__ __eq__ _load_from_state_dict _save_to_state_dict state_dict load_state_dict "
    "_register_state_dict_hook get_extra_state set_extra_state _apply __enter__ __exit__ __next__ __missing__ "
    "__set_name__ __get__ __set__".split()
)
# Methods that run a module or give the initial value of a parametrization.
_RUN = frozenset(("forward", "__call__", "right_inverse"))
# Methods that the constructors of torch's own layers call.
_CALLED_BY_LAYERS = frozenset(("reset_parameters", "_reset_parameters"))
# Methods of torch's modules and containers that constructors call.
_MODULE_METHODS = frozenset(
    "register_buffer register_parameter register_module add_module apply modules parameters named_modules "
    "named_parameters children named_children buffers eval train requires_grad_ to float half double type cuda cpu "
    "state_dict register_forward_hook append extend insert reset_parameters _reset_parameters "
    "_register_load_state_dict_pre_hook register_state_dict_pre_hook register_load_state_dict_post_hook __setattr__ "
    "setattr get_submodule register_full_backward_hook zero_grad keys values items update __init__ share_memory".split()
)
_SILENT = ("print", "warnings", "logging", "logger", "log", "_logger", "LOGGER")
_INERT_EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Tuple, ast.List, ast.Compare,
    ast.IfExp,
)  # fmt: skip
_INERT_FUNCTIONS = ("int", "float", "bool", "len", "tuple", "max", "min")
_INERT_MODULES = frozenset(
    "ReLU ReLU6 LeakyReLU ELU SELU GELU SiLU Mish Sigmoid Tanh Softmax LogSoftmax Softplus Hardswish Hardsigmoid "
    "Hardtanh Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Identity MaxPool1d MaxPool2d MaxPool3d AvgPool1d "
    "AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "Flatten Unflatten Upsample PixelShuffle PixelUnshuffle ZeroPad2d ReflectionPad2d ReplicationPad2d "
    "ConstantPad1d ConstantPad2d CosineSimilarity Softsign Tanhshrink Unfold Fold".split()
)


@dataclass(frozen=True, slots=True)
class Constructor:
    """The slice of a reference."""

    imports: list[ast.stmt]
    definitions: list[ast.stmt]  # that stand before the entry point
    entry: ast.ClassDef  # without `forward`

    @property
    def made_later(self) -> set[str]:
        """Attributes that a call of `eval` or `train` sets."""
        classes = [node for node in [*self.definitions, self.entry] if isinstance(node, ast.ClassDef)]
        return {name for node in classes for method in _mode_methods(node) for name in _stored(method)}


def forward_of(source: str) -> ast.FunctionDef | None:
    """The entry point's `forward` without annotations, its own or that of a base; None if torch defines it."""
    classes = {node.name: node for node in parse(source).body if isinstance(node, ast.ClassDef)}
    pending = [ENTRY_POINT]
    for name in pending:  # the loop body appends to it
        if name not in classes:
            continue
        for node in classes[name].body:
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                if "staticmethod" in map(ast.unparse, node.decorator_list):
                    node.args.args.insert(0, ast.arg("self"))
                return _Plain().visit(node)
        bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
        pending += [base for base in bases if base not in pending]
    return None


def slice_constructor(source: str, state: Sequence[str], kept_attributes: Iterable[str]) -> Constructor:
    """Slice a reference. `state` are the qualified names of its state; `kept_attributes` stay as well.

    Raises:
        NeedsImport: the constructor needs a package other than torch, numpy and plain parts of the standard library.
        NotTidied: the source has top-level statements other than definitions.
    """
    kept = set(kept_attributes)
    try:
        return _sliced(parse(source), state, kept, Imports())
    except NeedsImport:
        return _sliced(parse(source), state, kept, Imports(with_numpy=True))


def _sliced(module: ast.Module, state: Sequence[str], kept_attributes: set[str], imports: Imports) -> Constructor:
    definitions: dict[str, ast.stmt] = {}
    arguments: list[ast.stmt] = []  # the function that gives the constructor's arguments
    additions: dict[str, str] = {}  # name of a statement that extends a definition -> name of the definition

    def add(root: str, node: ast.stmt) -> None:
        added = f"{root}, line {node.lineno}"
        definitions[added], additions[added] = node, root

    for node in module.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                imports.add(node)
            case ast.FunctionDef(name="get_init_inputs"):
                arguments.append(node)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                if name == "get_inputs":
                    continue
                definitions[name] = node
                if owners := [root for root in map(_owner, node.decorator_list) if root in definitions]:
                    additions[name] = owners[0]
            case ast.Expr(value=ast.Call() as call) if (root := _owner(call)) in definitions:
                add(root, node)
            case ast.Assign(targets=targets):
                for part in (part for target in targets for part in walk(target)):
                    match part:
                        case ast.Name(name, ctx=ast.Store()):
                            if (before := definitions.get(name, node)) is not node:  # the new value may read the old
                                add(name, before)
                            definitions[name] = node
                        case ast.Subscript(ast.Name(name), ctx=ast.Store()) if name in definitions:
                            add(name, node)
            case ast.AugAssign(target=ast.Name(name) | ast.Subscript(ast.Name(name))) if name in definitions:
                add(name, node)
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr()):
                definitions[name] = node
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise NotTidied(f"statement at the top of the module: {ast.unparse(node)[:80]}")
    protected = {part for name in state for part in name.split(".")} | kept_attributes
    pruned = _Pruner(definitions, additions, imports, protected, set(names_in(*arguments))).prune()
    order = list(dict.fromkeys(id(node) for node in module.body))
    unique = {id(definitions[name]): pruned[name] for name in pruned}
    kept = [unique[key] for key in order if key in unique]
    entry = next(node for node in kept if isinstance(node, ast.ClassDef) and node.name == ENTRY_POINT)
    kept = [_renamed(node) for node in kept if node is not entry]
    needed = imports.needed([*kept, entry, *arguments])
    renamed = _renamed(entry)
    assert isinstance(renamed, ast.ClassDef)
    return Constructor(needed, kept, renamed)


def _mode_methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Methods that switch between training and eval mode."""
    return [child for child in node.body if isinstance(child, ast.FunctionDef) and child.name in ("eval", "train")]


def _stored(method: ast.FunctionDef) -> set[str]:
    """Attributes that a method sets."""
    attributes = [node for node in ast.walk(method) if isinstance(node, ast.Attribute)]
    return {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}


def _renamed(node: ast.stmt) -> ast.stmt:
    for child in walk(node):
        if isinstance(child, ast.Name) and child.id == ENTRY_POINT:
            child.id = CANDIDATE_ENTRY_POINT
    if isinstance(node, ast.ClassDef) and node.name == ENTRY_POINT:
        node.name = CANDIDATE_ENTRY_POINT
    return node


def _owner(node: ast.expr) -> str:
    """The object whose method is called, "registry" in `registry.add("relu", nn.ReLU)`; "" if there is none."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(name))) | ast.Attribute(value=ast.Name(name)):
            return name
    return ""


def _mentioned(nodes: Iterable[ast.AST]) -> set[str]:
    """Names, attributes and strings: every way to refer to a method."""
    found: set[str] = set()
    for child in (child for node in nodes for child in walk(node)):
        match child:
            case ast.Name(name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                found.add(name)
    return found


@dataclass(frozen=True, slots=True)
class _Pruner:
    """Selects the definitions that constructing the entry point needs."""

    definitions: dict[str, ast.stmt]
    additions: dict[str, str]  # name of a statement that extends a definition -> name of the definition
    imports: Imports
    protected: set[str]  # attributes with state
    named: set[str]  # names in the constructor's arguments

    def prune(self) -> dict[str, ast.stmt]:
        """The needed definitions by name, with only the methods that are needed."""
        cleaned = {id(node): self.imports.rewrite(_Plain().visit(node)) for node in self.definitions.values()}
        definitions = {name: cleaned[id(node)] for name, node in self.definitions.items()}
        runs_modules = any(_runs_modules(node, definitions) for node in definitions.values())
        reached = {ENTRY_POINT} | {name for name in definitions if name in self.named}
        methods: set[str] = set(_IMPLICIT) | (_RUN if runs_modules else set())
        while True:
            kept = {name: self._reduced(definitions[name], methods) for name in reached}
            mentioned = _mentioned(kept.values()) - {"forward"}
            loaded = set(names_in(*kept.values()))
            further = {name for name in definitions if name in loaded}
            further |= {added for added, root in self.additions.items() if root in reached}
            if further <= reached and mentioned <= methods:
                break
            reached |= further
            methods |= mentioned
        if runs_modules:
            return kept
        read = {name for node in kept.values() for name in map(_read, walk(node)) if name}
        reduced = {name: _DeadAttributes(read | self.protected).visit(node) for name, node in kept.items()}
        return _without_empty_modules(reduced)

    def _reduced(self, node: ast.stmt, methods: set[str]) -> ast.stmt:
        if not isinstance(node, ast.ClassDef):
            return node
        # The entry point gets a `forward` of its own, even if its constructor runs its modules.
        kept = methods - {"forward"} if node.name == ENTRY_POINT else set(methods)
        if any(_is_layer(self.imports.resolve(base) or ast.unparse(base)) for base in node.bases):
            kept |= _CALLED_BY_LAYERS
        kept |= {method.name for method in _mode_methods(node) if _stored(method) & self.protected}
        functions = ast.FunctionDef | ast.AsyncFunctionDef
        body = [child for child in node.body if not isinstance(child, functions) or child.name in kept]
        return ast.ClassDef(node.name, node.bases, node.keywords, body or [ast.Pass()], node.decorator_list)


def _runs_modules(node: ast.stmt, definitions: dict[str, ast.stmt]) -> bool:
    """True if a constructor, or a function that it may call, runs a module: for a shape or a parametrization."""
    if isinstance(node, ast.FunctionDef):
        return _runs_a_new_module(node, definitions)
    if not isinstance(node, ast.ClassDef):
        return False
    functions = {child.name: child for child in node.body if isinstance(child, ast.FunctionDef)}
    for child in walk(functions["__init__"]) if "__init__" in functions else ():
        match child:
            case ast.Call(func=ast.Attribute(value=ast.Name("self"), attr=name)) if (
                name not in functions and name not in _MODULE_METHODS
            ):
                return True
            case ast.Call(
                func=ast.Name("self" | "register_parametrization") | ast.Attribute(attr="register_parametrization")
            ):
                return True
    return False


def _runs_a_new_module(function: ast.FunctionDef, definitions: dict[str, ast.stmt]) -> bool:
    """True if the function calls an instance of a class of the source: `layer = Layer(8)`, then `layer(x)`."""
    made, used = set(), set()
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Name(owner))):
                made |= {name} if isinstance(definitions.get(owner), ast.ClassDef) else set()
            case ast.Call(func=ast.Name(name)):
                used.add(name)
    return not made.isdisjoint(used)


def _read(node: ast.AST) -> str:
    """The attribute that a node reads, by name or by a string; "" if there is none. An in-place update reads it."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.AugAssign(target=ast.Attribute(attr=name)):
            return name
        case ast.Constant(value=str(name)):
            return name
    return ""


def _is_layer(base: str) -> bool:
    name = base.removeprefix("torch.")
    return name.startswith("nn.") and name not in ("nn.Module", "nn.modules.module.Module")


class _Plain(ast.NodeTransformer):
    """Drops annotations, docstrings and messages."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        for argument in walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        self.generic_visit(node)
        node.body = self._body(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
            return node
        self.generic_visit(node)
        node.body = self._body(node.body)
        return node

    def _body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        kept = [child for child in body if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))]
        return kept or [ast.Pass()]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        self.generic_visit(node)
        return ast.Assign([node.target], node.value, lineno=0) if node.value is not None else None

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if called(node.value).split(".")[0].split("(")[0] in _SILENT:
            return ast.Pass()
        self.generic_visit(node)
        return node


def _without_empty_modules(definitions: dict[str, ast.stmt]) -> dict[str, ast.stmt]:
    """Construct `nn.Identity()` in place of modules without content, and drop classes that nothing needs then."""
    empty = {name for name, node in definitions.items() if name != ENTRY_POINT and _is_empty_module(node)}
    replaced = {name: _Identities(empty).visit(node) for name, node in definitions.items()}
    needed = names_in(*(node for name, node in replaced.items() if name not in empty))
    return {name: node for name, node in replaced.items() if name not in empty or name in needed}


def _is_empty_module(node: ast.stmt) -> bool:
    """True if the definition is a subclass of nn.Module whose constructor only calls the one of nn.Module."""
    if not isinstance(node, ast.ClassDef) or node.keywords or node.decorator_list:
        return False
    if [ast.unparse(base) for base in node.bases] not in (["nn.Module"], ["torch.nn.Module"]):
        return False
    inits = [child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == "__init__"]
    calls = ["super().__init__()", f"super({node.name}, self).__init__()"]
    content = [child for child in node.body if not isinstance(child, ast.Pass)]
    statements = [child for init in inits for child in init.body if not isinstance(child, ast.Pass)]
    return len(inits) == len(content) and all(ast.unparse(child) in calls for child in statements)


class _Identities(ast.NodeTransformer):
    def __init__(self, empty: set[str]) -> None:
        self._empty = empty

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Name) and node.func.id in self._empty and all(map(_is_inert, arguments)):
            return parse_expression("nn.Identity()")
        return node


class _DeadAttributes(ast.NodeTransformer):
    """Drops `self.x = ...` where the value has no state and nothing reads the attribute."""

    def __init__(self, read: set[str]) -> None:
        self._read = read
        self._in_layer = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._in_layer = any(_is_layer(ast.unparse(base)) for base in node.bases)
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_If(self, node: ast.If) -> ast.stmt | None:
        self.generic_visit(node)
        if not node.body and not node.orelse and _is_inert(node.test):
            return None
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        match node.targets:
            case [ast.Attribute(value=ast.Name("self"), attr=name)] if name not in self._read and _is_inert(node.value):
                removes_parameter = self._in_layer and ast.unparse(node.value) == "None"
                return node if removes_parameter else None
        return node


def _is_inert(node: ast.expr) -> bool:
    """True if evaluating the expression has no effect and gives no state, whatever its names are bound to."""
    match node:
        case ast.Call(func=ast.Name(name), args=args, keywords=[]):
            return name in _INERT_FUNCTIONS and all(map(_is_inert, args))
        case ast.Call(func=ast.Attribute(value=ast.Name("nn"), attr=name), args=args, keywords=keywords):
            return name in _INERT_MODULES and all(map(_is_inert, [*args, *(keyword.value for keyword in keywords)]))
    parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    return isinstance(node, _INERT_EXPRESSIONS) and all(map(_is_inert, parts))
