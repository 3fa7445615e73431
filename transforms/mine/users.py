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
_CLASS_NAME = re.compile(r"\nclass (\w+)")
_CLASS_LINE = re.compile(r"^[^\S\n]*class .*", re.MULTILINE)


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
        classes = [d for d in closure.definitions if d.is_class and d is not closure.entry]
        if not classes:
            return
        # A class that was renamed (`X_2`) does not count: probing could not recognise it. Nor does a base class.
        defined = set(_CLASS_NAME.findall(module.code))
        used = defined & set(re.findall(r"\w+", _CLASS_LINE.sub("", module.code)))
        for definition in classes:
            if definition.names[0] in used:
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


def _key(definition: Definition) -> tuple[str, int]:
    return definition.path, definition.node.start_byte
