"""Augmentation by renaming: copies of a row in which attributes, arguments and variables have other names.

Small models memorise the few names of their training rows, and write these in place of the prompt's names. A renamed
row computes the same: each name is replaced at all its occurrences in module and kernel, and names that code outside of
the row knows stay: those of PyTorch and Triton, keywords of calls, and imports.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
import triton.language as tl
from torch import nn

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import Pair

_NAME = re.compile(r"[^\W\d]\w*")
_POINTER = "_ptr"
_SHARE = 0.7  # of the replaceable names that are replaced


@dataclass(frozen=True, slots=True)
class ReplaceableNames:
    """The names of a row that may be replaced."""

    attributes: tuple[str, ...]  # of `self`
    locals: tuple[str, ...]  # arguments and variables of functions


def renamed(pairs: Sequence[Pair], copies: int, seed: int = 0) -> Iterator[Pair]:
    """Yield `copies` renamed copies of each pair. The new names come from the other pairs.

    The draw depends on the seed, the number of the copy and the pair's module.
    """
    if not copies:
        return
    all_names = [replaceable_names(pair.python_code, pair.triton_code) for pair in pairs]
    attributes = sorted({name for names in all_names for name in names.attributes if name.islower()})
    variables = sorted({name for names in all_names for name in names.locals if name.islower()})
    for copy in range(copies):
        for pair, own in zip(pairs, all_names, strict=True):
            draw = random.Random(f"{seed}.{copy}.{pair.python_code}")
            taken = {*_NAME.findall(pair.python_code), *_NAME.findall(pair.triton_code)}
            changes: dict[str, str] = {}
            for old, pool in [*((n, attributes) for n in own.attributes), *((n, variables) for n in own.locals)]:
                new = draw.choice(pool or [old])
                if draw.random() < _SHARE and not any(_is_stem(new, name) for name in taken):
                    changes[old] = new
                    taken.add(new)
            module, kernel = _rename(pair.python_code, changes), _rename(pair.triton_code, changes)
            yield replace(_rename_columns(pair, changes), python_code=module, triton_code=kernel)


def replaceable_names(module: str, kernel: str) -> ReplaceableNames:
    """Names that can be replaced in both texts without a change of what they compute."""
    trees = parse(module), parse(kernel)
    known = {name for tree in trees for name in _external_names(tree)} | _library_names()
    known |= {name for name in _kernel_variables(trees[1]) if name + _POINTER not in kernel}
    attributes, variables = set(), set()
    for node in ast.walk(trees[0]):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if not name.startswith("_"):
                attributes.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                variables.add(name)
    return ReplaceableNames(tuple(sorted(attributes - known)), tuple(sorted(variables - known - attributes)))


def _external_names(tree: ast.Module) -> Iterable[str]:
    """Names that code outside of the file's functions knows: attributes, keywords, imports, definitions, constants."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self")):
                pass
            case ast.Attribute(attr=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.alias(asname=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names
            case ast.Constant(value=str(text)) if text.isidentifier() or "->" in text:  # for getattr or einsum
                yield from _NAME.findall(text)
    for node in tree.body:
        if isinstance(node, ast.Assign):  # module constants
            yield from (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _kernel_variables(kernel: ast.Module) -> Iterable[str]:
    """Variables of the kernels, such as `offset`, which have nothing to do with the module's names."""
    for function in kernel.body:
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


@cache
def _library_names() -> frozenset[str]:
    lists = (dir(builtins), keyword.kwlist, keyword.softkwlist, dir(torch), dir(torch.Tensor), dir(nn), dir(tl))
    own = ("self", "cls", "torch", "nn", "F", "triton", "tl", "math", "np", "numpy", "Model", "ModelNew")
    prefixes = ("r", "R", "f", "b", "u", "rb", "br", "fr", "rf")  # of strings
    return frozenset(
        (*own, *prefixes, *dir(nn.functional), *dir(nn.Module()), *(name for each in lists for name in each))
    )


def _is_stem(new: str, name: str) -> bool:
    """True if `name` is `new`, or begins with `new` and an underscore."""
    return name == new or name.startswith(new + "_")


def _rename_columns(pair: Pair, changes: dict[str, str]) -> Pair:
    """The pair with renamed state, first workload and layers of its calls, which a chat may mention."""
    first, *others = pair.workloads
    tensors = tuple(replace(tensor, name=changes.get(tensor.name, tensor.name)) for tensor in first.tensors)
    state = tuple(
        replace(entry, name=".".join(changes.get(part, part) for part in entry.name.split("."))) for entry in pair.state
    )
    shapes = tuple(
        replace(each, call=_NAME.sub(lambda match: changes.get(match.group(), match.group()), each.call))
        if each.call.startswith("self.")
        else each
        for each in pair.shapes
    )
    return replace(pair, workloads=(replace(first, tensors=tensors), *others), state=state, shapes=shapes)


def _rename(text: str, changes: dict[str, str]) -> str:
    names = set(_NAME.findall(text))

    def new_name(match: re.Match[str]) -> str:
        name: str = match.group()
        if name in changes:
            return changes[name]
        stem = name.removesuffix(_POINTER)
        if stem == name and name + _POINTER not in names:
            return name
        head = next(
            (stem[:at] for at in range(len(stem), 0, -1) if stem[:at] in changes and stem[at : at + 1] in "_"), ""
        )
        return changes[head] + name[len(head) :] if head else name

    return _NAME.sub(new_name, text)
