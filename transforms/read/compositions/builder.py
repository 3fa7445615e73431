"""State of a module under composition: layers, statements of `forward`, and the shape of the current value."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from .operator_pool import ACTIVATIONS, pick


class Kind(StrEnum):
    """Dimensions of a value. Each kind has one dimension of features, whose size the layers need."""

    FLAT = "(batch, features)"
    SEQUENCE = "(batch, length, features)"
    IMAGE = "(batch, channels, height, width)"

    @property
    def axis(self) -> int:
        """Index of the features."""
        return 1 if self is Kind.IMAGE else -1

    @property
    def others(self) -> tuple[int, ...]:
        """The dimensions that are neither batch nor features."""
        return {Kind.FLAT: (), Kind.SEQUENCE: (1,), Kind.IMAGE: (2, 3)}[self]


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    kind: Kind
    width: str  # size of the features, as an expression of the constructor's arguments


@dataclass(slots=True)
class Builder:
    """Collects layers and statements. Each block replaces the current value."""

    random: Random
    value: Value
    parts: list[str] = field(default_factory=list)  # names of operators and blocks, in order
    layers: list[tuple[str, str]] = field(default_factory=list)  # attribute, expression
    statements: list[str] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)

    def layer(self, name: str, expression: str) -> str:
        """Add a layer or parameter. Returns its expression in `forward`."""
        name = self._unique(name)
        self.layers.append((name, expression))
        return f"self.{name}"

    def let(self, expression: str, name: str = "", kind: Kind | None = None, width: str = "") -> Value:
        """Add an assignment to the current value, or to a new name."""
        target = self._unique(name) if name else self.value.name
        self.statements.append(f"{target} = {expression}")
        value = Value(target, kind or self.value.kind, width or self.value.width)
        if not name:
            self.value = value
        return value

    def keep(self, name: str) -> Value:
        """Copy the current value to another name for later use."""
        return self.let(self.value.name, name)

    def operator(self, table: dict[str, str], x: str, y: str = "") -> str:
        """Draw an operator from the table, record it, and return its expression."""
        name, expression = pick(self.random, table)
        self.parts.append(name)
        return expression.replace("{x}", x).replace("{y}", y)

    def activate(self, x: str) -> str:
        return self.operator(ACTIVATIONS, x)

    def _unique(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, 0) + 1
        return name if number == 1 else f"{name}_{number}"
