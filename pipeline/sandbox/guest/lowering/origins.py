"""Which expression of the reference an operator comes from, and which one each value of a kernel.

Inductor prints the first as "Source Nodes" of a kernel and of each launch. Of the values it knows nothing: they are
followed from the operator that is lowered, through the loops that are fused, to the lines that are generated.
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


# What a trace assumes of sizes is told apart by who asked, see `guards`, and this file only passes calls on.
uninteresting_files().add(__file__)


class Expressions(TorchFunctionMode):
    """While it is active, operators that `make_fx` records are told the expression of `module`'s source that calls
    them: "self.fc(x)", "x.mean(1)", or "self.net[0](...)" where it is torch that calls a child."""

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
        if getattr(func, "__name__", "") == "__get__":  # of `x.shape`, mostly
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
        """The expression of the innermost frame that is of the source, or the child of torch's that runs."""
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
        """What the frame evaluates, with `self` spelled from the module that is lowered; "" if that is not known."""
        place = places(frame.f_code, frame.f_lasti)[-1]
        # A method's call on a line of its own begins, for Python, at the method's name.
        node = self._nodes.get(place) or self._nodes.get((place[1], place[3]))
        if node is None:
            return ""
        text = ast.unparse(node)
        if not any(isinstance(part, ast.Name) and part.id == "self" for part in ast.walk(node)):
            return text
        path = self._paths.get(id(frame.f_locals.get("self")))
        access = _access(path) if path is not None else ""
        return ast.unparse(_From(access).visit(ast.parse(text))) if access else ""


class _From(ast.NodeTransformer):
    def __init__(self, access: str) -> None:
        self._access = access

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self._access, mode="eval").body if node.id == "self" else node


def _access(path: str) -> str:
    """ "self.layers[0].fc" for "layers.0.fc"; "" if it cannot be written so."""
    parts = path.split(".") if path else []
    if not all(part.isidentifier() or part.isdigit() for part in parts):
        return ""
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


class _Making:
    """The operator whose part of a loop is captured at the moment."""

    def __init__(self) -> None:
        self.node: Node | None = None

    def within(self, node: Node | None, function: Callable[..., Any]) -> Callable[..., Any]:
        def told(*args: Any) -> Any:
            before, self.node = self.node, node
            try:
                return function(*args)
            finally:
                self.node = before

        return told


def _source(node: Node) -> str:
    sources, operator = node.meta.get("from_node"), node.meta.get("original_aten")
    expression = sources[0].name if sources else node.name
    return f"{expression}, {operator._overloadpacket}" if isinstance(operator, OpOverload) else expression


@contextlib.contextmanager
def sources_of_values() -> Iterator[dict[str, dict[str, list[str]]]]:
    """Kernel -> source -> names of the values in the kernel that come from it; filled as code is generated.

    A source is an expression and the operator that it became: "F.silu(x), aten.silu".
    """
    found: dict[str, dict[str, list[str]]] = {}
    making = _Making()
    store_function, define_kernel = ir.ComputedBuffer.get_store_function, TritonScheduling.define_kernel
    create_node, create_value = LightTracer.create_node, TritonKernel.create_cse_var

    def loops_made(self: Any) -> None:
        ir.IRNode.__post_init__(self)
        self._post_init_setattr("made_for", V.graph.current_node)
        self._post_init_setattr("inner_fn", making.within(self.made_for, self.inner_fn))

    def stores(self: Any) -> Callable[..., None]:
        return making.within(getattr(self.data, "made_for", None), store_function(self))

    def captured(self: Any, *args: Any, **kwargs: Any) -> Node:
        node = create_node(self, *args, **kwargs)
        node.meta["made_for"] = making.node
        return node

    def named(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = create_value(self, *args, **kwargs)
        made_for = getattr(V.interpreter, "current_node", None) and V.interpreter.current_node.meta.get("made_for")
        if made_for is not None:
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


def told(text: str, found: dict[str, dict[str, list[str]]]) -> str:
    """Inductor's source with what was found as comments before its kernels."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        name, _, rest = line.partition(" = ")
        if rest.startswith("async_compile.triton(") and (values := found.get(name)):
            lines.append("# Source node to value mapping:\n")
            lines += [f"#   {source} => {', '.join(names)}\n" for source, names in values.items()]
        lines.append(line)
    return "".join(lines)
