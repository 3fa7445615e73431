"""Host code that the language writes otherwise: values that are known, checks, decorators, contexts."""

from __future__ import annotations

import ast

from .module_file import ModuleFile
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
_DECORATORS = ("abc.abstractmethod", "torch.fx.wrap", "torch.jit.ignore", "torch.jit.export", "torch.jit.unused")


class HostCode(ast.NodeTransformer):
    """Rewrites definitions of a file in place."""

    def __init__(self, file: ModuleFile) -> None:
        self._path = file.path

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list = [
            each for each in node.decorator_list if self._path(each) not in _DECORATORS and not self._keeps_dtypes(each)
        ]
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(func=function, args=[test, message], keywords=[]) if self._path(function) == "torch._assert":
                return ast.copy_location(ast.Assert(self.visit(test), self.visit(message)), node)
        self.generic_visit(node)
        return node

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
        return parsed(_CALLS[path]) if path in _CALLS else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if (path := self._path(node)) in _VALUES:
            return parsed(_VALUES[path])
        self.generic_visit(node)
        return node
