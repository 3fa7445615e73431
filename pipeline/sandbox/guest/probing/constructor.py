"""Finds positional arguments that construct a module: by name and use first, then guided by what raises."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from . import names
from .names import Parameter, Style
from .source import Source
from .trial import Failure, TooBig, attempt, parameter_cap, seed

_TRIALS = 60  # constructions for one style
_NO_VALUE = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Construction:
    """Arguments that construct the module."""

    arguments: str  # Python source of a list
    module: nn.Module


class Constructor:
    """The entry class, and every way that is known to fill in its parameters."""

    def __init__(self, namespace: dict[str, Any], entry_point: str, source: Source, file: str, limit: int) -> None:
        self.namespace = {"torch": torch, "nn": nn, **namespace}
        self.entry: type[nn.Module] = namespace[entry_point]
        self.file, self.limit = file, limit
        self.parameters = list(_parameters(self.entry, source))
        self.classes = tuple(
            name
            for name, value in namespace.items()
            if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == self.entry.__module__
            if name != entry_point and not name.startswith("_")
        )

    def build(self, arguments: str) -> nn.Module:
        """A module in eval mode, initialised from seed 0."""
        seed(0)
        with parameter_cap(self.limit):
            module = self.entry(*eval(arguments, dict(self.namespace)))
        attempt(module.eval, self.file)  # some override train() with required arguments
        nn.Module.eval(module) if not _raises(module) else None
        return module

    def constructions(self) -> Iterator[Construction | Failure]:
        """A construction for each style that works, each set of arguments once; failures of the others."""
        seen: set[str] = set()
        for style in names.STYLES if self.parameters else names.STYLES[:1]:
            chosen = self._initial(style)
            text = self._text(chosen)
            if text in seen:
                continue
            try:
                yield self._search(chosen, style, seen)
            except TooBig as error:
                yield Failure("TooBig", str(error), 0, (), ())

    def _initial(self, style: Style) -> dict[str, str]:
        chosen = {}
        for parameter in self.parameters:
            if parameter.required:
                chosen[parameter.name] = names.candidates(parameter, style, self.classes)[0]
            elif style.shrink and (text := names.smaller(parameter, style)) is not None:
                chosen[parameter.name] = text
        return chosen

    def _text(self, chosen: dict[str, str]) -> str:
        """The positional list: everything up to the last parameter that is not left to its default."""
        last = max((i for i, p in enumerate(self.parameters) if p.name in chosen), default=-1)
        return f"[{', '.join(chosen.get(p.name, p.default) for p in self.parameters[: last + 1])}]"

    def _search(self, chosen: dict[str, str], style: Style, seen: set[str]) -> Construction | Failure:
        """Hill climbing: replace what the failing expression names, keep what gets further."""
        budget = _TRIALS
        construction, failure = self._attempt(chosen, seen)
        first = failure
        while failure is not None and budget > 0:
            improved = False
            for name, text in self._repairs(chosen, failure, style):
                changed = {**chosen, name: text}
                budget -= 1
                if budget < 0:
                    break
                if self._text(changed) in seen:
                    continue
                construction, after = self._attempt(changed, seen)
                if after is None or after.line > failure.line or _moved(failure, after):
                    chosen, failure, improved = changed, after, True
                    break
            if not improved:
                break
        if construction is not None and failure is None:
            return construction
        assert first is not None
        return failure or first

    def _attempt(self, chosen: dict[str, str], seen: set[str]) -> tuple[Construction | None, Failure | None]:
        text = self._text(chosen)
        seen.add(text)
        module, failure = attempt(lambda: self.build(text), self.file)
        return (Construction(text, module), None) if module is not None else (None, failure)

    def _repairs(self, chosen: dict[str, str], failure: Failure, style: Style) -> Iterator[tuple[str, str]]:
        """Other values, first for the parameters that the failing expression names."""
        blamed = [p for name in (*failure.names, *failure.inner_names) for p in self.parameters if p.name == name]
        blamed += [p for p in self.parameters if p.name in chosen]
        blamed += [p for p in self.parameters if p.value is None and p.usage.called]
        if failure.kind == "AttributeError" and "'Config'" in failure.message:
            yield from self._attribute(chosen, failure, style)
        if failure.kind == "IndexError":
            yield from self._longer(chosen, [p.name for p in blamed])
        unique = list(dict.fromkeys(p.name for p in blamed))
        by_name = {p.name: p for p in self.parameters}
        options = {name: names.candidates(by_name[name], style, self.classes) for name in unique}
        for depth in range(max(map(len, options.values()), default=0)):
            for name in unique:
                if depth < len(options[name]) and options[name][depth] != chosen.get(name):
                    yield name, options[name][depth]

    def _longer(self, chosen: dict[str, str], blamed: list[str]) -> Iterator[tuple[str, str]]:
        """Lists that an index went past the end of get more items like their last one."""
        for name in dict.fromkeys(blamed):
            text = chosen.get(name, "")
            if text.startswith("[") and text != "[]":
                last = ast.unparse(ast.parse(text, mode="eval").body.elts[-1])
                for more in (1, 2, 4):
                    yield name, f"{text[:-1]}, {', '.join([last] * more)}]"

    def _attribute(self, chosen: dict[str, str], failure: Failure, style: Style) -> Iterator[tuple[str, str]]:
        """`'Config' object has no attribute 'x'`: give it one."""
        missing = failure.message.rsplit("'", 2)[-2]
        value = style.expand(names.by_name(missing)[0])
        for name, text in chosen.items():
            if text.startswith("type('Config', (), {"):
                joint = ", " if not text.endswith("{})()") else ""
                yield name, f"{text.removesuffix('})()')}{joint}{missing!r}: {value}}})()"


def _moved(before: Failure, after: Failure) -> bool:
    """The same line of the constructor fails, but on another part of it or further inside."""
    return after.line == before.line and before.kind != after.kind and len(after.names) > len(before.names)


def _raises(module: nn.Module) -> bool:
    return not hasattr(module, "_modules")


def _parameters(entry: type[nn.Module], source: Source) -> Iterator[Parameter]:
    """The parameters of the first constructor in the MRO that names them."""
    for base in entry.__mro__:
        initialiser = base.__dict__.get("__init__")
        if initialiser is None or base in (nn.Module, object):
            continue
        signature = _signature(initialiser)
        if signature is None:
            continue
        parameters = list(signature.parameters.values())[1:]
        named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        passes_on = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        if not named and passes_on:
            continue
        function = source.method(base.__name__, "__init__")
        defaults = source.defaults(function) if function else {}
        for p in named:
            annotation = "" if p.annotation is _NO_VALUE else _annotation(p.annotation)
            documented = source.documented(base.__name__, p.name)
            usage = source.usage(base.__name__, "__init__", p.name)
            required = p.default is _NO_VALUE
            default = "" if required else defaults.get(p.name, repr(p.default))
            examples = tuple(source.examples.get(p.name, ()))
            value = None if required else p.default
            yield Parameter(p.name, required, annotation or documented, usage, default, value, examples)
        return


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)


__all__ = ["Construction", "Constructor", "TooBig"]
