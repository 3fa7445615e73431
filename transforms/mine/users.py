"""Which module of a tree makes another one: how it does so tells probing what the other one takes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Module

from .bindings import Definition
from .closure import Closure

_MAX_BYTES = 30_000  # of a user's code, which goes along with every module that it makes
_CLASS_NAME = re.compile(r"\nclass (\w+)")  # imports come before the first


class Users:
    """The modules of one tree and what they are made of."""

    def __init__(self) -> None:
        self._entries: dict[str, list[tuple[str, int]]] = defaultdict(list)  # id of a module -> its definitions
        self._users: dict[tuple[str, int], list[Module]] = defaultdict(list)

    def add(self, module: Module, closure: Closure) -> None:
        """Takes down a module that was mined, with the closure that it was written from."""
        self._entries[module.id].append(_key(closure.entry))
        if len(module.code) > _MAX_BYTES:
            return
        others = [d for d in closure.definitions if d is not closure.entry and d.is_class]
        if not others:
            return
        # A number may have been added to the name; then probing could not tell whose class it is.
        defined = set(_CLASS_NAME.findall(module.code))
        for definition in others:
            if definition.names[0] in defined and _mentions(module.code, definition.names[0]):
                self._users[_key(definition)].append(module)

    def attach(self, classes: Iterable[Outcome[Module]]) -> Iterator[Outcome[Module]]:
        """The same outcomes; a module that others make has the code of the smallest of those as its `user`."""
        for outcome in classes:
            module = outcome.record if isinstance(outcome, Kept) else None
            users = [user for key in self._entries[module.id] for user in self._users.get(key, ())] if module else []
            codes = {user.code for user in users if module and user.id != module.id}
            if module and codes:
                outcome = Kept(replace(module, user=min(codes, key=lambda code: (len(code), code))))
            yield outcome


def _mentions(code: str, name: str) -> bool:
    """Whether the word stands anywhere but in a line of a class statement."""
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
