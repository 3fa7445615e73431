"""Takes einops out of a file that was mined: out of its imports and its definitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelquarry.transforms.mine import tree_sitter_nodes as ts
from kernelquarry.transforms.mine.bindings import imports

from .call_sites import Call, literal, parse_source
from .einops_layers import Layers, words
from .equation import equation
from .pattern import DEFINED, Unsupported
from .plain import methods

# Import lines, and what is written that needs them.
_IMPORTS = {
    "import math": ("math.prod(",),
    "import torch": ("(torch.nn.Module)", "torch.cat(", "torch.einsum(", "torch.stack("),
}


def write_out(lines: set[str], blocks: list[str]) -> tuple[set[str], list[str], list[str]]:
    """Import lines and definitions without einops, and the definitions that those need before them.

    Raises:
        Unsupported: einops is used in a way that torch has no simple words for.
    """
    if not any("einops" in text for text in (*lines, *blocks)):
        return lines, blocks, []
    names = _names(lines)
    kept = {line for line in lines if not _is_of_einops(line)}
    base = "nn.Module" if "from torch import nn" in kept else "torch.nn.Module"
    layers = Layers(base, words(blocks) - names.keys() | words(kept))
    of_einops = re.compile(rf"\b(?:{'|'.join(map(re.escape, ('einops', *sorted(names))))})\b")
    written = [_Block(block, names, layers).write() if of_einops.search(block) else block for block in blocks]
    texts = "".join([*layers.definitions, *written])
    kept |= {line for line, uses in _IMPORTS.items() if any(use in texts for use in uses)}
    return kept, written, layers.definitions


def _is_of_einops(line: str) -> bool:
    return line.split()[1].partition(".")[0] == "einops"


def _names(lines: Iterable[str]) -> dict[str, str]:
    """What each name that is imported from einops stands for."""
    found: dict[str, str] = {}
    for line in lines:
        if _is_of_einops(line):
            for item in imports(ts.statements(ts.parse(line.encode()))[0]):
                module = item.module if item.aliased else item.local
                found[item.local] = module if item.name is None else f"{module}.{item.name}"
    return found


class _Block:
    """One definition."""

    def __init__(self, code: str, names: dict[str, str], layers: Layers) -> None:
        self._source = parse_source(code, tuple(sorted(names.items())))
        self._layers = layers

    def write(self) -> str:
        return self._source.replaced(self._instead)

    def _instead(self, call: Call) -> str:
        """What stands in the place of a call."""
        function = call.function.rpartition(".")[2]
        if call.function in DEFINED:
            return self._layers.define(function)
        if function == "einsum":
            return self._einsum(call)
        lengths = {axis: self._source.text(node, self._instead) for axis, node in call.lengths.items()}
        reduction = call.literal("reduction") if "reduction" in call.arguments else ""
        pattern = call.literal("pattern")
        if function in ("Rearrange", "Reduce"):
            return self._layers.use(function.lower(), pattern, lengths, reduction)
        tensor = self._source.operand(call.arguments["tensor"], self._instead)
        return "".join([tensor, *methods(function, pattern, lengths, reduction)])

    def _einsum(self, call: Call) -> str:
        if len(call.operands) < 2 or call.lengths:
            raise Unsupported("einsum with other than tensors and a pattern")
        tensors = [self._source.text(node, self._instead) for node in call.operands[:-1]]
        return f'torch.einsum("{equation(literal(call.operands[-1]))}", {", ".join(tensors)})'
