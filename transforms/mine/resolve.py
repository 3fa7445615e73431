"""What the pieces of definitions need, and which of the pieces go because that cannot be had."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from . import facts, tree_sitter_nodes
from .bindings import Definition, imports
from .classes import Classes
from .lookups import NO_LOOK_UPS, LookUps, look_ups
from .tree import Builtin, External, Missing, Resolved, SourceTree, Symbol, Target
from .usage import Kind, Part, Reference, Usage

MAX_DEFINITIONS = 80

# Decorators that tell a compiler or a registry about a definition and leave what it computes alone.
_DIRECTIVES = re.compile(
    r"torch\.(jit\.(script|script_if_tracing|ignore|unused|export)|compile|compiler\.disable|_dynamo\.disable)\b"
)
_REGISTRIES = re.compile(r"regist|_factory|export|add_\w*docstr|auto_docstring|deprecat", re.IGNORECASE)
# Methods that torch calls, so that a class without a mention of them still needs them.
_CALLED_BY_TORCH = re.compile(
    r"__\w+__|forward|train|eval|to|apply|(get|set)_extra_state|(load_)?state_dict"
    r"|(named_)?(parameters|buffers|children|modules)|_apply|_load_from_state_dict|_save_to_state_dict|_get_name|_named_members|_replicate_for_data_parallel"
    r"|_?register_\w+|add_module|\w*_call_impl|_slow_forward|get_(submodule|parameter|buffer)"
)
# Bases that call no other methods of theirs. A container, a layer or a dictionary may call any that it has.
_QUIET = re.compile(r"torch\.nn\.(modules\.(module\.)?)?Module|abc\.ABC|typing(_extensions)?\.(Generic|Protocol)")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a piece of a definition needs, each once and in the order of its mention, and the parts of it that go."""

    symbols: tuple[Symbol, ...]
    missing: frozenset[Missing]
    dropped: frozenset[Part]
    attributes: frozenset[str]  # that it mentions
    look_ups: LookUps = NO_LOOK_UPS
    methods: tuple[tuple[str, Part], ...] = ()  # of a definition: those that go unless something mentions their name


