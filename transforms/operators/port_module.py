"""Port a module to kernels: its own classes, in which each computation of PyTorch is a call of `library`.

Layers of PyTorch become classes of the same state, see `layers.py`. All else stays as the module has it: how it is
constructed, its branches, loops and views.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from kernelquarry.pipeline.schema import parse_python
from kernelquarry.transforms.slice.traced_graph import Node
from kernelquarry.transforms.tidy.syntax.print_code import file_text, function_text

from .calls import NotWritten
from .host_code import HostCode
from .layers import class_name, layer_text
from .library_text import library_text
from .module_file import ModuleFile, defined, names, needed_early
from .rewrite import ENTRY, NEW, Rewriter
from .write_call import OWN

_IMPORTS = ("import torch", "import triton", "import triton.language as tl", "from torch import nn")


def port_module(code: str, graph: Sequence[Node]) -> str:
    """The file of a module's kernels; the graph has the calls that it made.

    Raises:
        NotWritten: the library lacks a call, or the module makes it in a way that has no such text.
    """
    file = ModuleFile(code)
    rewriter = Rewriter(file, graph)
    nodes = _rewritten(file, rewriter)
    has_kernel = "_kernel[" in library_text([*rewriter.functions])
    if not (has_kernel or rewriter.called or rewriter.is_inherited):
        _copy_result(nodes, graph)
        rewriter.functions.setdefault("copied")
    named = {name for node in nodes for name in names(node)}
    if outside := [name for name in rewriter.called if class_name(name) not in named]:
        raise NotWritten(f"a layer {outside[0]} that the module does not make")
    classes = {class_name(name): layer_text(name, result) for name, result in rewriter.layers.items()}
    library = library_text([*rewriter.functions, *_called("\n".join(classes.values()))])
    _give_way(nodes, {"triton", "tl", *(name for node in parse_python.parse(library).body for name in defined(node))})
    first = {name for node in nodes for name in needed_early(node)}
    early = [text for name, text in classes.items() if name in first]
    late = [text for name, text in classes.items() if name not in first]
    texts = [*early, *map(function_text, nodes), *late, library]
    return file_text([*file.imports_for(nodes), *_IMPORTS], texts)


def _rewritten(file: ModuleFile, rewriter: Rewriter) -> list[ast.stmt]:
    """The definitions that the module needs, in their order."""
    kept: dict[str, ast.stmt] = {}
    host = HostCode(file)
    pending = [ENTRY]
    while pending:
        name = pending.pop()
        if name in file.definitions and name not in kept:
            definition = file.definitions[name]
            kept |= dict.fromkeys(defined(definition), host.visit(rewriter.visit(definition)))
            pending += names(kept[name])
    return list({id(kept[name]): kept[name] for name in file.definitions if name in kept}.values())


def _copy_result(nodes: Sequence[ast.stmt], graph: Sequence[Node]) -> None:
    """Let a kernel copy what a module of views returns. Raises: NotWritten: that is no tensor."""
    methods = [each for node in nodes if getattr(node, "name", "") == NEW for each in getattr(node, "body", ())]
    forward = [each for each in methods if isinstance(each, ast.FunctionDef) and each.name == "forward"]
    returns = [each for one in forward for each in ast.walk(one) if isinstance(each, ast.Return)]
    if not returns or not graph[-1].shapes or any(node.is_operator for node in graph):
        raise NotWritten("no kernel")
    for each in returns:
        if each.value is None or isinstance(each.value, ast.Tuple | ast.List | ast.Dict):
            raise NotWritten("no kernel")
        each.value = ast.Call(ast.Name(f"{OWN}copied", ast.Load()), [each.value], [])


def _called(text: str) -> list[str]:
    """Functions that a text calls, in order."""
    calls = [node for node in ast.walk(parse_python.parse(text)) if isinstance(node, ast.Call)]
    found = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    return [name for name in dict.fromkeys(found) if not hasattr(builtins, name)]


def _give_way(nodes: Sequence[ast.stmt], taken: set[str]) -> None:
    """Rename what has a name of the library, whose calls then get theirs."""
    for node in nodes:
        for each in ast.walk(node):
            match each:
                case ast.Name(id=name):
                    each.id = _free(name, taken)
                case ast.arg(arg=name):
                    each.arg = _free(name, taken)
                case ast.keyword(arg=str(name)):
                    each.arg = _free(name, taken)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.name = _free(node.name, taken)


def _free(name: str, taken: set[str]) -> str:
    return name.removeprefix(OWN) if name.startswith(OWN) else f"{name}_" if name in taken else name
