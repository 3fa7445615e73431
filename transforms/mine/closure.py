"""Everything that a class needs: definitions of the tree, and what they import from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelquarry.pipeline.schema.reasons import Reason

from . import facts, syntax
from .index import Definition, imports
from .tree import Builtin, External, Missing, Resolved, SourceTree, Symbol, Target
from .usage import Kind, Part, Reference, Usage, kept_usages

MAX_DEFINITIONS = 80

# Decorators that tell a compiler or a registry about a definition and leave what it computes alone.
_DIRECTIVES = re.compile(
    r"torch\.(jit\.(script|script_if_tracing|ignore|unused|export)|compile|compiler\.disable|_dynamo\.disable)\b"
)
_REGISTRIES = re.compile(r"regist|_factory|export|add_\w*docstr|auto_docstring|deprecat", re.IGNORECASE)
# Methods that torch calls, so that a class without a mention of them still needs them.
_CALLED_BY_TORCH = re.compile(
    r"__\w+__|forward|train|eval|to|apply|extra_repr|(get|set)_extra_state|(load_)?state_dict"
    r"|(named_)?(parameters|buffers|children|modules)|_apply|_load_from_state_dict|_save_to_state_dict|_get_name|_named_members|_replicate_for_data_parallel"
)


@dataclass(slots=True)
class Closure:
    """A class and all definitions that it needs, each once."""

    entry: Definition
    definitions: list[Definition] = field(default_factory=list)
    dropped: set[Part] = field(default_factory=set)
    missing: set[Missing] = field(default_factory=set)
    broken: Definition | None = None  # a definition with syntax errors

    def usages(self, definition: Definition) -> Iterator[Usage]:
        """The usages of all pieces of a definition that stay."""
        return kept_usages(definition.usage.usage, self.dropped)

    @property
    def failure(self) -> tuple[Reason, str] | None:
        """Why the class cannot stand alone, and the evidence."""
        packages = sorted({item.package for item in self.missing if item.package})
        if packages:
            return Reason.FORBIDDEN_IMPORT, ", ".join(packages)
        if self.missing:
            return Reason.UNRESOLVED_NAME, ", ".join(sorted({item.name for item in self.missing}))
        if self.broken is not None:
            return Reason.SYNTAX_ERROR, f"{self.broken.path}:{self.broken.node.start_point.row + 1}"
        if len(self.definitions) > MAX_DEFINITIONS:
            return Reason.TOO_MANY_DEFINITIONS, f"more than {MAX_DEFINITIONS}"
        return None


class Resolver:
    """Resolves references, each once, and collects closures."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._resolved: dict[tuple[str, str, tuple[str, ...]], Resolved] = {}
        self._sound: dict[Definition, bool] = {}
        self._drops: dict[Part, bool] = {}

    def resolve(self, path: str, reference: Reference) -> Resolved:
        key = (path, reference.name, reference.attributes)
        if key not in self._resolved:
            self._resolved[key] = self.tree.resolve(*key)
        return self._resolved[key]

    def targets(self, path: str, usage: Usage) -> list[Target]:
        """What one piece of a definition needs, its parts and annotations apart."""
        found = [self.resolve(path, reference).target for reference in usage.references]
        for node in usage.imports:
            found += [self.tree.resolve_import(path, item) for item in imports(node)]
        return found

    def close(self, entry: Definition) -> Closure:
        """The closure of a class; `failure` says whether it is one."""
        return _Collector(self, entry).collect()

    def needed(self, symbol: Symbol) -> list[Definition]:
        """The statements that give a symbol its value."""
        index = self.tree.index(symbol.path)
        changes = (d for d in index.mutations.get(symbol.name, ()) if self._is_sound_definition(d))
        return [*index.definitions(symbol.name), *changes]

    # parts

    def drops(self, path: str, part: Part) -> bool:
        """Whether the part is taken out, whatever else the class needs."""
        if part not in self._drops:
            is_noise = part.kind in (Kind.DECORATOR, Kind.WRAPPER) and not self._computes(path, part)
            self._drops[part] = is_noise or (self._can_drop(path, part) and not self._is_sound_usage(path, part.usage))
        return self._drops[part]

    def _can_drop(self, path: str, part: Part) -> bool:
        match part.kind:
            case Kind.BRANCH:
                return self._never_runs(path, part)
            case Kind.WRAPPER:
                return not self._computes(path, part)
            case Kind.METHOD:
                return not _CALLED_BY_TORCH.fullmatch(method_name(part))
        return True

    def _never_runs(self, path: str, part: Part) -> bool:
        """A condition before the branch is certain, or its own is certain not to hold."""

        def flag(name: str) -> bool | None:
            target = self.tree.resolve(path, name).target
            return self._constant(target) if isinstance(target, Symbol) else None

        is_else = part.node.type == "else_clause"
        before = part.conditions if is_else else part.conditions[:-1]
        if any(facts.truth(condition, flag) is True for condition in before):
            return True
        return not is_else and facts.truth(part.conditions[-1], flag) is False

    def _constant(self, symbol: Symbol) -> bool | None:
        """The value of a flag: a name that one statement sets, to something certain."""
        definitions = self.tree.index(symbol.path).definitions(symbol.name)
        value = syntax.assigned(definitions[0].node) if len(definitions) == 1 else None
        return facts.truth(value) if value is not None else None

    def _computes(self, path: str, part: Part) -> bool:
        """Whether a decorator or wrapper has a share in what is computed, and does not only tell others of it."""
        if not part.usage.references:
            return True
        first = part.usage.references[0]
        resolved = self.resolve(path, first)
        rest = first.attributes[resolved.consumed :]
        if isinstance(resolved.target, External):
            return not _DIRECTIVES.match(".".join((resolved.target.dotted, *rest)))
        if isinstance(resolved.target, Symbol) and rest and part.kind is Kind.DECORATOR:
            return False
        return part.kind is Kind.WRAPPER or not _REGISTRIES.search(".".join((first.name, *first.attributes)))

    # soundness

    def _is_sound_usage(self, path: str, usage: Usage) -> bool:
        """Whether all that a piece needs can be had, parts that can be dropped apart."""
        return all(isinstance(t, External | Builtin) or self._is_sound(t) for t in self._hard_targets(path, usage))

    def _is_sound(self, target: Target) -> bool:
        if not isinstance(target, Symbol):
            return not isinstance(target, Missing)
        return all(map(self._is_sound_definition, self.tree.index(target.path).definitions(target.name)))

    def _is_sound_definition(self, definition: Definition) -> bool:
        if definition not in self._sound:
            self._sound[definition] = self._reaches_no_gap(definition)
        return self._sound[definition]

    def _reaches_no_gap(self, definition: Definition) -> bool:
        seen, queue = {definition}, [definition]
        while queue:
            current = queue.pop()
            if current.node.has_error:
                return False
            for target in self._hard_targets(current.path, current.usage.usage):
                if isinstance(target, Missing):
                    return False
                if isinstance(target, Symbol):
                    new = [d for d in self.tree.index(target.path).definitions(target.name) if d not in seen]
                    seen.update(new)
                    queue.extend(new)
        return True

    def _hard_targets(self, path: str, usage: Usage) -> Iterator[Target]:
        """Targets without which a piece cannot be had."""
        yield from self.targets(path, usage)
        for part in usage.parts:
            if not self._can_drop(path, part):
                yield from self._hard_targets(path, part.usage)
            elif part.fallback is not None:
                yield from self._hard_targets(path, part.fallback)


