"""Host code that the language writes otherwise: values that are known, checks, decorators, contexts."""

from __future__ import annotations

import ast

from kernelquarry.filters.language.idle import is_text
from kernelquarry.filters.language.tables import TAKEN

from .module_file import ModuleFile, attributes
from .write_call import parsed

# Expressions by the path of what they call or name.
_CALLS = dict.fromkeys(
    (
        "torch.jit.is_scripting",
        "torch.jit.is_tracing",
        "torch.onnx.is_in_onnx_export",
        "torch.compiler.is_compiling",
        "torch._dynamo.is_compiling",
    ),
    "False",
)
_VALUES = {"numpy.pi": "3.141592653589793", "numpy.inf": "float('inf')", "numpy.e": "2.718281828459045"}
_AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
_RENAMED = TAKEN - {"forward"}
_DECORATORS = ("abc.abstractmethod", "torch.fx.wrap", "torch.jit.ignore", "torch.jit.export", "torch.jit.unused")


class HostCode(ast.NodeTransformer):
    """Rewrites definitions of a file in place."""

    def __init__(self, file: ModuleFile) -> None:
        self._file, self._path = file, file.path
        self._is_sequential = False
        self._sets_all = False  # whether the constructor of the class alone sets its attributes
        self._missing: dict[str, ast.expr] = {}  # attributes that it may not set: their values if so

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._is_sequential = any(self._path(base) == "torch.nn.Sequential" for base in node.bases)
        derives = any(isinstance(base, ast.Name) and base.id in self._file.definitions for base in node.bases)
        self._sets_all = not derives and any(getattr(each, "name", "") == "__init__" for each in node.body)
        self._missing = {}
        self.generic_visit(node)
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and each.name in _RENAMED:
                each.name = f"call_{each.name}"
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                started = 1 + next((place for place, line in enumerate(each.body) if _starts(line)), -1)
                each.body[started:started] = [
                    ast.Assign([_of_self(name, ast.Store())], value) for name, value in self._missing.items()
                ]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list = [
            each for each in node.decorator_list if self._path(each) not in _DECORATORS and not self._keeps_dtypes(each)
        ]
        self.generic_visit(node)
        node.body = [each for each in node.body if not isinstance(each, ast.Pass)] or [ast.Pass()]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(func=function, args=[test, message], keywords=[]) if self._path(function) == "torch._assert":
                return ast.copy_location(ast.Assert(self.visit(test), self.visit(message)), node)
            case ast.Call() if self._is_idle(node, ()):
                return ast.Pass()
        self.generic_visit(node)
        return node

    def _is_idle(self, node: ast.Expr, around: tuple[str, ...]) -> bool:
        """True for a text, or a call of a function that does nothing but compute and raise, outside of `around`."""
        match node.value:
            case ast.Call(func=ast.Name(id=name)) if name not in around:
                function = self._file.definitions.get(name)
            case _:
                return is_text(node)
        parts = list(ast.walk(function)) if isinstance(function, ast.FunctionDef) else []
        given = {each.arg for each in parts if isinstance(each, ast.arg)}
        changes = any(
            (isinstance(getattr(each, "ctx", None), ast.Store) and not isinstance(each, ast.Name | ast.Tuple))
            or (isinstance(each, ast.AugAssign) and ast.unparse(each.target) in given)
            or (isinstance(each, ast.Expr) and not self._is_idle(each, (*around, name)))
            for each in parts
        )
        return any(isinstance(each, ast.Raise) for each in parts) and not changes

    def visit_With(self, node: ast.With) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        is_idle = all(self._keeps_dtypes(each.context_expr) and not each.optional_vars for each in node.items)
        return node.body if is_idle else node

    def _keeps_dtypes(self, node: ast.expr) -> bool:
        """True for a context that turns automatic casts off, as they are in a call."""
        match node:
            case ast.Call(func=function, keywords=keywords) if self._path(function) in _AUTOCAST:
                return any(each.arg == "enabled" and ast.unparse(each.value) == "False" for each in keywords)
        return False

    def visit_Call(self, node: ast.Call) -> ast.expr:
        path = self._path(node.func)
        self.generic_visit(node)
        if path == "typing.cast" and len(node.args) == 2:
            return node.args[1]
        match node:
            case ast.Call(func=ast.Name(id="hasattr"), args=[ast.Name(id="self"), ast.Constant(value=str(name))]) if (
                self._sets_all
            ):
                self._missing[name] = ast.Constant(None)
                return ast.Compare(_of_self(name), [ast.IsNot()], [ast.Constant(None)])
            case ast.Call(
                func=ast.Name(id="getattr"),
                args=[ast.Name(id="self"), ast.Constant(value=str(name)), ast.Constant() as value],
            ) if self._sets_all:
                self._missing[name] = value
                return _of_self(name)
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr="_modules"), attr="values")
            ):
                return ast.Name("self", ast.Load()) if self._is_sequential else node
        return parsed(_CALLS[path]) if path in _CALLS else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if (path := self._path(node)) in _VALUES:
            return parsed(_VALUES[path])
        self.generic_visit(node)
        if node.attr in _RENAMED & self._file.methods and isinstance(node.value, ast.Name) and node.value.id == "self":
            node.attr = f"call_{node.attr}"
        return node


def _of_self(name: str, context: ast.expr_context | None = None) -> ast.Attribute:
    return ast.Attribute(ast.Name("self", ast.Load()), name, context or ast.Load())


def _starts(node: ast.stmt) -> bool:
    """True for the call of the constructor of the class before."""
    return isinstance(node, ast.Expr) and "__init__" in attributes(node)
