"""A module while it is composed: its layers, the statements of its forward, and the shape of the value at hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

from .operator_pool import ACTIVATIONS, pick


class Kind(StrEnum):
    """The shape of a value, up to sizes. Each has one dimension of features, whose size layers must know."""

    FLAT = "(batch, features)"
    SEQUENCE = "(batch, length, features)"
    IMAGE = "(batch, channels, height, width)"

    @property
    def axis(self) -> int:
        """Of the features."""
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
    """Collects what blocks add. Each block takes the value at hand and gives the next."""

    random: Random
    value: Value
    parts: list[str] = field(default_factory=list)  # names of what it is composed of
    layers: list[tuple[str, str]] = field(default_factory=list)  # attribute, expression
    statements: list[str] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)

    def layer(self, name: str, expression: str) -> str:
        """An attribute of the module, by which forward calls it."""
        name = self._unique(name)
        self.layers.append((name, expression))
        return f"self.{name}"

    def let(self, expression: str, name: str = "", kind: Kind | None = None, width: str = "") -> Value:
        """A statement that gives the value at hand, or another one, a new meaning."""
        target = self._unique(name) if name else self.value.name
        self.statements.append(f"{target} = {expression}")
        value = Value(target, kind or self.value.kind, width or self.value.width)
        if not name:
            self.value = value
        return value

    def keep(self, name: str) -> Value:
        """The value at hand under another name, so that it can be used again."""
        return self.let(self.value.name, name)

    def rename(self, name: str) -> None:
        self.value = replace(self.value, name=self._unique(name))

    def operator(self, table: dict[str, str], x: str, y: str = "") -> str:
        """An expression of an operator of the table, and a note that it is there."""
        name, expression = pick(self.random, table)
        self.parts.append(name)
        return expression.replace("{x}", x).replace("{y}", y)

    def activate(self, x: str) -> str:
        return self.operator(ACTIVATIONS, x)

    def _unique(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, 0) + 1
        return name if number == 1 else f"{name}_{number}"
