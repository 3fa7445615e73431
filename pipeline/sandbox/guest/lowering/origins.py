"""Track the expressions of the reference that operators and values of kernels come from.

Inductor prints the expressions of operators as "Source Nodes" of a kernel and of each launch. Values are tracked here:
from the operator that is lowered, through the loops that are fused, to the generated lines.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from unittest import mock

from torch import nn
from torch._inductor import ir
from torch._inductor.codegen.triton import TritonKernel, TritonScheduling
from torch._inductor.loop_body import LightTracer
from torch._inductor.virtualized import V
from torch._ops import OpOverload
from torch.fx import Node
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.symbolic_shapes import uninteresting_files
from torch.fx.traceback import NodeSource
from torch.overrides import TorchFunctionMode

from .source_position import places, source_of

_LONGEST = 100  # characters of an expression that helps a reader

# `size_guards` judges an assumption by the file that caused it; this file only passes calls on.
uninteresting_files().add(__file__)


class Expressions(TorchFunctionMode):
    """Annotates operators that `make_fx` records with the expression of `module`'s source that calls them.

    Examples are "self.fc(x)", "x.mean(1)", and "self.net[0](...)" where torch calls a child.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._paths = {id(child): name for name, child in module.named_modules()}
        self._nodes: dict[tuple[int, ...], ast.AST] = {}
        self._file, tree = source_of(module)
        for node in ast.walk(tree):
            if isinstance(node, ast.expr | ast.AugAssign):
                end = (node.end_lineno or 0, node.end_col_offset or 0)
                self._nodes.setdefault((node.lineno, end[0], node.col_offset, end[1]), node)
                if isinstance(node, ast.Call):
                    self._nodes.setdefault(end, node)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__get__":  # mostly of `x.shape`
            return func(*args, **(kwargs or {}))
        meta = fx_traceback.get_current_meta()
        if text := self._expression(sys._getframe(1)):
            source = NodeSource(None)
            source.node_info = NodeSource.NodeInfo(text, "", 0)
            meta["from_node"] = [source]
        try:
            return func(*args, **(kwargs or {}))
        finally:
            meta.pop("from_node", None)

    def _expression(self, frame: FrameType | None) -> str:
        """The expression of the innermost frame in the source, or the call of the torch layer that runs."""
        child = ""
        while frame is not None and frame.f_code.co_filename != self._file:
            code = frame.f_code
            if not child and code.co_name == "forward" and code.co_varnames[:1] == ("self",):
                child = self._paths.get(id(frame.f_locals["self"]), "")
            frame = frame.f_back
        access = _access(child) if child else ""
        text = self._text(frame) if frame is not None else ""
        if access and not text.startswith(f"{access}("):
            text = f"{access}(...)"
        return text if len(text) <= _LONGEST else ""

    def _text(self, frame: FrameType) -> str:
        """The expression that the frame evaluates, with the path from the traced module for `self`; "" if unknown."""
        place = places(frame.f_code, frame.f_lasti)[-1]
        # For Python, a method call on a line of its own begins at the name of the method.
        node = self._nodes.get(place) or self._nodes.get((place[1], place[3]))
        if node is None:
            return ""
        text = ast.unparse(node)
        if not any(isinstance(part, ast.Name) and part.id == "self" for part in ast.walk(node)):
            return text
        path = self._paths.get(id(frame.f_locals.get("self")))
        access = _access(path) if path is not None else ""
        tree = ast.parse(text)
        for part in ast.walk(tree):
            if isinstance(part, ast.Name) and part.id == "self":
                part.id = access
        return ast.unparse(tree) if access else ""


def _access(path: str) -> str:
    """The path of a submodule as an expression, "self.layers[0].fc" for "layers.0.fc"; "" if it is no expression."""
    parts = path.split(".") if path else []
    if not all(part.isidentifier() or part.isdigit() for part in parts):
        return ""
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def _source(node: Node) -> str:
    sources, operator = node.meta.get("from_node"), node.meta.get("original_aten")
    expression = sources[0].name if sources else node.name
    return f"{expression}, {operator._overloadpacket}" if isinstance(operator, OpOverload) else expression


def _made_for(interpreter: Any) -> Node | None:
    """The operator that the node which the interpreter runs is a part of."""
    node = getattr(interpreter, "current_node", None)
    return node.meta.get("made_for") if node is not None else None


@contextlib.contextmanager
def sources_of_values() -> Iterator[dict[str, dict[str, list[str]]]]:
    """Record the sources of values while code is generated: kernel -> source -> names of values in the kernel.

    A source is an expression and the operator that it became: "F.silu(x), aten.silu".
    """
    found: dict[str, dict[str, list[str]]] = {}
    current: Node | None = None  # the operator whose part of a loop is captured
    store_function, define_kernel = ir.ComputedBuffer.get_store_function, TritonScheduling.define_kernel
    create_node, create_value = LightTracer.create_node, TritonKernel.create_cse_var

    def within(node: Node | None, function: Callable[..., Any]) -> Callable[..., Any]:
        def captured_within(*args: Any) -> Any:
            nonlocal current
            before, current = current, node
            try:
                return function(*args)
            finally:
                current = before

        return captured_within

    def loops_made(self: Any) -> None:
        ir.IRNode.__post_init__(self)
        self._post_init_setattr("made_for", V.graph.current_node)
        self._post_init_setattr("inner_fn", within(self.made_for, self.inner_fn))

    def stores(self: Any) -> Callable[..., None]:
        return within(getattr(self.data, "made_for", None), store_function(self))

    def captured(self: Any, *args: Any, **kwargs: Any) -> Node:
        node = create_node(self, *args, **kwargs)
        node.meta["made_for"] = current or _made_for(V.interpreter)  # a body may be captured again
        return node

    def named(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = create_value(self, *args, **kwargs)
        if (made_for := _made_for(V.interpreter)) is not None:
            vars(self).setdefault("values", {}).setdefault(_source(made_for), []).append(value.name)
        return value

    def defined(self: Any, source: str, schedule: Any, kernel: Any) -> str:
        name = define_kernel(self, source, schedule, kernel)
        found.setdefault(name, vars(kernel).get("values", {}))
        return name

    with (
        mock.patch.object(ir.Loops, "__post_init__", loops_made),
        mock.patch.object(ir.ComputedBuffer, "get_store_function", stores),
        mock.patch.object(LightTracer, "create_node", captured),
        mock.patch.object(TritonKernel, "create_cse_var", named),
        mock.patch.object(TritonScheduling, "define_kernel", defined),
    ):
        yield found


def with_values(text: str, found: dict[str, dict[str, list[str]]]) -> str:
    """Inductor's source with the sources of values as comments before its kernels."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        name, _, rest = line.partition(" = ")
        if rest.startswith("async_compile.triton(") and (values := found.get(name)):
            lines.append("# Source node to value mapping:\n")
            lines += [f"#   {source} => {', '.join(names)}\n" for source, names in values.items()]
        lines.append(line)
    return "".join(lines)
