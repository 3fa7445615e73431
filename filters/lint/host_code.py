"""The Python around the kernels, and what of it holds tensors."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator

from .parsed_source import MAIN, Source, root
from .torch_names import TYPES, VIEWING, is_function

Function = ast.FunctionDef

_STEPS = 3  # from name to name that a tensor is followed
_CALLED = frozenset({"forward", "__call__"})
_UNASKED = frozenset("__init__ reset_parameters init_weights extra_repr backward".split())  # not part of a forward
# Conditions of where and for what a candidate runs: it is verified on a GPU, in evaluation mode.
_THERE = re.compile(r"[\w.]+\.is_cuda|torch\.cuda\.is_available\(\)|[\w.]+\.device\.type (== 'cuda'|!= 'cpu')")
_ELSEWHERE = re.compile(r"self\.training|[\w.]+\.is_cpu|[\w.]+\.device\.type (!= 'cuda'|== 'cpu')")

# Conditions of what a candidate is given: a call of a row has one dtype and rank, and a census sees what runs there.
_KIND = re.compile(r"\.(dtype|device|ndim|requires_grad)\b|\.dim\(\)|is_grad_enabled\(\)")


class Host:
    """The Python around the kernels: what runs when the file is imported, and when forward is called."""

    def __init__(self, source: Source) -> None:
        self._source = source
        functions = [node for node in source.nodes if isinstance(node, Function)]
        host = [node for node in functions if not self._in_kernel(node)]
        self._functions = self._reached(host)
        self._skipped = {id(node) for node in functions} - {id(node) for node in self._functions}
        self.nodes = list(self._walk(source.tree))
        launches = [node for node in self.nodes if isinstance(node, ast.Name) and self._launches(node)]
        self.launched_on_grids = {node.id for node in launches if isinstance(source.parents[node], ast.Subscript)}
        # What gives a value is no kernel: others call it, by its name or by a constant that it is.
        self.called = {name for name, node in source.kernels.items() if _gives(node)} - self.launched_on_grids
        self.launched = {node.id for node in launches} - self.called
        self.launched_elsewhere = self._named_elsewhere(functions)
        self.helpers = self._named_in_kernels()
        self.layers, self.stacks, self._state = self._attributes()
        self._tensors: dict[int, set[str]] = {id(node): self._tensors_of(node) for node in self._functions}
        for _ in range(_STEPS):
            self._pass_on()

    def is_tensor(self, node: ast.AST) -> bool:
        """Whether the source itself shows that `node` is a tensor."""
        if isinstance(node, ast.Name):
            return node.id in self._tensors.get(self.function(node), ())
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return f"self.{node.attr}" in self._state
            return node.attr in VIEWING and self.is_tensor(node.value)
        if isinstance(node, ast.Subscript):
            return self.is_tensor(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in VIEWING and self.is_tensor(node.func.value)
        return False

    def _pass_on(self) -> None:
        """Names that tensors are given to, and arguments of functions of the file that they are passed to."""
        functions = {node.name: node for node in self._functions if isinstance(self._source.parents[node], ast.Module)}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and self.is_tensor(node.value):
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
                self._tensors.get(self.function(node), set()).update(names)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
                called = functions[node.func.id]
                passed = zip((*called.args.posonlyargs, *called.args.args), node.args, strict=False)
                self._tensors[id(called)] |= {argument.arg for argument, value in passed if self.is_tensor(value)}

    def _launches(self, node: ast.Name) -> bool:
        """Whether the kernel of this name could run: not on a grid that is written down as empty."""
        parent = self._source.parents[node]
        grid = parent.slice if isinstance(parent, ast.Subscript) and parent.value is node else None
        sides = grid.elts if isinstance(grid, ast.Tuple) else [grid]
        empty = any(isinstance(side, ast.Constant) and side.value == 0 for side in sides)
        return isinstance(node.ctx, ast.Load) and node.id in self._source.kernels and not empty

    def _walk(self, node: ast.AST) -> Iterator[ast.AST]:
        for child in _children(node):
            if id(child) not in self._skipped and child not in getattr(node, "decorator_list", ()):
                yield child
                yield from self._walk(child)

    def _in_kernel(self, node: ast.AST) -> bool:
        kernels = self._source.kernels.values()
        while node is not self._source.tree:
            if node in kernels:
                return True
            node = self._source.parents[node]
        return False

    def _reached(self, host: list[Function]) -> list[Function]:
        """What runs when the file is imported or the entry's forward is called, found by names alone."""
        classes = {node.name: node for node in self._source.nodes if isinstance(node, ast.ClassDef)}
        entry, reached = self._source.entry, list[Function]()
        methods = {name: _last_of_each_name(node, host) for name, node in classes.items()}
        waiting: list[ast.AST] = [
            node for node in self._source.tree.body if not isinstance(node, (Function, ast.ClassDef))
        ]
        while entry is not None:
            waiting += [m for m in methods.pop(entry.name, []) if m.name in _CALLED]
            entry = next((classes[root(base)] for base in entry.bases if root(base) in methods), None)
        while waiting:
            node = waiting.pop()
            if isinstance(node, Function):
                if node in reached or node in self._source.kernels.values():
                    continue
                reached.append(node)
            for inner in (node, *live(node)):
                name = _name_of(inner)
                if name not in _CALLED | _UNASKED:
                    waiting += [f for f in host if f.name == name and f not in reached]
                waiting += [m for m in methods.get(name, []) if m.name not in _UNASKED and m not in reached]
                if isinstance(inner, ast.Call) and self._calls_a_layer(inner, host, classes):
                    waiting += [m for members in methods.values() for m in members if m.name in _CALLED]
        return reached

    def _calls_a_layer(self, node: ast.Call, host: list[Function], classes: Collection[str]) -> bool:
        """Whether what is called could be an instance of a class of the file."""
        if self._source.path(node.func) or isinstance(node.func, ast.Subscript):
            return isinstance(node.func, ast.Subscript) and root(node.func) == "self"
        name = _name_of(node.func)
        if isinstance(node.func, ast.Attribute):  # a function of the file, or of Python's, may have a layer's name
            methods = {f.name for f in host if isinstance(self._source.parents[f], ast.ClassDef)}
            return root(node.func) == "self" and name not in methods
        known = {f.name for f in host} | set(classes) | self._source.kernels.keys() | vars(builtins).keys()
        return bool(name) and name not in known

    def function(self, node: ast.AST) -> int:
        """The function that `node` is in; 0 if it is in none."""
        while node in self._source.parents:
            node = self._source.parents[node]
            if isinstance(node, Function):
                return id(node)
        return 0

    def _named_elsewhere(self, functions: list[Function]) -> set[str]:
        """What a `torch.autograd.Function`'s backward names, and what only runs in training or on another device:
        kernels that forward does not launch."""
        ways: list[ast.AST] = [node for node in functions if node.name == "backward"]
        asked = [
            node for node in self._source.nodes if isinstance(node, (ast.If, ast.IfExp)) and _asks_where(node.test)
        ]
        ways += [left for node in asked for left in _unheld(node)]
        return {node.id for way in ways for node in ast.walk(way) if isinstance(node, ast.Name)}

    def _named_in_kernels(self) -> set[str]:
        named = set()
        for kernel in self._source.kernels.values():
            named |= {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)} - {kernel.name}
        return named

    def _attributes(self) -> tuple[dict[str, str], dict[str, str], set[str]]:
        """Names and attributes of `self` that hold a layer of torch.nn, with its class; those that hold several; the
        attributes that hold state."""
        layers: dict[str, str] = {}
        stacks: dict[str, str] = {}
        state: set[str] = set()
        for held, value in self._given():
            name = self._layer(value) if isinstance(value, ast.Call) else ""
            if name in ("Parameter", "Buffer"):
                state.add(held)
            elif name in ("ModuleDict", "ModuleList", "Sequential") and (inner := self._stacked(value)):
                stacks[held] = inner
            elif name[:1].isupper() and name not in TYPES:
                layers[held] = name
            elif not name and held.startswith("self.") and (function := self._function_in(value)):
                (stacks if isinstance(value, (ast.Dict, ast.List, ast.Tuple)) else layers)[held] = function
        for node in self._source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                name, first = node.func.attr, node.args[0]
                if name in ("register_buffer", "register_parameter") and isinstance(first, ast.Constant):
                    state.add("self." + str(first.value))
        return layers, stacks, state

    def _given(self) -> Iterator[tuple[str, ast.expr]]:
        """Names and attributes of `self` with what they are given."""
        for node in self._source.nodes:
            if isinstance(node, ast.Assign):
                yield from ((held, node.value) for held in map(_held, node.targets) if held)
            elif isinstance(node, ast.Call) and len(node.args) > 1:
                *owner, name, value = node.args
                by_name = _name_of(node.func) in ("add_module", "register_module") and root(node.func) == "self"
                by_name |= _name_of(node.func) == "setattr" and [ast.unparse(part) for part in owner] == ["self"]
                if by_name and isinstance(name, ast.Constant):
                    yield "self." + str(name.value), value

    def _function_in(self, value: ast.expr) -> str:
        """A function of PyTorch's that computes, of what is no call of it, "" if there is none."""
        if isinstance(value, ast.Lambda):
            value = value.body
        elif isinstance(value, ast.Call) and self._source.path(value.func) != "functools.partial":
            return ""
        paths = (self._source.path(node) for node in ast.walk(value))
        return next((path.rsplit(".", 1)[-1] for path in paths if is_function(path)), "")

    def _layer(self, node: ast.Call) -> str:
        """The class of torch.nn whose instance the call makes, "" if it makes none."""
        path = self._source.path(node.func)
        return path.rsplit(".", 1)[-1] if path.startswith("torch.nn.") else ""

    def _stacked(self, node: ast.expr) -> str:
        """A class of torch.nn that computes, of the layers in a container that has none of a class of the file."""
        made = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call) and inner is not node]
        names = [self._layer(inner) for inner in made if _name_of(inner.func)[:1].isupper()]
        return next((name for name in names if name not in TYPES), "") if all(names) else ""

    def _tensors_of(self, function: Function) -> set[str]:
        """Arguments that are used as tensors, and names that hold fresh ones."""
        arguments = {argument.arg for argument in (*function.args.posonlyargs, *function.args.args)}
        found: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in arguments:
                if node.attr in ("shape", "stride", "numel", "is_contiguous", "contiguous", "element_size"):
                    found.add(node.value.id)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                path = self._source.path(node.value.func)
                if path.startswith(("torch.empty", "torch.zeros", "torch.ones", "torch.full")):
                    found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return found - {"self", "ctx"}


