"""The layers of einops as small modules, one class for each pattern."""

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


class Layers:
    """Collects the classes of one file. `base`: what nn.Module is called; `taken`: names not to give a class."""

    def __init__(self, base: str, taken: Iterable[str]) -> None:
        self._base = base
        self._taken = set(taken)
        self._names: dict[str, str] = {}  # a class without its name -> the name
        self.classes: list[str] = []

    def use(self, function: str, pattern: str, lengths: Mapping[str, str], reduction: str = "") -> str:
        """A call that makes the layer, `lengths` being the source of each. Numbers become part of the class.

        Raises: Unsupported.
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
        if written not in self._names:
            self._names[written] = self._name(function.capitalize())
            self.classes.append(written.format(name=self._names[written]))
        return f"{self._names[written]}({', '.join(f'{axis}={lengths[axis]}' for axis in used)})"

    def _name(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name


def words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"\w+", text)}
