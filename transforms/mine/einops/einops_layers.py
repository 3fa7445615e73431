"""Definitions that replace einops layers and functions: one small module for each pattern, and `pack` and `unpack`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .plain import methods

_LONGEST = 100  # characters of an expression on one line
_MODULE = '''class {name}({base}):
    """{pattern}"""
{init}
    def forward(self, x):
        return {value}'''
_INIT = """
    def __init__(self, {parameters}):
        super().__init__()
        {assignments}
"""
_FUNCTIONS = {
    "pack": '''def {name}(tensors, pattern):
    """Joins the dimensions that `*` stands for, and then the tensors; also gives what those dimensions were."""
    before, after = (len(side.split()) for side in pattern.split("*"))
    shapes = [x.shape[before : x.ndim - after] for x in tensors]
    return torch.cat([x.unsqueeze(before).flatten(before, x.ndim - after) for x in tensors], dim=before), shapes''',
    "unpack": '''def {name}(x, shapes, pattern):
    """Takes apart what `pack` joined."""
    axis = len(pattern.split("*")[0].split())
    parts = x.split([math.prod(shape) for shape in shapes], dim=axis)
    return [part.unflatten(axis, shape) if shape else part.squeeze(axis) for part, shape in zip(parts, shapes)]''',
}


class Layers:
    """Collects the definitions for one file.

    Args:
        base: how the file spells nn.Module.
        taken: names that are in use.
    """

    def __init__(self, base: str, taken: Iterable[str]) -> None:
        self._base = base
        self._taken = set(taken)
        self._names: dict[str, str] = {}  # template of a definition -> its name
        self.definitions: list[str] = []

    def use(self, function: str, pattern: str, lengths: Mapping[str, str], reduction: str = "") -> str:
        """Define a layer and return the call that constructs it.

        Args:
            lengths: axis -> source of its length. Numbers become part of the class, other lengths its parameters.

        Raises:
            Unsupported: torch has no simple equivalent.
        """
        attributes = {axis: f"self.{axis}_length" for axis, length in lengths.items() if not length.isdigit()}
        steps = methods(function, pattern, {**lengths, **attributes}, reduction)
        text = "".join(["x", *steps])
        if len(text) > _LONGEST:
            text = "\n            ".join(["(", f"x{steps[0]}", *steps[1:]]) + "\n        )"
        used = [axis for axis, attribute in attributes.items() if attribute in text]
        init = ""
        if used:
            assignments = "\n        ".join(f"{attributes[axis]} = {axis}" for axis in used)
            init = _INIT.format(parameters=", ".join(used), assignments=assignments)
        about = ", ".join([" ".join(pattern.split()), *([reduction] if reduction else [])])
        written = _MODULE.format(name="{name}", base=self._base, pattern=about, init=init, value=text)
        name = self._defined(written, function.capitalize())
        return f"{name}({', '.join(f'{axis}={lengths[axis]}' for axis in used)})"

    def define(self, function: str) -> str:
        """Define an einops function and return its name in the file."""
        return self._defined(_FUNCTIONS[function], function)

    def _defined(self, written: str, wanted: str) -> str:
        if written not in self._names:
            self._names[written] = self._name(wanted)
            self.definitions.append(written.format(name=self._names[written]))
        return self._names[written]

    def _name(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name


def words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"\w+", text)}