def _gives(function: Function) -> bool:
    """Whether it returns a value."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def live(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a node and could run."""
    for child in _children(node):
        yield child
        yield from live(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node that could run: not what stands behind a return, or under a condition that never holds."""
    left_out = _unheld(node)
    if isinstance(node, ast.For) and _is_empty(node.iter):
        left_out += node.body
    for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if isinstance(body, list):
            ends = next((at for at, child in enumerate(body) if _ends(child)), len(body))
            left_out += body[ends + 1 :]
    yield from (child for child in ast.iter_child_nodes(node) if child not in left_out)


def _unheld(node: ast.AST) -> list[ast.AST]:
    """What stands under the condition of `node` where that never holds; or what returns, for inputs of another kind."""
    if not isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return []
    if (holds := _holds(node.test)) is None:
        if not isinstance(node, ast.If) or node.orelse or not _KIND.search(ast.unparse(node.test)):
            return []
        return list(node.body) if any(map(_ends, node.body)) else []
    arm = node.orelse if holds else node.body
    return list(arm) if isinstance(arm, list) else [arm]


def _ends(statement: ast.AST) -> bool:
    """Whether nothing behind it in its block runs."""
    if isinstance(statement, ast.If) and (holds := _holds(statement.test)) is not None:
        return any(map(_ends, statement.body if holds else statement.orelse))
    return isinstance(statement, (ast.Return, ast.Raise))


def _asks_where(test: ast.expr) -> bool:
    texts = [ast.unparse(part) for part in ast.walk(test) if isinstance(part, ast.expr)]
    return any(way.fullmatch(text) for way in (_THERE, _ELSEWHERE) for text in texts)


def _holds(test: ast.expr) -> bool | None:
    """Whether a condition holds, None if that is not written down. No candidate is run as `__main__`."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    text = ast.unparse(test)
    if _THERE.fullmatch(text):
        return True
    if _ELSEWHERE.fullmatch(text):
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.Or)  # one that holds decides an `or`, one that does not an `and`
        parts = {_holds(value) for value in test.values}
        return decides if decides in parts else None if None in parts else not decides
    return False if ast.unparse(test) in MAIN else None


def _is_empty(node: ast.expr) -> bool:
    none = isinstance(node, ast.Call) and ast.unparse(node) == "range(0)"
    return none or (isinstance(node, (ast.Tuple, ast.List)) and not node.elts)


def _held(target: ast.AST) -> str:
    """`self.layer`, or the name of a variable."""
    own = isinstance(target, ast.Attribute) and root(target) == "self"
    return ast.unparse(target) if own or isinstance(target, ast.Name) else ""


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _last_of_each_name(node: ast.ClassDef, host: list[Function]) -> list[Function]:
    """The methods of a class; one that is defined again is gone."""
    return list(
        {member.name: member for member in node.body if isinstance(member, Function) and member in host}.values()
    )
