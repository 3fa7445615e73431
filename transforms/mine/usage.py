"""What a definition uses: the names that it looks up in its module's globals, with their places in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from tree_sitter import Node


class Reference(NamedTuple):
    """One occurrence of `name.attribute. ...` whose `name` is not local to the definition."""

    name: str
    attributes: tuple[str, ...]
    start: int
    ends: tuple[int, ...]  # of the name, then of each attribute: bytes from the start
    eager: bool  # looked up when the definition is executed, not when it is called


class Annotation(NamedTuple):
    """A type annotation, which may be taken away where its names are not at hand."""

    start: int
    end: int
    without: str  # what stands between `start` and `end` if the annotation goes
    references: list[Reference]
    quoted: frozenset[str]  # names inside of strings


class Kind(Enum):
    """What can be taken out of a definition, and when: each only if something that it uses cannot be had."""

    DECORATOR = auto()
    LOG = auto()  # a call of a logger, of `print` or of a warning, for its own sake
    FOLD = auto()  # an expression whose value is certain: its value takes its place
    WRAPPER = auto()  # a call such as `torch.jit.script(f)`, always: its argument takes its place
    BRANCH = auto()  # of an `if`: where the condition is certain not to hold
    METHOD = auto()  # where nothing mentions its name; of most classes also where nothing is missing


@dataclass(eq=False, slots=True)
class Part:
    """A piece of a definition that it can do without."""

    kind: Kind
    node: Node
    usage: Usage
    instead: Node | str = ""  # FOLD, WRAPPER: what takes the place; a node is a part of `node`
    fallback: Usage | None = None  # FOLD, WRAPPER: what that uses
    conditions: tuple[Node, ...] = ()  # BRANCH: of the branches before it, and its own unless it is an `else`


@dataclass(eq=False, slots=True)
class Usage:
    """What one piece of a definition uses, the parts it can do without apart."""

    references: list[Reference] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    imports: list[Node] = field(default_factory=list)  # import statements inside of the definition
    attributes: set[str] = field(default_factory=set)  # every name that stands after a dot
    parts: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class DefinitionUsage:
    """What a whole definition uses and binds."""

    usage: Usage = field(default_factory=Usage)
    stores: list[Node] = field(default_factory=list)  # identifiers that bind module-level names
    locals: set[str] = field(default_factory=set)  # every name bound in any inner scope


def kept_usages(usage: Usage, dropped: frozenset[Part] | set[Part]) -> Iterator[Usage]:
    """The usage and those of the parts that stay."""
    yield usage
    for part in usage.parts:
        if part not in dropped:
            yield from kept_usages(part.usage, dropped)
        elif part.fallback is not None:
            yield from kept_usages(part.fallback, dropped)
