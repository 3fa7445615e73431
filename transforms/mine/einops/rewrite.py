"""Remove einops from the imports and definitions of a mined file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelquarry.transforms.mine import tree_sitter_nodes as ts
from kernelquarry.transforms.mine.bindings import imports

from .call_sites import Call, Source, literal
from .einops_layers import Layers, words
from .pattern import DEFINED, Unsupported, equation
from .plain import methods

# Import line -> generated code that needs it.
_IMPORTS = {
    "import math": ("math.prod(",),
    "import torch": ("(torch.nn.Module)", "torch.cat(", "torch.einsum(", "torch.stack("),
}


def rewrite_einops(lines: set[str], blocks: list[str]) -> tuple[set[str], list[str], list[str]]:
    """Rewrite definitions that use einops.

    Returns:
        Import lines and definitions without einops, and new definitions that these need.

    Raises:
        Unsupported: torch has no simple equivalent for a use of einops.
    """
    if not any("einops" in text for text in (*lines, *blocks)):
        return lines, blocks, []
    names = _names(lines)
    kept = {line for line in lines if not _is_of_einops(line)}
    base = "nn.Module" if "from torch import nn" in kept else "torch.nn.Module"
    layers = Layers(base, words(blocks) - names.keys() | words(kept))
    einops_name = re.compile(rf"\b(?:{'|'.join(map(re.escape, ('einops', *sorted(names))))})\b")
    written = [_Rewriter(block, names, layers).write() if einops_name.search(block) else block for block in blocks]
    texts = "".join([*layers.definitions, *written])
    kept |= {line for line, uses in _IMPORTS.items() if any(use in texts for use in uses)}
    return kept, written, layers.definitions


def _is_of_einops(line: str) -> bool:
    return line.split()[1].partition(".")[0] == "einops"


def _names(lines: Iterable[str]) -> dict[str, str]:
    """Imported name -> the part of einops that it stands for."""
    names: dict[str, str] = {}
    for line in lines:
        if _is_of_einops(line):
            for item in imports(ts.statements(ts.parse(line.encode()))[0]):
                module = item.module if item.aliased else item.local
                names[item.local] = module if item.name is None else f"{module}.{item.name}"
    return names


class _Rewriter:
    """Replaces the einops calls of one definition."""

    def __init__(self, code: str, names: dict[str, str], layers: Layers) -> None:
        self._source = Source(code, names)
        self._layers = layers

    def write(self) -> str:
        return self._source.replaced(self._replacement)

    def _replacement(self, call: Call) -> str:
        function = call.function.rpartition(".")[2]
        if call.function in DEFINED:
            return self._layers.define(function)
        if function == "einsum":
            return self._einsum(call)
        lengths = {axis: self._source.text(node, self._replacement) for axis, node in call.lengths.items()}
        reduction = call.literal("reduction") if "reduction" in call.arguments else ""
        pattern = call.literal("pattern")
        if function in ("Rearrange", "Reduce"):
            return self._layers.use(function.lower(), pattern, lengths, reduction)
        tensor = self._source.operand(call.arguments["tensor"], self._replacement)
        return "".join([tensor, *methods(function, pattern, lengths, reduction)])

    def _einsum(self, call: Call) -> str:
        if len(call.operands) < 2 or call.lengths:
            raise Unsupported("einsum with other than tensors and a pattern")
        tensors = [self._source.text(node, self._replacement) for node in call.operands[:-1]]
        return f'torch.einsum("{equation(literal(call.operands[-1]))}", {", ".join(tensors)})'
