"""Find, for each mined module, another module of the tree that constructs it.

Probing reads constructor arguments from such a user.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Module

from .bindings import Definition
from .closure import Closure

_MAX_BYTES = 30_000  # limit for a user's code, which is stored with every module that it constructs
_CLASS_NAME = re.compile(r"\nclass (\w+)")  # imports come before the first


class Users:
    """The modules of one tree and the classes that they construct."""

    def __init__(self) -> None:
        self._entries: dict[str, list[tuple[str, int]]] = defaultdict(list)  # id of a module -> its definitions
        self._users: dict[tuple[str, int], list[Module]] = defaultdict(list)

    def add(self, module: Module, closure: Closure) -> None:
        """Record a mined module and its closure."""
        self._entries[module.id].append(_key(closure.entry))
        if len(module.code) > _MAX_BYTES:
            return
        # A class that was renamed (`X_2`) does not count: probing could not recognise it.
        defined = set(_CLASS_NAME.findall(module.code))
        for definition in closure.definitions:
            if definition is closure.entry or not definition.is_class:
                continue
            if definition.names[0] in defined and _mentions(module.code, definition.names[0]):
                self._users[_key(definition)].append(module)

    def attach(self, classes: Iterable[Outcome[Module]]) -> Iterator[Outcome[Module]]:
        """Set the `user` of each module to the shortest code that constructs it."""
        for outcome in classes:
            module = outcome.record if isinstance(outcome, Kept) else None
            users = [user for key in self._entries[module.id] for user in self._users.get(key, ())] if module else []
            codes = {user.code for user in users if module and user.id != module.id}
            if module and codes:
                outcome = Kept(replace(module, user=min(codes, key=lambda code: (len(code), code))))
            yield outcome


def _mentions(code: str, name: str) -> bool:
    """True if the code has the word outside lines of class statements."""
    start = code.find(name)
    while start >= 0:
        end = start + len(name)
        before = code[code.rfind("\n", 0, start) + 1 : start]
        if not (_is_of_word(before[-1:]) or _is_of_word(code[end : end + 1]) or before.lstrip().startswith("class ")):
            return True
        start = code.find(name, end)
    return False


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _key(definition: Definition) -> tuple[str, int]:
    return definition.path, definition.node.start_byte
