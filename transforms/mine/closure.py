"""Everything that a class needs: definitions of the tree, and what they import from outside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from tree_sitter import Node

from kernelquarry.pipeline.schema.reasons import Reason

from .index import Definition, imports
from .tree import Builtin, External, Missing, Resolved, SourceTree, Symbol, Target
from .usage import Annotation, Reference

MAX_DEFINITIONS = 80

# Decorators that tell a compiler or a registry about a definition and leave what it computes alone.
_DIRECTIVES = re.compile(
    r"torch\.(jit\.(script|script_if_tracing|ignore|unused|export)|compile|compiler\.disable|_dynamo\.disable)\b"
)
_REGISTRIES = re.compile(r"regist|_factory|export|add_\w*docstr|auto_docstring|deprecat", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Use:
    """A reference and what it means."""

    reference: Reference
    resolved: Resolved


@dataclass(slots=True)
class Uses:
    """The uses of one definition: those it cannot do without, and those it can."""

    required: list[Use] = field(default_factory=list)
    optional: list[tuple[Node, list[Use]]] = field(default_factory=list)  # decorators, log statements
    annotations: list[tuple[Annotation, list[Use]]] = field(default_factory=list)
    imports: list[tuple[Node, list[tuple[str, Target]]]] = field(default_factory=list)  # inside: local name, target

    def targets(self) -> Iterable[Target]:
        for use in self.required:
            yield use.resolved.target
        for _, items in self.imports:
            for _, target in items:
                yield target


@dataclass(slots=True)
class Closure:
    entry: Definition
    definitions: list[Definition] = field(default_factory=list)
    kept: set[int] = field(default_factory=set)  # ids of the optional nodes whose uses are all in the closure
    missing: set[Missing] = field(default_factory=set)
    broken: Definition | None = None  # a definition with syntax errors

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
    """Resolves the uses of definitions, each once, and collects closures."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._uses: dict[Definition, Uses] = {}
        self._sound: dict[Symbol, bool] = {}

    def uses(self, definition: Definition) -> Uses:
        if definition not in self._uses:
            self._uses[definition] = self._resolve(definition)
        return self._uses[definition]

    def _resolve(self, definition: Definition) -> Uses:
        path, usage = definition.path, definition.usage

        def resolve(references: Iterable[Reference]) -> list[Use]:
            return [Use(r, self.tree.resolve(path, r.name, r.attributes)) for r in references]

        return Uses(
            resolve(usage.references),
            [(part.node, resolve(part.references)) for part in usage.optional],
            [(annotation, resolve(annotation.references)) for annotation in usage.annotations],
            [
                (node, [(item.local, self.tree.resolve_import(path, item)) for item in imports(node)])
                for node in usage.imports
            ],
        )

    def close(self, entry: Definition) -> Closure:
        """The closure of a class; `failure` says whether it is one."""
        closure = Closure(entry)
        self._collect(closure)
        self._keep_registrations(closure)
        closure.definitions.sort(key=lambda d: (d.path, d.order))
        return closure

    def _collect(self, closure: Closure) -> None:
        seen = {closure.entry}
        queue = [closure.entry]
        while queue and len(closure.definitions) <= MAX_DEFINITIONS:
            definition = queue.pop()
            closure.definitions.append(definition)
            if definition.node.has_error:
                closure.broken = definition
                continue
            for target in self._wanted(closure, definition):
                if isinstance(target, Missing):
                    closure.missing.add(target)
                elif isinstance(target, Symbol):
                    new = [needed for needed in self._definitions(target, closure.entry) if needed not in seen]
                    seen.update(new)
                    queue.extend(new)

    def _wanted(self, closure: Closure, definition: Definition) -> list[Target]:
        uses = self.uses(definition)
        wanted = list(uses.targets())
        for node, optional in uses.optional:
            if _role(node, optional) is _Role.PART and all(self.is_sound(use.resolved.target) for use in optional):
                closure.kept.add(node.id)
                wanted.extend(use.resolved.target for use in optional)
        return wanted

    def _keep_registrations(self, closure: Closure) -> None:
        """A registration stays where its registry is needed anyway: then something looks it up."""
        symbols = {Symbol(d.path, name) for d in closure.definitions for name in d.names}
        for definition in closure.definitions:
            for node, optional in self.uses(definition).optional:
                if _role(node, optional) is _Role.REGISTRATION:
                    targets = [use.resolved.target for use in optional]
                    if all(t in symbols if isinstance(t, Symbol) else self.is_sound(t) for t in targets):
                        closure.kept.add(node.id)

    def _definitions(self, symbol: Symbol, entry: Definition) -> list[Definition]:
        """The statements that give a symbol its value; the entry class is one even where it is shadowed."""
        if symbol.path == entry.path and symbol.name in entry.names:
            return [entry]
        index = self.tree.index(symbol.path)
        changes = (d for d in index.mutations.get(symbol.name, ()) if self._is_sound_definition(d))
        return [*index.definitions(symbol.name), *changes]

    def is_sound(self, target: Target) -> bool:
        """Whether a target and all that it needs can be had."""
        if not isinstance(target, Symbol):
            return isinstance(target, External | Builtin)
        if target not in self._sound:
            self._sound[target] = all(map(self._is_sound_definition, self._definitions_of(target)))
        return self._sound[target]

    def _is_sound_definition(self, definition: Definition) -> bool:
        seen, queue = {definition}, [definition]
        while queue:
            current = queue.pop()
            if current.node.has_error:
                return False
            for target in self.uses(current).targets():
                if isinstance(target, Missing):
                    return False
                if isinstance(target, Symbol):
                    new = [d for d in self._definitions_of(target) if d not in seen]
                    seen.update(new)
                    queue.extend(new)
        return True

    def _definitions_of(self, symbol: Symbol) -> list[Definition]:
        return self.tree.index(symbol.path).definitions(symbol.name)


class _Role(Enum):
    """What a decorator or log statement is for."""

    PART = auto()  # of what the definition does
    REGISTRATION = auto()  # tells a registry of the definition
    DIRECTIVE = auto()  # tells a compiler how to treat it


def _role(node: Node, uses: list[Use]) -> _Role:
    if node.type != "decorator":
        return _Role.PART
    first = uses[0]
    rest = first.reference.attributes[first.resolved.consumed :]
    if isinstance(first.resolved.target, External):
        directive = _DIRECTIVES.match(".".join((first.resolved.target.dotted, *rest)))
        return _Role.DIRECTIVE if directive else _Role.PART
    is_symbol = isinstance(first.resolved.target, Symbol)
    if (is_symbol and rest) or _REGISTRIES.search(".".join((first.reference.name, *first.reference.attributes))):
        return _Role.REGISTRATION
    return _Role.PART
