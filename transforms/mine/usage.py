"""Data classes for the names that a definition looks up in its module's globals, with their places in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from tree_sitter import Node


class Reference(NamedTuple):
    """One occurrence of `name.attribute. ...` where `name` is not local to the definition."""

    name: str
    attributes: tuple[str, ...]
    start: int
    ends: tuple[int, ...]  # ends of the name and of each attribute: bytes from `start`
    eager: bool  # True: looked up when the definition is executed, not when it is called


class Annotation(NamedTuple):
    """A type annotation, which is removed if the written file lacks one of its names."""

    start: int
    end: int
    without: str  # replacement for `start` to `end` if the annotation is removed
    references: list[Reference]
    quoted: frozenset[str]  # names inside strings


class Kind(Enum):
    """Kinds of parts that can be dropped from a definition, by default only if one of their needs cannot be met."""

    DECORATOR = auto()
    LOG = auto()  # a statement that calls a logger, `print` or a warning
    FOLD = auto()  # an expression with a certain value, which replaces it
    WRAPPER = auto()  # a call such as `torch.jit.script(f)`: always replaced by its argument
    BRANCH = auto()  # of an `if` statement: dropped only if it certainly does not run
    METHOD = auto()  # dropped if nothing mentions its name; in most classes even if its needs can be met


@dataclass(eq=False, slots=True)
class Part:
    """A piece of a definition that can be dropped."""

    kind: Kind
    node: Node
    usage: Usage
    instead: Node | str = ""  # FOLD, WRAPPER: the replacement; a node lies inside `node`
    fallback: Usage | None = None  # FOLD, WRAPPER: usage of the replacement
    conditions: tuple[Node, ...] = ()  # BRANCH: conditions of the earlier branches, then its own unless it is an `else`


@dataclass(eq=False, slots=True)
class Usage:
    """Names that one piece of a definition uses, without those of its parts."""

    references: list[Reference] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    imports: list[Node] = field(default_factory=list)  # import statements inside the definition
    attributes: set[str] = field(default_factory=set)  # every name after a dot
    parts: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class DefinitionUsage:
    """Names that a whole definition uses and binds."""

    usage: Usage = field(default_factory=Usage)
    stores: list[Node] = field(default_factory=list)  # identifiers that bind module-level names
    locals: set[str] = field(default_factory=set)  # every name bound in any inner scope


def kept_usages(usage: Usage, dropped: frozenset[Part] | set[Part]) -> Iterator[Usage]:
    """The usage and the usages of its parts that stay, recursively."""
    yield usage
    for part in usage.parts:
        if part not in dropped:
            yield from kept_usages(part.usage, dropped)
        elif part.fallback is not None:
            yield from kept_usages(part.fallback, dropped)
