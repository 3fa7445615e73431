"""The expressions by which `forward` reaches the inputs of a graph and builds its result."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelquarry.pipeline.schema.records import Binding, Lowered, Probed, Source, Workload
from kernelquarry.transforms.workloads.axis_names import IMAGE_AXES, axis_word

from ..constructor.constructor_slice import forward_of
from ..refusals import NotTidied
from ..syntax.algebra import Polynomial
from ..syntax.ast_tools import tuple_text, unused_name

_STATE_DIMS = {
    (1, 0): "features", (2, 0): "out_features", (2, 1): "in_features", (3, 0): "out_channels", (3, 1): "in_channels",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """An input of the graph."""

    expression: str  # in `forward`
    role: str  # name after which parameters and variables are called
    is_input: bool  # a tensor of the call, not state


def signature(probed: Probed) -> ast.arguments:
    """The signature of the reference's `forward`; if torch defines it, one with the tensors of the workload.

    Raises:
        NotTidied: torch defines it, and the workload has arguments other than tensors.
    """
    found = forward_of(probed.python_code)
    workload = probed.workloads[0]
    if found is not None:
        return _named(found.args, workload)
    names = [re.sub(r"\W", "_", spec.name) or f"x{i}" for i, spec in enumerate(workload.tensors)]
    if json.loads(workload.args) != [{"tensor": i} for i in range(len(names))] or json.loads(workload.kwargs):
        raise NotTidied("a forward of torch's own with other arguments than tensors")
    return ast.arguments([], [ast.arg("self"), *map(ast.arg, names)], None, [], [], None, [])


def _named(taken: ast.arguments, workload: Workload) -> ast.arguments:
    """Name the arguments that a call passes as `*args` and `**kwargs`, and take no others.

    `*args` that are passed behind a default stay, since a name without a default cannot stand there.
    """
    known = {each.arg for each in [*taken.posonlyargs, *taken.args, *taken.kwonlyargs]}
    passed = len(json.loads(workload.args)) + 1 - len(taken.posonlyargs) - len(taken.args)
    rest, named, kept = list[ast.arg](), list[ast.arg](), None
    if taken.vararg is not None and taken.defaults and passed > 0:
        kept = taken.vararg
    elif taken.vararg is not None:
        names = [taken.vararg.arg] if passed == 1 else [f"{taken.vararg.arg}_{i}" for i in range(passed)]
        rest = [ast.arg(unused_name(name, known)) for name in names]
    if taken.kwarg is not None:
        named = [ast.arg(name) for name in json.loads(workload.kwargs) if name not in known and name.isidentifier()]
    defaults = [*taken.kw_defaults, *([None] * len(named))]
    return ast.arguments(
        taken.posonlyargs, [*taken.args, *rest], kept, [*taken.kwonlyargs, *named], defaults, None, taken.defaults
    )


def arguments(lowered: Lowered, forward: ast.arguments) -> dict[str, Argument]:
    """Map the inputs of the graph to their expressions in `forward`."""
    paths = _paths(lowered.probed.workloads[0], forward)
    # A child called "0" is usually an item of a list; a container whose source names its children may have no such
    # subscript.
    is_named = re.search(r"\b(add_module|OrderedDict|ModuleDict)\(", lowered.probed.python_code)
    child = '.get_submodule("{}")' if is_named else "[{}]"
    found = {b.argument: _argument(b, paths, child) for b in lowered.bindings if b.source is not Source.LITERAL}
    taken = set(re.findall(r"\w+", lowered.probed.python_code))
    for binding in lowered.bindings:
        if binding.source is Source.LITERAL:
            name = unused_name("constant", taken)
            found[binding.argument] = Argument(f"self.{name}", name, False)
    return found


def _argument(binding: Binding, paths: dict[int, str], child: str) -> Argument:
    if binding.source is Source.INPUT:
        path = paths[int(binding.name)]
        return Argument(path, re.sub(r"\W+", "_", path).strip("_"), True)
    return Argument(f"self{_access(binding.name, child)}", binding.name, False)


def _access(name: str, child: str) -> str:
    """Write a qualified name as attributes, ".layers[0].bias"; `child` formats a part that is a number."""
    head, *subscripts = re.split(r"(?=\[)", name, maxsplit=1)
    *owners, last = head.split(".")
    if not (last.isdigit() or last.isidentifier()):
        raise NotTidied(f"state called {name}")
    parts = []
    for part in [*owners, last]:
        own = f".{part}" if part.isidentifier() else f".get_submodule({json.dumps(part)})"
        parts.append(child.format(part) if part.isdigit() else own)
    return "".join([*parts, *subscripts])


def places(lowered: Lowered) -> dict[str, tuple[str, int]]:
    """The tensor that each graph input is, as in `guards.Place`."""
    return {
        binding.argument: ("input", int(binding.name)) if binding.source is Source.INPUT else ("state", index)
        for index, binding in enumerate(lowered.bindings)
    }


def shape_of(lowered: Lowered, argument: str) -> tuple[int, ...]:
    """The shape of a graph input that is a tensor of the call or an entry of the state, in the first workload."""
    binding = next(binding for binding in lowered.bindings if binding.argument == argument)
    if binding.source is Source.INPUT:
        return lowered.probed.workloads[0].tensors[int(binding.name)].shape
    return next(spec.shape for spec in lowered.probed.state if spec.name == binding.name)


def known_shapes(lowered: Lowered) -> dict[str, tuple[int, ...]]:
    """The shapes of the graph inputs that are tensors of the call or entries of the state, in the first workload."""
    state = {spec.name for spec in lowered.probed.state}
    own = [b for b in lowered.bindings if b.source is Source.INPUT or b.name in state]
    return {binding.argument: shape_of(lowered, binding.argument) for binding in own}


def size_word(lowered: Lowered, argument: str, dim: int) -> str:
    """A name for a size of a tensor of the call, or of the state."""
    source, index = places(lowered)[argument]
    rank = len(shape_of(lowered, argument))
    if source == "input":
        return axis_word(rank, dim)
    words = {size.size: size.word for size in lowered.constructor_sizes}
    return words.get(f"{source}{index}_{dim}") or _STATE_DIMS.get((min(rank, 3), dim), f"dim{dim}")


def axes_word(shape: Sequence[Polynomial], size: Polynomial) -> str:
    """The axes of an image whose sizes multiply to `size`: "height", "height_width"; "" if there are none."""
    words = IMAGE_AXES.get(len(shape), {})
    for first in words:
        product = shape[first]
        for last in range(first, len(shape)):
            product = product if last == first else product * shape[last]
            if product == size:
                return "_".join(words[dim] for dim in range(first, last + 1))
    return ""


def _paths(workload: Workload, forward: ast.arguments) -> dict[int, str]:
    """Map the index of each tensor of the call to an expression of `forward`'s arguments."""
    found: dict[int, str] = {}
    positional = [argument.arg for argument in [*forward.posonlyargs, *forward.args]][1:]

    def walk(path: str, tree: object) -> None:
        if isinstance(tree, dict) and tree.keys() == {"tensor"}:
            found.setdefault(tree["tensor"], path)
        elif isinstance(tree, dict):
            for key, value in tree.items():
                walk(f"{path}[{key!r}]", value)
        elif isinstance(tree, list):
            for position, value in enumerate(tree):
                walk(f"{path}[{position}]", value)

    for position, tree in enumerate(json.loads(workload.args)):
        if position < len(positional):
            walk(positional[position], tree)
        elif forward.vararg is not None:
            walk(f"{forward.vararg.arg}[{position - len(positional)}]", tree)
        else:
            raise NotTidied("more arguments than forward takes")
    keywords = positional + [argument.arg for argument in forward.kwonlyargs]
    for name, tree in json.loads(workload.kwargs).items():
        if name not in keywords and forward.kwarg is None:
            raise NotTidied(f"forward has no argument {name}")
        walk(name if name in keywords else f"{forward.kwarg.arg}[{name!r}]", tree)  # type: ignore[union-attr]
    return found


def short_roles(roles: Sequence[str]) -> list[str]:
    """The shortest distinct endings of qualified names, as identifiers: "weight", "fc1_weight"."""
    # torch renames a parametrized "fc.weight" to "fc.parametrizations.weight.original".
    plain = [re.sub(r"\.parametrizations\.(\w+)\.original$", r".\1", role) for role in roles]
    split = [re.findall(r"\w+", role) for role in plain]
    for length in range(1, max((len(parts) for parts in split), default=1) + 1):
        names = ["_".join(parts[-length:]) for parts in split]
        if len(set(names)) == len(set(roles)):
            break
    return [f"layer{name}" if name[:1].isdigit() else name for name in names] if roles else []


def result(tree: Any, values: list[str]) -> str:
    """The expression of `forward`'s result; `tree` as in `Lowered.outputs`."""
    ((kind, content),) = tree.items()
    match kind:
        case "tensor":
            return values[content]
        case "tuple":
            return tuple_text([result(item, values) for item in content])
        case "list":
            return f"[{', '.join(result(item, values) for item in content)}]"
        case "dict":
            return "{" + ", ".join(f"{key!r}: {result(item, values)}" for key, item in content) + "}"
        case "value":
            return repr(content)
    raise NotTidied(f"a result with {kind}")