class Resolver:
    """Resolves references, each once, and judges parts."""

    def __init__(self, tree: SourceTree, classes: Classes) -> None:
        self.tree = tree
        self._classes = classes
        self._resolved: dict[tuple[str, str, tuple[str, ...]], Resolved] = {}
        self._targets: dict[Usage, list[Target]] = {}
        self._hard: dict[Definition, dict[Target, None]] = {}
        self._sound: dict[Definition, bool] = {}
        self._droppable: dict[Part, bool] = {}
        self._drops: dict[Part, bool] = {}
        self._needs: dict[Definition, Needs] = {}
        self._part_needs: dict[Part, Needs] = {}
        self._needed: dict[Symbol, list[Definition]] = {}

    def resolve(self, path: str, reference: Reference) -> Resolved:
        key = (path, reference.name, reference.attributes)
        if key not in self._resolved:
            self._resolved[key] = self.tree.resolve(*key)
        return self._resolved[key]

    def targets(self, path: str, usage: Usage) -> list[Target]:
        """What one piece of a definition needs, its parts and annotations apart."""
        if usage not in self._targets:
            found = [self.resolve(path, reference).target for reference in usage.references]
            for node in usage.imports:
                found += [self.tree.resolve_import(path, item) for item in imports(node)]
            self._targets[usage] = found
        return self._targets[usage]

    def needed(self, symbol: Symbol) -> list[Definition]:
        """The statements that give a symbol its value."""
        if symbol not in self._needed:
            index = self.tree.index(symbol.path)
            changes = (d for d in index.mutations.get(symbol.name, ()) if self._is_sound_definition(d))
            self._needed[symbol] = [*index.definitions(symbol.name), *changes]
        return self._needed[symbol]

    def needs(self, definition: Definition) -> Needs:
        """What a definition needs, whatever class it is for."""
        if definition not in self._needs:
            idle = self._idle(definition) if definition.is_class else frozenset[Part]()
            needs = self.piece_needs(definition.path, definition.usage.usage, idle)
            gone = {part for part in needs.dropped if part.kind is Kind.METHOD}
            own = tree_sitter_nodes.text_without(definition.node, [part.node for part in gone])
            methods = tuple((_method_name(part), part) for part in definition.usage.usage.parts if part in gone)
            self._needs[definition] = replace(needs, look_ups=look_ups(own), methods=methods)
        return self._needs[definition]

    def piece_needs(self, path: str, usage: Usage, without: Set[Part] = frozenset()) -> Needs:
        """What one piece of a definition needs, and those of its parts that stay; of those `without` none does."""
        targets, dropped = dict[Target, None](), set[Part]()
        attributes = set[str]()
        stack = [usage]
        while stack:
            piece = stack.pop()
            targets.update(dict.fromkeys(self.targets(path, piece)))
            attributes |= piece.attributes
            staying = []
            for part in piece.parts:
                if part not in without and not self.drops(path, part):
                    staying.append(part.usage)
                else:
                    dropped.add(part)
                    staying += [part.fallback] if part.fallback is not None else []
            stack += reversed(staying)
        return Needs(
            tuple(target for target in targets if isinstance(target, Symbol)),
            frozenset(target for target in targets if isinstance(target, Missing)),
            frozenset(dropped),
            frozenset(attributes),
        )

    def part_needs(self, definition: Definition, part: Part) -> Needs:
        """What a part needs that stays."""
        if part not in self._part_needs:
            needs = self.piece_needs(definition.path, part.usage)
            self._part_needs[part] = replace(needs, look_ups=look_ups(part.node.text or b""))
        return self._part_needs[part]

    # parts

    def _idle(self, definition: Definition) -> frozenset[Part]:
        """The methods of a class that are called only where their name is mentioned."""
        for base in self._classes.order(definition):
            known = self._classes.knows_bases(base) if isinstance(base, Definition) else _QUIET.fullmatch(base.dotted)
            if not known:
                return frozenset()
        methods = (part for part in definition.usage.usage.parts if part.kind is Kind.METHOD)
        return frozenset(m for m in methods if self._can_drop(definition.path, m) and not _is_registered(m))

    def drops(self, path: str, part: Part) -> bool:
        """Whether the part is taken out, whatever else the class needs."""
        if part not in self._drops:
            is_noise = part.kind in (Kind.DECORATOR, Kind.WRAPPER) and not self._computes(path, part)
            self._drops[part] = is_noise or (self._can_drop(path, part) and not self._is_sound_part(path, part))
        return self._drops[part]

    def _can_drop(self, path: str, part: Part) -> bool:
        """Whether it may be taken out where something that it needs cannot be had."""
        if part not in self._droppable:
            self._droppable[part] = self._is_droppable(path, part)
        return self._droppable[part]

    def _is_droppable(self, path: str, part: Part) -> bool:
        match part.kind:
            case Kind.BRANCH:
                return self._never_runs(path, part)
            case Kind.WRAPPER:
                return not self._computes(path, part)
            case Kind.METHOD:
                return not _CALLED_BY_TORCH.fullmatch(_method_name(part))
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
        value = tree_sitter_nodes.assigned(definitions[0].node) if len(definitions) == 1 else None
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

    def _is_sound_part(self, path: str, part: Part) -> bool:
        """Whether all that a part needs can be had. What goes as a whole is not worth folding what it holds."""
        targets = self._hard_targets(path, part.usage, folds=part.kind not in (Kind.BRANCH, Kind.FOLD))
        return all(map(self._is_sound, targets))

    def _is_sound(self, target: Target) -> bool:
        if not isinstance(target, Symbol):
            return isinstance(target, External | Builtin)
        return all(map(self._is_sound_definition, self.tree.index(target.path).definitions(target.name)))

    def _is_sound_definition(self, definition: Definition) -> bool:
        if definition not in self._sound:
            self._sound[definition] = self._reaches_no_gap(definition)
        return self._sound[definition]

    def _reaches_no_gap(self, definition: Definition) -> bool:
        """More than the limit cannot be had either."""
        seen, queue = {definition}, [definition]
        while queue:
            current = queue.pop()
            if current.has_error or len(seen) > MAX_DEFINITIONS or not self._sound.get(current, True):
                return False
            if current not in self._hard:
                self._hard[current] = dict.fromkeys(self._hard_targets(current.path, current.usage.usage))
            for target in self._hard[current]:
                if isinstance(target, Missing):
                    return False
                if isinstance(target, Symbol):
                    new = [d for d in self.tree.index(target.path).definitions(target.name) if d not in seen]
                    seen.update(new)
                    queue.extend(new)
        return True

    def _hard_targets(self, path: str, usage: Usage, folds: bool = True) -> Iterator[Target]:
        """Targets without which a piece cannot be had, where its own parts may go; folds only if `folds`."""
        yield from self.targets(path, usage)
        for part in usage.parts:
            if not self._can_drop(path, part) or (part.kind is Kind.FOLD and not folds):
                yield from self._hard_targets(path, part.usage, folds)
            elif part.fallback is not None:
                yield from self._hard_targets(path, part.fallback, folds)


def _is_registered(method: Part) -> bool:
    """Whether a decorator may tell others of it: `@f.register`."""
    return any(
        _REGISTRIES.search(tree_sitter_nodes.text(n)) for n in method.node.named_children if n.type == "decorator"
    )


def _method_name(part: Part) -> str:
    return tree_sitter_nodes.text(tree_sitter_nodes.field(tree_sitter_nodes.undecorated(part.node), "name"))
