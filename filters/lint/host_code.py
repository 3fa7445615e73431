"""Analysis of the Python code around the kernels: what runs, what it launches and which names hold tensors."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator

from .parsed_source import MAIN_TESTS, Source, last_name, root
from .torch_names import TYPES, VIEWING, is_function

Function = ast.FunctionDef

_STEPS = 3  # assignments through which a tensor is followed
_CALL_METHODS = frozenset({"forward", "__call__"})
_NOT_IN_FORWARD = frozenset("__init__ reset_parameters init_weights extra_repr backward".split())
# Conditions with a known result: candidates are verified on a GPU, in evaluation mode.
_ALWAYS_TRUE = re.compile(r"[\w.]+\.is_cuda|torch\.cuda\.is_available\(\)|[\w.]+\.device\.type (== 'cuda'|!= 'cpu')")
_ALWAYS_FALSE = re.compile(r"self\.training|[\w.]+\.is_cpu|[\w.]+\.device\.type (!= 'cuda'|== 'cpu')")
# Conditions on the inputs: all calls of a row have one dtype and rank, and the operator census records what runs there.
_INPUT_CONDITION = re.compile(r"\.(dtype|device|ndim|requires_grad)\b|\.dim\(\)|is_grad_enabled\(\)")


class HostCode:
    """The code outside of kernels that runs when the file is imported or forward is called."""

    def __init__(self, source: Source) -> None:
        self._source = source
        functions = [node for node in source.nodes if isinstance(node, Function)]
        host = [node for node in functions if not source.in_kernel(node)]
        self._functions = self._reachable(host)
        self._skipped = {id(node) for node in functions} - {id(node) for node in self._functions}
        self.nodes = list(self._live_nodes(source.tree))
        launches = [node for node in self.nodes if isinstance(node, ast.Name) and self._is_launch(node)]
        self.launched_on_grids = {node.id for node in launches if isinstance(source.parents[node], ast.Subscript)}
        # A jitted function that returns a value is a helper that kernels call, by name or as a constant argument.
        self.returning = {name for name, node in source.kernels.items() if _returns(node)} - self.launched_on_grids
        self.launched = {node.id for node in launches} - self.returning
        self.launched_outside_forward = self._named_outside_forward(functions)
        self.helpers = self._named_in_kernels()
        self.layers, self.stacks, self._state = self._attributes()
        self._tensors: dict[int, set[str]] = {id(node): self._tensors_of(node) for node in self._functions}
        for _ in range(_STEPS):
            self._follow_tensors()

    def is_tensor(self, node: ast.AST) -> bool:
        """True if the source alone shows that `node` is a tensor."""
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

    def _follow_tensors(self) -> None:
        """Mark the names that tensors are assigned to, and the parameters that they are passed to."""
        functions = {node.name: node for node in self._functions if isinstance(self._source.parents[node], ast.Module)}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and self.is_tensor(node.value):
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
                self._tensors.get(self.function(node), set()).update(names)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
                called = functions[node.func.id]
                passed = zip((*called.args.posonlyargs, *called.args.args), node.args, strict=False)
                self._tensors[id(called)] |= {argument.arg for argument, value in passed if self.is_tensor(value)}

    def _is_launch(self, node: ast.Name) -> bool:
        """True if `node` names a kernel that can run, which it cannot on a literally empty grid."""
        parent = self._source.parents[node]
        grid = parent.slice if isinstance(parent, ast.Subscript) and parent.value is node else None
        sides = grid.elts if isinstance(grid, ast.Tuple) else [grid]
        empty = any(isinstance(side, ast.Constant) and side.value == 0 for side in sides)
        return isinstance(node.ctx, ast.Load) and node.id in self._source.kernels and not empty

    def _live_nodes(self, node: ast.AST) -> Iterator[ast.AST]:
        """Descendants of `node` that can run, without functions that are never called."""
        for child in _children(node):
            if id(child) not in self._skipped and child not in getattr(node, "decorator_list", ()):
                yield child
                yield from self._live_nodes(child)

    def _reachable(self, host: list[Function]) -> list[Function]:
        """Functions that run when the file is imported or the entry's forward is called, matched by name only."""
        classes = {node.name: node for node in self._source.nodes if isinstance(node, ast.ClassDef)}
        entry, reached = self._source.entry, list[Function]()
        methods = {name: _effective_methods(node, host) for name, node in classes.items()}
        waiting: list[ast.AST] = [
            node for node in self._source.tree.body if not isinstance(node, (Function, ast.ClassDef))
        ]
        while entry is not None:
            waiting += [m for m in methods.pop(entry.name, []) if m.name in _CALL_METHODS]
            entry = next((classes[root(base)] for base in entry.bases if root(base) in methods), None)
        while waiting:
            node = waiting.pop()
            if isinstance(node, Function):
                if node in reached or node in self._source.kernels.values():
                    continue
                reached.append(node)
            for inner in (node, *live(node)):
                name = last_name(inner)
                if name not in _CALL_METHODS | _NOT_IN_FORWARD:
                    waiting += [f for f in host if f.name == name and f not in reached]
                waiting += [m for m in methods.get(name, []) if m.name not in _NOT_IN_FORWARD and m not in reached]
                if isinstance(inner, ast.Call) and self._may_call_layer(inner, host, classes):
                    waiting += [m for members in methods.values() for m in members if m.name in _CALL_METHODS]
        return reached

    def _may_call_layer(self, node: ast.Call, host: list[Function], classes: Collection[str]) -> bool:
        """True if the call may be of an instance of a class in the file."""
        if self._source.path(node.func) or isinstance(node.func, ast.Subscript):
            return isinstance(node.func, ast.Subscript) and root(node.func) == "self"
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute):
            methods = {f.name for f in host if isinstance(self._source.parents[f], ast.ClassDef)}
            return root(node.func) == "self" and name not in methods
        # A function of the file, or a builtin, may have the name of a layer.
        known = {f.name for f in host} | set(classes) | self._source.kernels.keys() | vars(builtins).keys()
        return bool(name) and name not in known

    def function(self, node: ast.AST) -> int:
        """Python's id of the innermost function around `node`; 0 if there is none."""
        around = (each for each in self._source.ancestors(node) if isinstance(each, Function) and each is not node)
        return next(map(id, around), 0)

    def _named_outside_forward(self, functions: list[Function]) -> set[str]:
        """Names in backward methods, and in branches for training or another device, whose kernels forward may omit."""
        parts: list[ast.AST] = [node for node in functions if node.name == "backward"]
        for node in self._source.nodes:
            if isinstance(node, (ast.If, ast.IfExp)) and _tests_device_or_mode(node.test):
                parts += _dead_branch(node)
        return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}

    def _named_in_kernels(self) -> set[str]:
        named = set()
        for kernel in self._source.kernels.values():
            named |= {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)} - {kernel.name}
        return named

    def _attributes(self) -> tuple[dict[str, str], dict[str, str], set[str]]:
        """Classify names and attributes of `self` by their values.

        Returns:
            Those that hold a layer of torch.nn or a function of PyTorch, with its name; those that hold a container of
            such, with the name of one; attributes that hold state.
        """
        layers: dict[str, str] = {}
        stacks: dict[str, str] = {}
        state: set[str] = set()
        for target, value in self._assignments():
            name = self._layer(value) if isinstance(value, ast.Call) else ""
            if name in ("Parameter", "Buffer"):
                state.add(target)
            elif name in ("ModuleDict", "ModuleList", "Sequential") and (inner := self._layer_in_container(value)):
                stacks[target] = inner
            elif name[:1].isupper() and name not in TYPES:
                layers[target] = name
            elif not name and target.startswith("self.") and (function := self._function_in(value)):
                (stacks if isinstance(value, (ast.Dict, ast.List, ast.Tuple)) else layers)[target] = function
        for node in self._source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                name, first = node.func.attr, node.args[0]
                if name in ("register_buffer", "register_parameter") and isinstance(first, ast.Constant):
                    state.add("self." + str(first.value))
        return layers, stacks, state

    def _assignments(self) -> Iterator[tuple[str, ast.expr]]:
        """Names and attributes of `self`, each with a value that is assigned to it."""
        for node in self._source.nodes:
            if isinstance(node, ast.Assign):
                yield from ((target, node.value) for target in map(_target, node.targets) if target)
            elif isinstance(node, ast.Call) and len(node.args) > 1:
                *owner, name, value = node.args
                by_name = last_name(node.func) in ("add_module", "register_module") and root(node.func) == "self"
                by_name |= last_name(node.func) == "setattr" and [ast.unparse(part) for part in owner] == ["self"]
                if by_name and isinstance(name, ast.Constant):
                    yield "self." + str(name.value), value

    def _function_in(self, value: ast.expr) -> str:
        """Name of a computing function of PyTorch that `value` refers to without calling it; "" if there is none."""
        if isinstance(value, ast.Lambda):
            value = value.body
        elif isinstance(value, ast.Call) and self._source.path(value.func) != "functools.partial":
            return ""
        paths = (self._source.path(node) for node in ast.walk(value))
        return next((path.rsplit(".", 1)[-1] for path in paths if is_function(path)), "")

    def _layer(self, node: ast.Call) -> str:
        """Name of the class of torch.nn that the call constructs; "" for other calls."""
        path = self._source.path(node.func)
        return path.rsplit(".", 1)[-1] if path.startswith("torch.nn.") else ""

    def _layer_in_container(self, node: ast.expr) -> str:
        """Name of a computing layer in a container; "" if there is none, or a layer is not of torch.nn."""
        made = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call) and inner is not node]
        names = [self._layer(inner) for inner in made if last_name(inner.func)[:1].isupper()]
        return next((name for name in names if name not in TYPES), "") if all(names) else ""

    def _tensors_of(self, function: Function) -> set[str]:
        """Parameters that the function uses as tensors, and names of tensors that it allocates."""
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


