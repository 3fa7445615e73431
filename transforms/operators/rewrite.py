"""Rewrite the definitions of a module's file: layers become classes of kernels, and calls of PyTorch of functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy

from kernelquarry.filters.language.idle import is_text
from kernelquarry.pipeline.schema import parse_python
from kernelquarry.transforms.slice.traced_graph import Node

from .calls import NotWritten, is_view
from .layers import USUAL, class_name, function_of, layer_result, result_of
from .module_file import ModuleFile
from .write_call import OWN, SETS, operands, parsed, write_call, write_set

ENTRY, NEW = "Model", "ModelNew"
# Layers that compute nothing, or give a view.
_PLAIN = frozenset("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Identity Sequential Flatten Unflatten".split())
_KEPT = ("to", "float", "type", "detach", "clone")  # which the language has
_PASSING = (*_KEPT, "type_as", "dropout", "cat", "concat", *"+-*/")  # may give what they take


class Rewriter(ast.NodeTransformer):
    """Rewrites definitions in place, and collects the `functions` of the library that they call.

    `layers` has the result of `forward` of each layer that the module names, `called` of those that were called.
    """

    def __init__(self, file: ModuleFile, graph: Sequence[Node]) -> None:
        self._file, self._graph = file, graph
        self._places = defaultdict[tuple[int, ...], list[int]](list)  # of the nodes that an expression made
        self._sets = defaultdict[tuple[int, ...], list[Node]](list)  # by the expression of the elements that are set
        results = defaultdict[str, set[str]](set)
        for place, node in enumerate(graph):
            if node.name == SETS:
                self._sets[node.span].append(node)
            elif node.span:
                self._places[node.span].append(place)
            if node.kind == "layer" and node.operator not in _PLAIN:
                results[node.operator].add(layer_result(node.operator, node.arguments))
        if differing := [name for name, found in results.items() if len(found) > 1]:
            raise NotWritten(f"layers {differing[0]} that differ")
        self._gives_two = any(node.kind == "item" for node in graph)
        self.called = {name: found.pop() for name, found in results.items()}
        self.layers = dict(self.called)
        self.functions: dict[str, None] = {}
        self._owner: ast.ClassDef | None = None  # of the statements that are visited
        self._inherited = list(filter(None, map(self._inherited_layer, file.definitions.values())))
        # Whether a layer of such a class was called, or the module is one.
        self.is_inherited = bool(self._inherited_layer(file.definitions.get(ENTRY)))

    # Definitions

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        if node.name == ENTRY:
            node.name = NEW
        bases = [base for base in node.bases if self._file.path(base) != "abc.ABC"]
        if self._inherited_layer(node):
            bases = [self.visit(base) for base in bases]
        node.bases = [ast.Name(NEW) if isinstance(b, ast.Name) and b.id == ENTRY else b for b in bases]
        self._owner = node
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        kept = self._file.reached.get(node, set()) & methods.keys()
        node.body = [
            each if isinstance(each, ast.AnnAssign) else self.visit(each)
            for each in node.body
            if not is_text(each) and (not isinstance(each, ast.FunctionDef) or each.name in kept)
        ] or [ast.Pass()]
        if node.name == NEW and "__init__" in kept:
            methods["__init__"].body[:0] = self._replacements(methods["__init__"])
        return node

    def _replacements(self, constructor: ast.FunctionDef) -> Iterator[ast.stmt]:
        """Statements that replace layers of PyTorch, and their classes, among the constructor's arguments."""
        given = self._file.definitions.get("get_init_inputs")
        returned = given.body[-1] if isinstance(given, ast.FunctionDef) else None
        values = returned.value if isinstance(returned, ast.Return) else None
        for argument, value in zip(constructor.args.args[1:], getattr(values, "elts", ()), strict=False):
            name, made = argument.arg, value.func if isinstance(value, ast.Call) else None
            layer = self._layer_name(made or value)
            is_made, new = f"isinstance({name}, nn.{layer})", f"{class_name(layer)}()"
            if made is None:
                is_made, new = f"{name} == nn.{layer}", class_name(layer)
            if (made is None or layer in ("GELU", "ReLU")) and layer and self._is_known(layer):
                yield from parse_python.parse(f"{name} = {new} if {is_made} else {name}").body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        node.args = self.visit(node.args)
        node.body = [self.visit(each) for each in node.body if not is_text(each)] or [ast.Pass()]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """An assignment without the annotation."""
        if node.value is None:
            return node
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    # Statements

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        places = self._places_of(node)
        node.value = self.visit(node.value)
        if not places:
            return node
        if isinstance(node.target, ast.Subscript):
            read = self.visit(deepcopy(node.target))
            changed = self._written(places, ast.copy_location(ast.AugAssign(read, node.op, node.value), node))
            is_set = _span(node.target) in self._sets
            return self._set(node.target, changed) if is_set else ast.Assign([node.target], changed)
        if not isinstance(node.target, ast.Name):
            raise NotWritten("an attribute that is changed")
        return ast.Assign([node.target], self._written(places, node))

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A call that changes a variable becomes an assignment to it."""
        match node.value:
            case ast.Call(func=ast.Attribute(value=changed, attr=name)) if name[-1] == "_" and self._places_of(
                node.value
            ):
                if not isinstance(changed, ast.Name):
                    raise NotWritten("a value that is changed")
                return ast.Assign([ast.Name(changed.id, ast.Store())], self.visit(node.value))
        node.value = self.visit(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node:
            case ast.Assign(targets=[ast.Subscript() as target]) if _span(target) in self._sets:
                return self._set(target, self.visit(node.value))
        parts = [each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.expr)]
        if any(_span(each) in self._sets for each in parts):
            raise NotWritten("elements that are set together")
        self.generic_visit(node)
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[one, ast.Name(id="_")])], value=ast.Tuple(elts=[value, _])) | (
                ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id="_"), one])], value=ast.Tuple(elts=[_, value]))
            ):
                return ast.Assign([one], value)
        return node

    def _set(self, target: ast.Subscript, value: ast.expr) -> ast.stmt:
        """A call that sets elements."""
        calls = self._sets[_span(target)]
        target.ctx = ast.Load()
        target.value, target.slice = self.visit(target.value), self.visit(target.slice)
        texts = [write_set(self._graph, call, target, value, self.functions) for call in calls]
        found = {ast.unparse(each): each for each in texts}
        if len(found) != 1:
            raise NotWritten("elements that are set in several ways")
        return ast.Expr(next(iter(found.values())))

    # Expressions

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return self._of_super(node) or self._by_name(node) or self._expression(node)

    def visit_BinOp(self, node: ast.expr) -> ast.expr:
        return self._expression(node)

    visit_UnaryOp = visit_Compare = visit_BinOp

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        found = self._expression(node)
        match found:
            case ast.Subscript(value=ast.Tuple(elts=[one, other]), slice=ast.Constant(value=int() as index)):
                return (one, other)[index]
        return found

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if layer := self._layer(node):
            return layer
        found = self._expression(node)
        match found:
            case ast.Attribute(value=ast.Tuple(elts=[one, other]), attr="values" | "indices" as name):
                return one if name == "values" else other
            case ast.Attribute(value=ast.Call() as call, attr="values" | "indices" as name) if _is_own(call):
                return ast.Subscript(call, ast.Constant(int(name == "indices")), ast.Load())
            case ast.Attribute(value=ast.Name(), attr="values" | "indices") if self._gives_two:
                raise NotWritten("results with names")
        return found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == ENTRY:
            return ast.copy_location(ast.Name(NEW, node.ctx), node)
        return self._layer(node) or node

    def _inherited_layer(self, node: ast.stmt | None) -> str:
        """The layer whose `forward` a class has; "" if it has its own."""
        if not isinstance(node, ast.ClassDef) or "forward" in {getattr(each, "name", "") for each in node.body}:
            return ""
        names = [self._layer_name(base) for base in node.bases]
        layer = next((name for name in names if function_of(name)), "")
        # The class of a layer is written once, for the arguments of those that were called.
        is_usual = not layer or self.layers.get(layer) in (None, layer_result(layer, USUAL))
        return layer if is_usual else ""

    def _of_super(self, node: ast.Call) -> ast.expr | None:
        """The result of `super().forward(x)` in a class that derives from a layer; None for other calls."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="forward"), args=[x], keywords=[]
            ) if self._owner:
                layer = next(filter(None, map(self._layer_name, self._owner.bases)), "")
                calls = [self._graph[place] for place in self._places_of(node)]
                if function_of(layer) and all(_computes(call, layer) for call in calls):
                    return result_of(layer, self.visit(x), self.functions)
        return None

    def _by_name(self, node: ast.Call) -> ast.expr | None:
        """A table in place of `getattr(nn, name)`, of the layers that were called and whose names the file has."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name]) if self._file.path(owner) == "torch.nn":
                if isinstance(name, ast.Constant):
                    return self.visit_Attribute(ast.Attribute(owner, str(name.value), ast.Load()))
                layers = [layer for layer in self.called if layer in self._file.texts]
                entries = ", ".join(f"'{layer}': {class_name(layer)}" for layer in layers)
                return ast.Subscript(parsed(f"{{{entries}}}"), self.visit(name), ast.Load()) if layers else None
        return None

    def _places_of(self, node: ast.AST) -> list[int]:
        return self._places.get(_span(node), []) if isinstance(node, ast.expr | ast.AugAssign) else []

    def _expression(self, node: ast.expr) -> ast.expr:
        places = self._places_of(node)
        self.generic_visit(node)
        return self._written(places, node) if places else node

    def _written(self, places: Sequence[int], node: ast.AST) -> ast.expr:
        """The expression, whatever call made it. Raises: NotWritten: its calls have no text in common."""
        calls = [self._graph[place] for place in places]
        if len({call.dtype for call in calls}) == 1:  # `x + n` computes, though n was 0 in one of the calls
            computing = [p for p, call in zip(places, calls, strict=True) if not _is_neutral(call)]
            places = computing or places
        found = {ast.unparse(each): each for each in (self._one(place, node) for place in places)}
        if len(found) != 1:
            raise NotWritten("calls that differ at one place")
        written = next(iter(found.values()))
        if self._sets and written is not node and not isinstance(written, ast.Tuple) and not _is_own(written):
            self.functions.setdefault("copied")  # a call that gives a new tensor, whose elements may be set
            return ast.Call(ast.Name(f"{OWN}copied", ast.Load()), [written], [])
        return written

    def _one(self, place: int, node: ast.AST) -> ast.expr:
        call = self._graph[place]
        copies = bool(self._sets) and call.operator == "clone"  # whose elements may be set
        is_plain = call.operator in _PLAIN or call.kind == "layer" or is_view(call)
        if isinstance(node, ast.expr) and is_plain and not copies:
            return node
        of_layer = any(_computes(call, layer) for layer in self._inherited)
        if of_layer and isinstance(node, ast.Call) and not _calls(node, call.operator):
            self.is_inherited = True
            return node
        if call.kind == "unknown" and not copies:
            return self._identity(call, node)
        return ast.copy_location(write_call(self._graph, place, node, self.functions), node)

    def _identity(self, call: Node, node: ast.AST) -> ast.expr:
        """The operand that a call passes on, or the call itself if the language has it."""
        if not call.takes or call.operator not in _PASSING:
            raise NotWritten(f"a call of {call.name}")
        if isinstance(node, ast.Call) and call.operator in _KEPT:
            return node
        found = operands(node, call)
        name = "x" if isinstance(call.args[0], dict) and call.args[0].keys() & {"node", "list", "tuple"} else "other"
        match found.get(name):
            case ast.List(elts=[one]) | ast.Tuple(elts=[one]):
                return one
            case ast.expr() as one:
                return one
        raise NotWritten(f"a call of {call.name}")

    def _layer(self, node: ast.expr) -> ast.Name | None:
        """The class that stands for a layer of PyTorch."""
        name = self._layer_name(node)
        if not name or not self._is_known(name):
            return None
        return ast.copy_location(ast.Name(class_name(name), ast.Load()), node)

    def _layer_name(self, node: ast.expr) -> str:
        path = self._file.path(node)
        name = path.rpartition(".")[2]
        return name if path in (f"torch.nn.{name}", f"torch.nn.modules.{name}") else ""

    def _is_known(self, layer: str) -> bool:
        """True for a layer of the library, also if no call of it was recorded."""
        if layer not in self.layers:
            with suppress(NotWritten):
                self.layers[layer] = layer_result(layer, USUAL)
        return layer in self.layers


def _span(node: ast.expr | ast.AugAssign) -> tuple[int, ...]:
    if not hasattr(node, "lineno"):  # written by us
        return ()
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _calls(node: ast.Call, function: str) -> bool:
    """True if the expression names the function, as in `F.linear(x, weight)`, and no layer that calls it."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="self")):
            return False
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name == function
    return False


def _computes(call: Node, layer: str) -> bool:
    """True if a call may be that of a layer's `forward`."""
    named = any(
        isinstance(arg, dict) and isinstance(arg.get("value"), str) for arg in (*call.args, *call.kwargs.values())
    )
    return call.operator == function_of(layer) and not named


def _is_neutral(call: Node) -> bool:
    return call.kind == "unknown" and call.operator in ("cat", "concat", *"+-*/")


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(OWN)
