"""Find the sizes of a module's state that follow from integer arguments of its constructor.

The module is constructed again with these arguments multiplied, on the meta device. Sizes and integer attributes that
change alike, such as `weight.shape[0]` and `normalized_shape[0]`, become one symbol in a trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import nn

from .functional_graph import state_of

_FACTORS = (2, 3)  # two, so that a square of an argument is not taken for a multiple of it
_INHERITED = frozenset(vars(nn.Module()))
_ROUNDING = 1e-12  # relative
_NUMBERS = (int, float, str, bool, type(None))

Key = tuple[Any, ...]  # of a size (name of the tensor, axis); of an attribute (module, attribute, index of the part)
Values = tuple[Any, ...]  # of a size or an attribute in each construction of the module


@dataclass(frozen=True, slots=True)
class Construction:
    """A module's sizes and attributes with some arguments of its constructor changed."""

    arguments: Mapping[int, int]  # position -> new value
    sizes: Mapping[Key, int]
    attributes: Mapping[Key, Any]

    @classmethod
    def of(cls, module: nn.Module, arguments: Mapping[int, int]) -> Construction:
        sizes = {(s.name, axis): size for s in state_of(module) for axis, size in enumerate(s.tensor.shape)}
        attributes = {
            (prefix, name, index): part
            for prefix, child in module.named_modules()
            for name, value in vars(child).items()
            if name not in _INHERITED
            for index, part in enumerate(_parts(value))
        }
        return cls(arguments, sizes, attributes)