def _returns(function: Function) -> bool:
    """True if the function returns a value."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def live(node: ast.AST) -> Iterator[ast.AST]:
    """Descendants of a node that can run."""
    for child in _children(node):
        yield child
        yield from live(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Children of a node that can run: neither after a return nor under a condition that is never true."""
    left_out = _dead_branch(node)
    if isinstance(node, ast.For) and _is_empty(node.iter):
        left_out += node.body
    for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if isinstance(body, list):
            ends = next((at for at, child in enumerate(body) if _ends_block(child)), len(body))
            left_out += body[ends + 1 :]
    yield from (child for child in ast.iter_child_nodes(node) if child not in left_out)


def _dead_branch(node: ast.AST) -> list[ast.AST]:
    """Nodes under a condition that is never true, or an early return for inputs of another dtype, device or rank."""
    if not isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return []
    if (truth := _truth(node.test)) is None:
        if not isinstance(node, ast.If) or node.orelse or not _INPUT_CONDITION.search(ast.unparse(node.test)):
            return []
        return list(node.body) if any(map(_ends_block, node.body)) else []
    arm = node.orelse if truth else node.body
    return list(arm) if isinstance(arm, list) else [arm]


def _ends_block(statement: ast.AST) -> bool:
    """True if no statement after it in its block runs."""
    if isinstance(statement, ast.If) and (truth := _truth(statement.test)) is not None:
        return any(map(_ends_block, statement.body if truth else statement.orelse))
    return isinstance(statement, (ast.Return, ast.Raise))


