"""Resolve what definitions need, and decide which of their parts to drop because a need cannot be met."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from . import facts
from . import tree_sitter_nodes as ts
from .bindings import Definition, imports
from .classes import Classes
from .lookups import NO_LOOK_UPS, LookUps, look_ups
from .tree import Builtin, External, Missing, SourceTree, Symbol, Target
from .usage import Kind, Part, Usage

MAX_DEFINITIONS = 80

# Decorators that only inform a compiler or a registry: the definition computes the same without them.
_DIRECTIVES = re.compile(
    r"torch\.(jit\.(script|script_if_tracing|ignore|unused|export)|compile|compiler\.disable|_dynamo\.disable)\b"
)
_REGISTRIES = re.compile(r"regist|_factory|export|add_\w*docstr|auto_docstring|deprecat", re.IGNORECASE)
# Methods that torch calls: a class needs them even if no code mentions them.
_CALLED_BY_TORCH = re.compile(
    r"__\w+__|forward|train|eval|to|apply|(get|set)_extra_state|(load_)?state_dict"
    r"|(named_)?(parameters|buffers|children|modules)|_apply|_load_from_state_dict|_save_to_state_dict|_get_name|_named_members|_replicate_for_data_parallel"
    r"|_?register_\w+|add_module|\w*_call_impl|_slow_forward|get_(submodule|parameter|buffer)"
)
# Bases that call none of the methods a subclass adds. A container, layer or dictionary may call any of them.
_QUIET = re.compile(r"torch\.nn\.(modules\.(module\.)?)?Module|abc\.ABC|typing(_extensions)?\.(Generic|Protocol)")


@dataclass(frozen=True, slots=True)
class Needs:
    """Needs of a piece of a definition, in the order of first mention, and the parts to drop from it."""

    symbols: tuple[Symbol, ...]
    missing: frozenset[Missing]
    dropped: frozenset[Part]
    attributes: frozenset[str]  # attribute names that the piece mentions
    look_ups: LookUps = NO_LOOK_UPS
    methods: tuple[tuple[str, Part], ...] = ()  # methods to drop unless something mentions their name


class Resolver:
    """Needs of the definitions of one tree; results are cached where many closures share them."""

    def __init__(self, tree: SourceTree, classes: Classes) -> None:
        self.tree = tree
        self._classes = classes
        self._hard: dict[Definition, dict[Target, None]] = {}
        self._sound: dict[Definition, bool] = {}
        self._drops: dict[Part, bool] = {}
        self._needs: dict[Definition, Needs] = {}
        self._needed: dict[Symbol, list[Definition]] = {}

    def targets(self, path: str, usage: Usage) -> list[Target]:
        """Targets of a piece's references and imports, without those of its parts and annotations."""
        targets = [self.tree.resolve(path, item.name, item.attributes).target for item in usage.references]
        for node in usage.imports:
            targets += [self.tree.resolve_import(path, item) for item in imports(node)]
        return targets

    def needed(self, symbol: Symbol) -> list[Definition]:
        """The statements that give a symbol its value."""
        if symbol not in self._needed:
            index = self.tree.index(symbol.path)
            mutations = (d for d in index.mutations.get(symbol.name, ()) if self._is_sound_definition(d))
            self._needed[symbol] = [*index.definitions(symbol.name), *mutations]
        return self._needed[symbol]

    def needs(self, definition: Definition) -> Needs:
        """Needs of a definition, the same for every closure that contains it."""
        if definition not in self._needs:
            idle = self._idle(definition) if definition.is_class else frozenset[Part]()
            needs = self.piece_needs(definition.path, definition.usage.usage, idle)
            gone = {part for part in needs.dropped if part.kind is Kind.METHOD}
            own = ts.text_without(definition.node, [part.node for part in gone])
            methods = tuple((_method_name(part), part) for part in definition.usage.usage.parts if part in gone)
            self._needs[definition] = replace(needs, look_ups=look_ups(own), methods=methods)
        return self._needs[definition]

    def piece_needs(self, path: str, usage: Usage, without: Set[Part] = frozenset()) -> Needs:
        """Needs of a piece of a definition, of its parts that stay included. The parts in `without` are dropped."""
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
        """Needs of a part that stays."""
        return replace(self.piece_needs(definition.path, part.usage), look_ups=look_ups(part.node.text or b""))

    # parts

    def _idle(self, definition: Definition) -> frozenset[Part]:
        """Methods of a class that can only be called by code that mentions their name."""
        for base in self._classes.order(definition):
            known = self._classes.knows_bases(base) if isinstance(base, Definition) else _QUIET.fullmatch(base.dotted)
            if not known:
                return frozenset()
        methods = (part for part in definition.usage.usage.parts if part.kind is Kind.METHOD)
        return frozenset(m for m in methods if self._can_drop(definition.path, m) and not _is_registered(m))

    def drops(self, path: str, part: Part) -> bool:
        """True if the part is dropped from every closure."""
        if part not in self._drops:
            is_noise = part.kind in (Kind.DECORATOR, Kind.WRAPPER) and not self._computes(path, part)
            self._drops[part] = is_noise or (self._can_drop(path, part) and not self._is_sound_part(path, part))
        return self._drops[part]

    def _can_drop(self, path: str, part: Part) -> bool:
        """True if the part may be dropped when one of its needs cannot be met."""
        match part.kind:
            case Kind.BRANCH:
                return self._never_runs(path, part)
            case Kind.WRAPPER:
                return not self._computes(path, part)
            case Kind.METHOD:
                return not _CALLED_BY_TORCH.fullmatch(_method_name(part))
        return True

    def _never_runs(self, path: str, part: Part) -> bool:
        """True if an earlier branch certainly runs instead, or the branch's own condition is certainly false."""

        def flag(name: str) -> bool | None:
            target = self.tree.resolve(path, name).target
            return self._constant(target) if isinstance(target, Symbol) else None

        is_else = part.node.type == "else_clause"
        before = part.conditions if is_else else part.conditions[:-1]
        if any(facts.truth(condition, flag) is True for condition in before):
            return True
        return not is_else and facts.truth(part.conditions[-1], flag) is False

    def _constant(self, symbol: Symbol) -> bool | None:
        """The value of a flag: a name that exactly one statement sets, to a certain value."""
        definitions = self.tree.index(symbol.path).definitions(symbol.name)
        value = ts.assigned(definitions[0].node) if len(definitions) == 1 else None
        return facts.truth(value) if value is not None else None

    def _computes(self, path: str, part: Part) -> bool:
        """True if a decorator or wrapper may change what is computed; False if it only registers."""
        if not part.usage.references:
            return True
        first = part.usage.references[0]
        resolved = self.tree.resolve(path, first.name, first.attributes)
        rest = first.attributes[resolved.consumed :]
        if isinstance(resolved.target, External):
            return not _DIRECTIVES.match(".".join((resolved.target.dotted, *rest)))
        if isinstance(resolved.target, Symbol) and rest and part.kind is Kind.DECORATOR:
            return False
        return part.kind is Kind.WRAPPER or not _REGISTRIES.search(".".join((first.name, *first.attributes)))

    # soundness

    def _is_sound_part(self, path: str, part: Part) -> bool:
        """True if all needs of a part can be met. Folds inside a branch or fold do not count."""
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
        """True if the definition and all it needs can be resolved, within the limit of definitions."""
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
        """Targets that a piece cannot do without once its droppable parts are dropped (FOLD parts only if `folds`)."""
        yield from self.targets(path, usage)
        for part in usage.parts:
            if not self._can_drop(path, part) or (part.kind is Kind.FOLD and not folds):
                yield from self._hard_targets(path, part.usage, folds)
            elif part.fallback is not None:
                yield from self._hard_targets(path, part.fallback, folds)


def _is_registered(method: Part) -> bool:
    """True if a decorator may register the method elsewhere: `@f.register`."""
    return any(_REGISTRIES.search(ts.text(n)) for n in method.node.named_children if n.type == "decorator")


def _method_name(part: Part) -> str:
    return ts.text(ts.field(ts.undecorated(part.node), "name"))
