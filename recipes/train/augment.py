"""A row under other names: what its module calls its attributes, arguments and variables, in both texts alike.

Small models learn the names of the rows that they are shown, of which there are few, and then write those in place of
the names that a prompt has. A row that is renamed computes what it did: names are replaced wherever they stand, so that
they still agree, and left alone where something else knows them: PyTorch, Triton, a keyword of a call, another module.
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
_SHARE = 0.7  # of the names that can be replaced are


@dataclass(frozen=True, slots=True)
class Names:
    """What can be replaced in a row: what `self` has, and what functions call their arguments and variables."""

    attributes: tuple[str, ...]
    locals: tuple[str, ...]


def renamed(pairs: Sequence[Pair], copies: int, seed: int = 0) -> Iterator[Pair]:
    """Each pair, `copies` times, with its two texts under names that others of the pairs have.

    What is drawn follows from the seed, the number of the copy and the pair's own text.
    """
    if not copies:
        return
    found = [names(pair.python_code, pair.triton_code) for pair in pairs]
    attributes = sorted({name for each in found for name in each.attributes if name.islower()})
    variables = sorted({name for each in found for name in each.locals if name.islower()})
    for copy in range(copies):
        for pair, own in zip(pairs, found, strict=True):
            draw = random.Random(f"{seed}.{copy}.{pair.python_code}")
            taken = {*_NAME.findall(pair.python_code), *_NAME.findall(pair.triton_code)}
            changes: dict[str, str] = {}
            for old, pool in [*((n, attributes) for n in own.attributes), *((n, variables) for n in own.locals)]:
                new = draw.choice(pool or [old])
                if draw.random() < _SHARE and not any(_leads(new, name) for name in taken):
                    changes[old] = new
                    taken.add(new)
            module, kernel = _replaced(pair.python_code, changes), _replaced(pair.triton_code, changes)
            yield replace(_columns(pair, changes), python_code=module, triton_code=kernel)


def names(module: str, kernel: str) -> Names:
    """What can be replaced in both texts without a change to what they compute."""
    trees = parse(module), parse(kernel)
    known = {name for tree in trees for name in _known(tree)} | _everywhere()
    known |= {name for name in _roles(trees[1]) if name + _POINTER not in kernel}
    attributes, variables = set(), set()
    for node in ast.walk(trees[0]):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if not name.startswith("_"):
                attributes.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                variables.add(name)
    return Names(tuple(sorted(attributes - known)), tuple(sorted(variables - known - attributes)))


def _known(tree: ast.Module) -> Iterable[str]:
    """Names that something beside the file's own functions knows."""
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
            case ast.Global(names=found) | ast.Nonlocal(names=found):
                yield from found
            case ast.Constant(value=str(text)) if text.isidentifier() or "->" in text:  # or the axes of an einsum
                yield from _NAME.findall(text)
    for node in tree.body:
        if isinstance(node, ast.Assign):  # module constants
            yield from (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _roles(kernel: ast.Module) -> Iterable[str]:
    """What kernels call what they compute, such as their offset: no matter of the module's."""
    for function in kernel.body:
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


@cache
def _everywhere() -> frozenset[str]:
    lists = (dir(builtins), keyword.kwlist, keyword.softkwlist, dir(torch), dir(torch.Tensor), dir(nn), dir(tl))
    own = ("self", "cls", "torch", "nn", "F", "triton", "tl", "math", "np", "numpy", "Model", "ModelNew")
    prefixes = ("r", "R", "f", "b", "u", "rb", "br", "fr", "rf")  # of strings
    return frozenset(
        (*own, *prefixes, *dir(nn.functional), *dir(nn.Module()), *(name for each in lists for name in each))
    )


def _leads(new: str, name: str) -> bool:
    """Whether a name is `new`, or something that is made of it."""
    return name == new or name.startswith(new + "_")


def _columns(pair: Pair, changes: dict[str, str]) -> Pair:
    """With new names for the state and for what the first call brings: a chat may tell of them."""
    first, *others = pair.workloads
    tensors = tuple(replace(tensor, name=changes.get(tensor.name, tensor.name)) for tensor in first.tensors)
    state = tuple(
        replace(entry, name=".".join(changes.get(part, part) for part in entry.name.split("."))) for entry in pair.state
    )
    return replace(pair, workloads=(replace(first, tensors=tensors), *others), state=state)


def _replaced(text: str, changes: dict[str, str]) -> str:
    found = set(_NAME.findall(text))

    def of(match: re.Match[str]) -> str:
        name: str = match.group()
        if name in changes:
            return changes[name]
        stem = name.removesuffix(_POINTER)
        if stem == name and name + _POINTER not in found:
            return name
        head = next(
            (stem[:at] for at in range(len(stem), 0, -1) if stem[:at] in changes and stem[at : at + 1] in "_"), ""
        )
        return changes[head] + name[len(head) :] if head else name

    return _NAME.sub(of, text)
