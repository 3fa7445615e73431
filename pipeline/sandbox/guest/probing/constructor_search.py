"""Finds positional arguments that construct a module: by name and use first, then guided by what raises."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .guarded_call import Failure, TooBig, attempt, parameter_cap, seed
from .lean import Burden, leanest
from .parameter_values import (
    LEAN_STYLES,
    STYLES,
    Parameter,
    Style,
    candidates,
    layers_with,
    named_instead,
    smaller,
    with_attribute,
    with_key,
)
from .parameters import constructor_parameters, takes_more
from .source_hints import Source

_TRIALS = 60  # constructions for one style


@dataclass(frozen=True, slots=True)
class Construction:
    """Arguments that construct the module."""

    arguments: str  # Python source of a list
    module: nn.Module
    values: Mapping[str, str]  # parameter -> the source of its value


class Constructor:
    """The entry class, and every way that is known to fill in its parameters."""

    def __init__(self, namespace: dict[str, Any], entry_point: str, source: Source, file: str, limit: int) -> None:
        """Args: `file` is where the source lies; `limit` is on the elements of parameters and buffers."""
        self._namespace = {"torch": torch, "nn": nn, **namespace}
        self._entry: type[nn.Module] = namespace[entry_point]
        self.file, self._limit = file, limit
        self._parameters = list(constructor_parameters(self._entry, source, namespace))
        self._seen: set[str] = set()  # lists of arguments that were tried
        self._classes = tuple(
            name
            for name, value in namespace.items()
            if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == self._entry.__module__
            if name != entry_point and not name.startswith("_")
        )

    def build(self, arguments: str) -> nn.Module:
        """A module in eval mode, initialised from seed 0."""
        seed(0)
        with parameter_cap(self._limit):
            module = self._entry(*eval(arguments, dict(self._namespace)))
        _, failure = attempt(module.eval, self.file)
        if failure is not None:  # some override train() with required arguments
            for child in module.modules():
                child.training = False
        return module

    def constructions(self, styles: Sequence[Style] = STYLES) -> Iterator[Construction | Failure]:
        """A construction for each style that works, each set of arguments once; failures of the others."""
        for style in styles if self._parameters else styles[:1]:
            chosen = self._initial(style)
            if self._text(chosen) in self._seen:
                continue
            try:
                yield self._search(chosen, style)
            except TooBig as error:
                yield Failure("TooBig", str(error), 0, (), ())

    def construct(self, chosen: Mapping[str, str]) -> Construction | Failure:
        """With these values; of the other parameters, those without a default get the most likely one."""
        required = [p for p in self._parameters if p.required]
        guessed = {p.name: candidates(p, STYLES[0], self._classes)[0] for p in required if p.name not in chosen}
        try:
            return self._attempt({**guessed, **chosen})
        except TooBig as error:
            return Failure("TooBig", str(error), 0, (), ())

    def lean(self) -> Iterator[Construction | Failure]:
        """With every number as small as makes the module lighter; layers are constructed without data to see that."""
        for style in LEAN_STYLES[:2]:
            chosen = self._initial(style)
            texts = {p.name: chosen.get(p.name, p.default) for p in self._parameters}
            changed = {**chosen, **leanest(texts, self._burden)}
            if self._text(changed) not in self._seen:
                try:
                    yield self._attempt(changed)
                except TooBig as error:
                    yield Failure("TooBig", str(error), 0, (), ())

    def _burden(self, texts: Mapping[str, str]) -> Burden | None:
        def construct() -> Burden:
            with torch.device("meta"):
                return Burden.of(self._entry(*eval(self._text(texts), dict(self._namespace))))

        return attempt(construct, self.file)[0]

    def evened(self, made: Construction, size: int, large: int) -> nn.Module | None:
        """Constructed with `size` for every number from `large` on, defaults included; None if it cannot be."""
        even = {name: _evened(text, size, large) for name, text in made.values.items()}
        given = {p.name for p in self._parameters if p.required or made.values.get(p.name, p.default) != p.default}
        changed = {name for name, text in even.items() if text != made.values[name]}
        for names in (given | changed, given):  # some defaults belong together
            try:
                found = self._attempt({name: text for name, text in even.items() if name in names})
            except TooBig:
                continue
            if isinstance(found, Construction):
                return found.module
        return None

    def _initial(self, style: Style) -> dict[str, str]:
        """Parameter -> value, for those that are not left to their defaults."""
        chosen = {}
        for parameter in self._parameters:
            if parameter.required or (style.fill and parameter.value is None):
                chosen[parameter.name] = candidates(parameter, style, self._classes)[0]
            elif style.instances and getattr(parameter.value, "__module__", "") == nn.modules.activation.__name__:
                chosen[parameter.name] = f"{parameter.default}()"
            elif style.shrink and (text := smaller(parameter, style)) is not None:
                chosen[parameter.name] = text
        return chosen

    def _text(self, chosen: Mapping[str, str]) -> str:
        """The positional list: everything up to the last parameter that is not left to its default."""
        last = max((i for i, p in enumerate(self._parameters) if p.name in chosen), default=-1)
        return f"[{', '.join(chosen.get(p.name, p.default) for p in self._parameters[: last + 1])}]"

    def _search(self, chosen: dict[str, str], style: Style) -> Construction | Failure:
        """Hill climbing over one value at a time, by how far the constructor gets; sideways where nothing is better."""
        result = self._attempt(chosen)
        if isinstance(result, Failure) and self._learn(result):
            chosen = self._initial(style)
            result = self._attempt(chosen)
        told = result  # the first of the failures that got furthest
        visited: set[tuple[int, str]] = set()
        budget = _TRIALS
        while isinstance(result, Failure):
            visited.add((result.line, result.message))
            step: tuple[dict[str, str], Failure] | None = None
            for changed in self._repaired(chosen, result, style):
                if budget <= 0 or self._text(changed) in self._seen:
                    continue
                budget -= 1
                after = self._attempt(changed)
                if isinstance(after, Construction):
                    return after
                if after.line > result.line:
                    step = changed, after
                    break
                if step is None and after.line == result.line and (after.line, after.message) not in visited:
                    step = changed, after
            if step is None:
                break
            chosen, result = step
            told = result if isinstance(told, Failure) and result.line > told.line else told
        return told

    def _attempt(self, chosen: Mapping[str, str]) -> Construction | Failure:
        text = self._text(chosen)
        self._seen.add(text)
        module, failure = attempt(lambda: self.build(text), self.file)
        if failure is not None or module is None:
            return failure or Failure("TypeError", "the constructor gives nothing", 0, (), ())
        return Construction(text, module, {p.name: chosen.get(p.name, p.default) for p in self._parameters})

    def _learn(self, failure: Failure) -> bool:
        """`*args` that go to another constructor: the message tells which parameters that requires."""
        missing = re.search(r"missing \d+ required positional arguments?: (.*)", failure.message)
        names = re.findall(r"'(\w+)'", missing[1]) if missing else []
        if not names or not takes_more(self._entry) or {p.name for p in self._parameters} & set(names):
            return False
        self._parameters += [Parameter(name) for name in names]
        return True

    def _repaired(self, chosen: dict[str, str], failure: Failure, style: Style) -> Iterator[dict[str, str]]:
        """`chosen` with another value for one parameter; first for those that the failing expression names."""
        parameters = {p.name: p for p in self._parameters}
        blamed = [name for name in (*failure.names, *failure.inner_names) if name in parameters]
        blamed += [p.name for p in self._parameters if p.name in chosen or (p.value is None and p.usage.called)]
        names = list(dict.fromkeys(blamed))
        if missing := re.search(r"'Config' object has no attribute '(\w+)'", failure.message):
            for name, text in chosen.items():
                if (larger := with_attribute(text, missing[1])) is not None:
                    yield {**chosen, name: style.expand(larger)}
        if missing := re.search(r"object has no attribute '(\w+)'", failure.message):
            layers = [style.expand(text) for text in layers_with({missing[1]})]
            yield from ({**chosen, name: text} for name in names[:2] for text in layers)
        if failure.kind == "KeyError":
            added = {name: with_key(text, failure.message.strip("'")) for name, text in chosen.items()}
            yield from ({**chosen, name: style.expand(larger)} for name, larger in added.items() if larger)
        for name, text in chosen.items():
            yield from ({**chosen, name: other} for other in named_instead(text, failure.message))
        if listed := re.search(r"must be one of (\[.*?\])", failure.message):
            yield from ({**chosen, name: text} for name in names[:3] for text in _items(listed[1]))
        if failure.kind == "IndexError":
            yield from ({**chosen, name: text} for name in names for text in _longer(chosen.get(name, "")))
        options = {name: candidates(parameters[name], style, self._classes) for name in names}
        for rank in range(max(map(len, options.values()), default=0)):
            for name in names:
                if rank < len(options[name]) and options[name][rank] != chosen.get(name):
                    yield {**chosen, name: options[name][rank]}


def _evened(text: str, size: int, large: int) -> str:
    """Source of a value with `size` for every integer from `large` on."""
    tree = ast.parse(text or "None", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= large:
            node.value = size
    return ast.unparse(tree)


def _items(text: str) -> Iterator[str]:
    """The sources of the items of a list."""
    with contextlib.suppress(SyntaxError, ValueError):  # a message is cut where it is long
        yield from map(repr, ast.literal_eval(text))


def _longer(text: str) -> Iterator[str]:
    """The list with more items like its last one."""
    node = ast.parse(text, mode="eval").body if text.startswith("[") else None
    if isinstance(node, ast.List) and node.elts:
        last = ast.unparse(node.elts[-1])
        for more in (1, 2, 4):
            yield f"{text[:-1]}, {', '.join([last] * more)}]"
