"""Find positional arguments that construct a module, first by names and uses, then by the errors that are raised."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._device import DeviceContext

from .guarded_call import Failure, TooBig, attempt, parameter_cap, result_or_none, seed
from .parameter_values import (
    SMALL_STYLES,
    STYLES,
    Parameter,
    Style,
    candidates,
    layers_with,
    named_alternatives,
    smaller,
    with_attribute,
    with_key,
    with_other_values,
)
from .parameters import constructor_parameters, has_var_positional
from .shrink_arguments import ModuleSize, shrink_arguments
from .source_hints import Source

_MAX_TRIALS = 60  # constructions for one style


_RANDOM_VALUES = frozenset(
    {nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_, torch.Tensor.uniform_, torch.Tensor.normal_}
)


class _Outline(DeviceContext):
    """A default device, on which the values of parameters are not drawn: drawing takes half of a construction."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _RANDOM_VALUES:
            tensor = args[0] if args else (kwargs or {}).get("tensor")
            if isinstance(tensor, torch.Tensor) and tensor.is_meta:
                return tensor
        return super().__torch_function__(func, types, args, kwargs)


@dataclass(frozen=True, slots=True)
class Construction:
    """A module and the arguments that construct it."""

    arguments: str  # Python source of a list
    module: nn.Module
    values: Mapping[str, str]  # parameter -> the source of its value