class _Collector:
    """Collects one closure: what is needed, what that needs, and so on."""

    def __init__(self, resolver: Resolver, entry: Definition) -> None:
        self._resolver = resolver
        self._closure = Closure(entry)
        self._seen = {entry}
        self._queue = [entry]

    def collect(self) -> Closure:
        closure = self._closure
        while self._queue:
            if len(closure.definitions) > MAX_DEFINITIONS:
                break
            definition = self._queue.pop()
            closure.definitions.append(definition)
            if definition.node.has_error:
                closure.broken = definition
            else:
                self._take(definition, definition.usage.usage)
            if not self._queue:
                self._revive_methods()
        self._restore_registrations()
        return closure

    def _take(self, definition: Definition, usage: Usage) -> None:
        """Queue what a piece of a definition needs."""
        path = definition.path
        for target in self._resolver.targets(path, usage):
            if isinstance(target, Missing):
                self._closure.missing.add(target)
            elif isinstance(target, Symbol):
                self._need(target)
        for part in usage.parts:
            if not self._resolver.drops(path, part):
                self._take(definition, part.usage)
            else:
                self._closure.dropped.add(part)
                if part.fallback is not None:
                    self._take(definition, part.fallback)

    def _need(self, symbol: Symbol) -> None:
        """The entry class is one definition even where its name has several."""
        entry = self._closure.entry
        is_entry = symbol.path == entry.path and symbol.name in entry.names
        for definition in [entry] if is_entry else self._resolver.needed(symbol):
            if definition not in self._seen:
                self._seen.add(definition)
                self._queue.append(definition)

    def _revive_methods(self) -> None:
        """A dropped method that something mentions is needed after all, whatever it lacks."""
        closure = self._closure
        mentioned = {name for d in closure.definitions for usage in closure.usages(d) for name in usage.attributes}
        for definition in closure.definitions:
            for part in definition.usage.usage.parts:
                if part.kind is Kind.METHOD and part in closure.dropped and method_name(part) in mentioned:
                    closure.dropped.discard(part)
                    self._take(definition, part.usage)

    def _restore_registrations(self) -> None:
        """A registration stays where its registry is needed anyway: then something looks it up."""
        closure = self._closure
        symbols = {Symbol(d.path, name) for d in closure.definitions for name in d.names}
        for definition in closure.definitions:
            for part in definition.usage.usage.parts:
                if part.kind is Kind.DECORATOR and part in closure.dropped:
                    targets = self._resolver.targets(definition.path, part.usage)
                    known = [t in symbols if isinstance(t, Symbol) else not isinstance(t, Missing) for t in targets]
                    if all(known) and any(isinstance(t, Symbol) for t in targets):
                        closure.dropped.discard(part)


def method_name(part: Part) -> str:
    return syntax.text(syntax.field(syntax.undecorated(part.node), "name"))