@dataclass(frozen=True, slots=True)
class Multiple:
    """`size * factor + offset`, where `size` is that of a base."""

    base: Key
    factor: Fraction
    offset: int

    def of(self, sizes: Mapping[Key, Any]) -> Any:
        size = sizes[self.base] * self.factor.numerator
        return (size // self.factor.denominator if self.factor.denominator > 1 else size) + self.offset


@dataclass(frozen=True, slots=True)
class Root:
    """`factor * sqrt(size)` or `factor / sqrt(size)`, where `size` is that of a base."""

    base: Key
    factor: float
    is_inverse: bool

    def of(self, sizes: Mapping[Key, Any]) -> Any:
        root = sizes[self.base] ** 0.5
        return self.factor / root if self.is_inverse else self.factor * root


@dataclass(frozen=True, slots=True)
class Base:
    """A size of the state that becomes a symbol."""

    key: Key
    name: str  # `state2_0`: axis 0 of the third tensor of the state
    size: int
    word: str  # the argument that it equals, or ""
    arguments: frozenset[int]  # positions of the arguments that it follows from


@dataclass(frozen=True, slots=True)
class ConstructorSizes:
    """A module's sizes and attributes that follow from integer arguments of its constructor."""

    bases: Mapping[Key, Base]
    sizes: Mapping[Key, Multiple]
    attributes: Mapping[Key, Multiple | Root]
    constructions: tuple[Construction, ...]  # with all these arguments multiplied

    @property
    def values(self) -> set[int]:
        """The sizes and attributes of the module itself."""
        own = {key: base.size for key, base in self.bases.items()}
        return {value.of(own) for value in (*self.sizes.values(), *self.attributes.values())}

    def base_sizes(self, construction: Construction) -> dict[str, int]:
        """The sizes of the bases in a construction, by name."""
        return {base.name: construction.sizes[key] for key, base in self.bases.items()}

    def set_attributes(self, module: nn.Module, sizes: Mapping[Key, Any]) -> None:
        """Replace attributes by their expressions of the bases' `sizes`. The caller restores them."""
        children = dict(module.named_modules())
        for prefix, name in dict.fromkeys(key[:2] for key in self.attributes):
            holder: Any = vars(children[prefix])
            parts = [
                self.attributes[key].of(sizes) if (key := (prefix, name, index)) in self.attributes else part
                for index, part in enumerate(_parts(holder[name]))
            ]
            holder[name] = _rebuilt(holder[name], iter(parts))


def constructor_sizes(
    model: nn.Module, arguments: Sequence[Any], fixed: Collection[int] = ()
) -> ConstructorSizes | None:
    """The sizes of a module that was constructed with `arguments`; None if no size follows from them.

    Arguments at the positions `fixed` stay as they are.
    """
    state = state_of(model)
    own = Construction.of(model, {})

    def constructed(changed: Mapping[int, int]) -> Construction | None:
        try:
            with torch.device("meta"):
                other = type(model)(*(changed.get(index, value) for index, value in enumerate(arguments)))
                found = Construction.of(other, changed)
        except Exception:  # noqa: BLE001 - any: a constructor need not accept other arguments
            return None
        is_alike = found.sizes.keys() == own.sizes.keys() and found.attributes.keys() == own.attributes.keys()
        return found if is_alike and found.sizes != own.sizes else None

    def multiplied(indices: Collection[int]) -> list[Construction]:
        made = [constructed({index: factor * arguments[index] for index in indices}) for factor in _FACTORS]
        return [one for one in made if one is not None]

    names = set(model.state_dict())
    bound = {key for key in own.sizes if key[0] in names}
    integers = [index for index, value in enumerate(arguments) if type(value) is int and value > 1]
    single = {index: multiplied([index]) for index in integers if index not in fixed}
    single = {i: made for i, made in single.items() if len(made) == len(_FACTORS) and _related([own, *made], {}, bound)}
    together = multiplied(single) if single else []
    every = [own, *(one for made in single.values() for one in made), *together]
    words = _words(
        model, {index: tuple(one.arguments.get(index, arguments[index]) for one in every) for index in single}
    )
    if len(together) < len(_FACTORS) or not (related := _related(every, words, bound)):
        return None
    places = {s.name: index for index, s in enumerate(state)}
    bases = {
        key: Base(
            key=key,
            name=f"state{places[key[0]]}_{key[1]}",
            size=own.sizes[key],
            word=words.get(values, ""),
            arguments=frozenset(index for index, made in single.items() if made[0].sizes[key] != own.sizes[key]),
        )
        for key, values in related[0].items()
    }
    return ConstructorSizes(bases, *related[1:], tuple(together))


def _words(model: nn.Module, values: Mapping[int, Values]) -> dict[Values, str]:
    """Values of an argument -> its name."""
    parameters = list(inspect.signature(type(model)).parameters.values())
    plain = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return {own: plain[index] for index, own in reversed([*values.items()]) if index < len(plain)}


def _related(
    every: Sequence[Construction], preferred: Container[Values], allowed: Container[Key]
) -> tuple[dict[Key, Values], dict[Key, Multiple], dict[Key, Multiple | Root]] | None:
    """Bases, sizes and attributes that differ between constructions; None if one of them follows from no base.

    Bases are `allowed` sizes, those with `preferred` values first.
    """
    sizes = _differing([one.sizes for one in every])
    attributes = _differing([one.attributes for one in every])
    bases: dict[Key, Values] = {}
    for key, values in sorted(sizes.items(), key=lambda item: (item[1] not in preferred, item[1])):
        if key in allowed and min(values) > 1 and _multiple(values, bases, whole=True) is None:
            bases[key] = values
    found = {key: multiple for key, values in sizes.items() if (multiple := _multiple(values, bases, whole=True))}
    known = {
        key: follows
        for key, values in attributes.items()
        if (follows := _multiple(values, bases) or _root(values, bases))
    }
    is_complete = len(found) == len(sizes) and len(known) == len(attributes)
    return (bases, found, known) if is_complete else None


def _differing(maps: Sequence[Mapping[Key, Any]]) -> dict[Key, Values]:
    values = {key: tuple(one[key] for one in maps) for key in maps[0]}
    return {key: one for key, one in values.items() if len(set(one)) > 1}


def _multiple(values: Values, bases: Mapping[Key, Values], whole: bool = False) -> Multiple | None:
    """The simplest multiple of a base that has these values; with `whole`, no fraction of one."""
    if not all(type(value) is int for value in values):
        return None
    found = []
    for base, own in bases.items():
        other = next(index for index, size in enumerate(own) if size != own[0])
        factor = Fraction(values[other] - values[0], own[other] - own[0])
        offset = values[0] - factor * own[0]
        is_exact = all(value == factor * size + offset for value, size in zip(values, own, strict=True))
        if factor > 0 and is_exact and (factor.denominator == 1 or (offset == 0 and not whole)):
            found.append(Multiple(base, factor, int(offset)))
    return min(found, key=lambda one: (one.factor.denominator, one.offset != 0, one.factor), default=None)


def _root(values: Values, bases: Mapping[Key, Values]) -> Root | None:
    """The root of a base, or its inverse, that has these values, such as `dim ** -0.5`."""
    if not all(type(value) is float and value > 0 for value in values):
        return None
    for base, own in bases.items():
        for is_inverse in (True, False):
            factors = [value * size ** (0.5 if is_inverse else -0.5) for value, size in zip(values, own, strict=True)]
            if max(factors) - min(factors) <= _ROUNDING * max(factors):
                nearest = float(f"{factors[0]:.12g}")  # 2.0 for a root that was rounded
                return Root(base, nearest, is_inverse)
    return None


def _parts(value: Any) -> Iterator[Any]:
    """The numbers and texts in nested tuples and lists; for other values, their type."""
    if type(value) in (tuple, list, torch.Size):
        for item in value:
            yield from _parts(item)
    else:
        yield value if type(value) in _NUMBERS else type(value).__name__


def _rebuilt(value: Any, parts: Iterator[Any]) -> Any:
    """`value` with other `parts`."""
    if type(value) in (tuple, list, torch.Size):
        items = [_rebuilt(item, parts) for item in value]
        return items if type(value) is list else tuple(items)
    part = next(parts)
    return part if type(value) in _NUMBERS else value