class Constructor:
    """Constructs the entry class with different arguments."""

    def __init__(self, namespace: dict[str, Any], entry_point: str, source: Source, file: str, limit: int) -> None:
        """Initialise.

        Args:
            namespace: names of the loaded source.
            file: path of the source.
            limit: largest number of elements of parameters and buffers.
        """
        self._namespace = {"torch": torch, "nn": nn, **namespace}
        self._entry: type[nn.Module] = namespace[entry_point]
        self.file, self._limit = file, limit
        self._parameters = list(constructor_parameters(self._entry, source, namespace))
        self._tried: set[str] = set()  # lists of arguments
        self._sizes: dict[str, ModuleSize | None] = {}  # list of arguments -> size of the module
        self._classes = tuple(
            name
            for name, value in namespace.items()
            if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == self._entry.__module__
            if name != entry_point and not name.startswith("_")
        )

    def build(self, arguments: str) -> nn.Module:
        """Construct the module in eval mode, initialised from seed 0."""
        seed(0)
        with parameter_cap(self._limit):
            module = self._entry(*eval(arguments, dict(self._namespace)))
        _, failure = attempt(module.eval, self.file)
        if failure is not None:  # some override train() with required arguments
            for child in module.modules():
                child.training = False
        if not callable(module.modules) or not isinstance(module.state_dict(keep_vars=True), dict):
            raise TypeError("the module hides a method of nn.Module")
        return module

    def constructions(self, styles: Sequence[Style] = STYLES) -> Iterator[Construction | Failure]:
        """One construction or failure for each style. Arguments that were tried before are skipped."""
        for style in styles if self._parameters else styles[:1]:
            chosen = self._initial(style)
            if self._text(chosen) not in self._tried:
                yield self._search(chosen, style)

    def construct(self, chosen: Mapping[str, str]) -> Construction | Failure:
        """Construct with these values, and the best candidate for each other required parameter."""
        required = [p for p in self._parameters if p.required and p.name not in chosen]
        return self._attempt({**{p.name: candidates(p, STYLES[0], self._classes)[0] for p in required}, **chosen})

    def shrunk(self) -> Iterator[Construction | Failure]:
        """Constructions with every number as small as makes the module smaller, measured on the meta device."""
        for style in SMALL_STYLES[:2]:
            chosen = self._initial(style)
            texts = {p.name: chosen.get(p.name, p.default) for p in self._parameters}
            changed = {**chosen, **shrink_arguments(texts, self._measure)}
            if self._text(changed) not in self._tried:
                yield self._attempt(changed)

    def _measure(self, texts: Mapping[str, str]) -> ModuleSize | None:
        text = self._text(texts)

        def construct() -> ModuleSize:
            with _Outline(torch.device("meta")):
                return ModuleSize.of(self._entry(*eval(text, dict(self._namespace))))

        if text not in self._sizes:
            self._sizes[text] = result_or_none(construct)
        return self._sizes[text]

    def evened(self, construction: Construction, size: int, large: int) -> nn.Module | None:
        """The module with `size` for every integer argument or default from `large` on; None if that fails."""
        values = construction.values
        even = {name: _evened(text, size, large) for name, text in values.items()}
        given = {p.name for p in self._parameters if p.required or values.get(p.name, p.default) != p.default}
        changed = {name for name, text in even.items() if text != values[name]}
        for names in (given | changed, given):  # some defaults depend on each other
            found = self._attempt({name: text for name, text in even.items() if name in names})
            if isinstance(found, Construction):
                return found.module
        return None

    def _initial(self, style: Style) -> dict[str, str]:
        """Parameter -> value, for the parameters that do not keep their default."""
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
        """The list of positional arguments, up to the last chosen parameter."""
        last = max((i for i, p in enumerate(self._parameters) if p.name in chosen), default=-1)
        return f"[{', '.join(chosen.get(p.name, p.default) for p in self._parameters[: last + 1])}]"

    def _search(self, chosen: dict[str, str], style: Style) -> Construction | Failure:
        """Hill climbing: change one value at a time, as long as the constructor gets further or fails in a new way.

        Returns:
            The construction, or the first of the failures that got furthest.
        """
        result = self._attempt(chosen)
        if isinstance(result, Failure) and self._add_parameters(result):
            chosen = self._initial(style)
            result = self._attempt(chosen)
        furthest = result
        visited: set[tuple[int, str]] = set()
        budget = _MAX_TRIALS
        while isinstance(result, Failure) and result.kind != TooBig.__name__:
            visited.add((result.line, result.message))
            step: tuple[dict[str, str], Failure] | None = None
            for changed in self._repaired(chosen, result, style):
                if budget <= 0 or self._text(changed) in self._tried:
                    continue
                budget -= 1
                after = self._attempt(changed)
                if isinstance(after, Construction) or after.kind == TooBig.__name__:
                    return after
                if after.line > result.line:
                    step = changed, after
                    break
                if step is None and after.line == result.line and (after.line, after.message) not in visited:
                    step = changed, after
            if step is None:
                break
            chosen, result = step
            if isinstance(furthest, Failure) and result.line > furthest.line:
                furthest = result
        return furthest

    def _attempt(self, chosen: Mapping[str, str]) -> Construction | Failure:
        text = self._text(chosen)
        self._tried.add(text)
        try:
            module, failure = attempt(lambda: self.build(text), self.file)
        except TooBig as error:
            return Failure(TooBig.__name__, str(error), 0, (), ())
        if failure is not None or module is None:
            return failure or Failure("TypeError", "the constructor gives nothing", 0, (), ())
        return Construction(text, module, {p.name: chosen.get(p.name, p.default) for p in self._parameters})

    def _add_parameters(self, failure: Failure) -> bool:
        """Add the parameters of a base to which `*args` are passed on, from the message about missing arguments."""
        missing = re.search(r"missing \d+ required positional arguments?: (.*)", failure.message)
        names = re.findall(r"'(\w+)'", missing[1]) if missing else []
        if not names or not has_var_positional(self._entry) or {p.name for p in self._parameters} & set(names):
            return False
        self._parameters += [Parameter(name) for name in names]
        return True

    def _repaired(self, chosen: dict[str, str], failure: Failure, style: Style) -> Iterator[dict[str, str]]:
        """`chosen` with one other value, first for the parameters that the failing expression names."""
        message = failure.message
        parameters = {p.name: p for p in self._parameters}
        blamed = [name for name in (*failure.names, *failure.inner_names) if name in parameters]
        blamed += [p.name for p in self._parameters if p.name in chosen or (p.value is None and p.usage.called)]
        names = list(dict.fromkeys(blamed))
        values: list[tuple[str, str]] = []  # (parameter, another value)
        if missing := re.search(r"'Config' object has no attribute '(\w+)'", message):
            values += [
                (n, style.expand(more)) for n, text in chosen.items() if (more := with_attribute(text, missing[1]))
            ]
        if missing := re.search(r"object has no attribute '(\w+)'", message):
            values += [(name, style.expand(text)) for name in names[:2] for text in layers_with({missing[1]})]
        if failure.kind == "KeyError":
            larger = {name: with_key(text, message.strip("'")) for name, text in chosen.items()}
            values += [(name, style.expand(text)) for name, text in larger.items() if text]
        values += [(name, other) for name, text in chosen.items() for other in named_alternatives(text, message)]
        read = {*failure.names, *failure.inner_names}
        values += [
            (name, other)
            for name, text in chosen.items()
            if text.startswith(("type('Config'", "{")) and not layers_with(parameters[name].usage.attributes)
            for other in with_other_values(text, read, style)
        ]
        if listed := re.search(r"must be one of (\[.*?\])", message):
            values += [(name, text) for name in names[:3] for text in _items(listed[1])]
        if missing := re.search(r"type object '\w+' has no attribute '(\w+)'", message):
            having = [name for name in self._classes if hasattr(self._namespace[name], missing[1])]
            values += [(name, other) for name in names for other in having if parameters[name].usage.called]
        if "after ** must be a mapping" in message:
            values += [(name, "{}") for name in names]
        if failure.kind == "IndexError":
            values += [(name, text) for name in names for text in _longer(chosen.get(name, ""))]
        yield from ({**chosen, name: text} for name, text in values)
        options = {name: candidates(parameters[name], style, self._classes) for name in names}
        for rank in range(max(map(len, options.values()), default=0)):
            for name in names:
                if rank < len(options[name]) and options[name][rank] != chosen.get(name):
                    yield {**chosen, name: options[name][rank]}


def _evened(text: str, size: int, large: int) -> str:
    """Source of the value with `size` for every integer from `large` on."""
    tree = ast.parse(text or "None", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= large:
            node.value = size
    return ast.unparse(tree)


def _items(text: str) -> Iterator[str]:
    """The sources of the items of a list; none if the list is cut off, as in a long message."""
    with contextlib.suppress(SyntaxError, ValueError):
        yield from map(repr, ast.literal_eval(text))


def _longer(text: str) -> Iterator[str]:
    """The list with more items like its last one."""
    node = ast.parse(text, mode="eval").body if text.startswith("[") else None
    if isinstance(node, ast.List) and node.elts:
        last = ast.unparse(node.elts[-1])
        for more in (1, 2, 4):
            yield f"{text[:-1]}, {', '.join([last] * more)}]"