def _tests_device_or_mode(test: ast.expr) -> bool:
    texts = [ast.unparse(part) for part in ast.walk(test) if isinstance(part, ast.expr)]
    return any(pattern.fullmatch(text) for pattern in (_ALWAYS_TRUE, _ALWAYS_FALSE) for text in texts)


def _truth(test: ast.expr) -> bool | None:
    """The value of a condition; None if it is unknown. No candidate runs as `__main__`."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    text = ast.unparse(test)
    if _ALWAYS_TRUE.fullmatch(text):
        return True
    if _ALWAYS_FALSE.fullmatch(text):
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.Or)  # the value of one part that decides the whole
        parts = {_truth(value) for value in test.values}
        return decides if decides in parts else None if None in parts else not decides
    return False if text in MAIN_TESTS else None


def _is_empty(node: ast.expr) -> bool:
    none = isinstance(node, ast.Call) and ast.unparse(node) == "range(0)"
    return none or (isinstance(node, (ast.Tuple, ast.List)) and not node.elts)


def _target(target: ast.AST) -> str:
    """The text of an assignment's target if it is an attribute of `self` or a name; "" for other targets."""
    own = isinstance(target, ast.Attribute) and root(target) == "self"
    return ast.unparse(target) if own or isinstance(target, ast.Name) else ""


def _effective_methods(node: ast.ClassDef, host: list[Function]) -> list[Function]:
    """The methods of a class, without those that a later definition replaces."""
    return list(
        {member.name: member for member in node.body if isinstance(member, Function) and member in host}.values()
    )
