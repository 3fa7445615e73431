"""Values that a constructor parameter probably accepts, as Python source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from torch import nn

from .kinds import SIZES, Kind, kind_of, snake
from .parameter_usage import Usage

_ITEMS = 2  # length of lists of unknown length; the same for all lists, so that they agree
_LAST_RESORTS = (
    *("32", "16", "4", "2", "1", "None", "[16, 32]", "(4, 4)", "nn.ReLU()", "nn.ReLU", "'relu'"),
    *("[[16, 16], [32, 32]]", "True", "0.5", "nn.Linear(32, 32)", "nn.Identity()", "'max'", "[2, 2]"),
    *("[nn.Linear(32, 32), nn.ReLU()]", "nn.Linear", "torch.ones(32)", "{}"),
)
_OTHER_VALUES = ("<dim>", "[16, 32]", "'relu'", "None", "2")  # of an attribute or key of a configuration
# Layers by class name, for annotations, and for parameters whose attributes only such a layer has.
_CONVOLUTION, _NORM = "nn.Conv{0}d(<dim>, <dim>, 3, padding=1)", "nn.BatchNorm{0}d(<dim>)"
_LAYERS = {
    **{f"Conv{rank}d": _CONVOLUTION.format(rank) for rank in (2, 1, 3)},
    **{f"BatchNorm{rank}d": _NORM.format(rank) for rank in (2, 1, 3)},
    "Linear": "nn.Linear(<dim>, <dim>)",
    "LayerNorm": "nn.LayerNorm(<dim>)",
    "GroupNorm": "nn.GroupNorm(4, <dim>)",
    "Embedding": "nn.Embedding(50, <dim>)",
    "MultiheadAttention": "nn.MultiheadAttention(<dim>, 4, batch_first=True)",
    "GRU": "nn.GRU(<dim>, <dim>, batch_first=True)",
    "LSTM": "nn.LSTM(<dim>, <dim>, batch_first=True)",
    "ModuleList": "nn.ModuleList([nn.Linear(<dim>, <dim>), nn.Linear(<dim>, <dim>)])",
    "Sequential": "nn.Sequential(nn.Linear(<dim>, <dim>), nn.ReLU())",
}
_GUESSED_LAYER = re.compile(r"nn\.(?:GELU\(\)|Linear\(32, 32\))")
_STRING_METHODS = frozenset({"lower", "upper", "startswith", "split", "endswith", "strip", "format"})
_TENSOR_ATTRIBUTES = frozenset({"shape", "ndim", "unsqueeze", "view", "numel"})
_DICT_METHODS = frozenset({"get", "items", "keys", "values", "pop", "copy", "update"})
_MODULE_ATTRIBUTES = frozenset(
    {"weight", "parameters", "eval", "train", "named_parameters", "modules", "children", "state_dict"}
)


@dataclass(frozen=True, slots=True)
class Style:
    """One way to fill in sizes. Different sizes reveal a wrong axis; residual modules need equal ones."""

    inner: int = 16
    outer: int = 48
    dim: int = 32
    hidden: int = 64
    shrink: bool = True  # replace large defaults by small values
    depth: int = 2
    large: int = 64  # defaults above this are replaced
    fill: bool = False  # replace defaults of None
    instances: bool = False  # replace classes of layers that are defaults by instances
    part: str = ""  # replaces guessed layers
    items: str = ""  # the items of every list

    def expand(self, text: str) -> str:
        if self.part:
            text = _GUESSED_LAYER.sub(self.part, text)
        for name in ("inner", "outer", "dim", "hidden", "depth"):
            text = text.replace(f"<{name}>", str(getattr(self, name)))
        return text


STYLES = (
    Style(),
    Style(32, 32, 32, 32),
    Style(shrink=False),
    Style(64, 16),  # a bottleneck block widens its output four times
    Style(32, 32, 32, 32, shrink=False),
    Style(8, 16, 16, 32),
    Style(dim=1),  # `dim` may be an axis
)
# For modules whose forward needs an optional argument of the constructor.
FILLED_STYLES = (Style(fill=True), Style(32, 32, 32, 32, fill=True))
# For modules that call a class, which is a default of the constructor, as if it were a layer.
INSTANCE_STYLES = (Style(instances=True), Style(32, 32, 32, 32, instances=True))
# For modules that call a given layer like an attention or a decoder: with several inputs, with keywords, or for several
# outputs.
_PART = "type('Part', (nn.Module,), {'forward': lambda self, *args, **named: %s})()"
_CHANGED = "nn.functional.gelu([*args, *named.values()][0])"
PART_STYLES = (Style(part=_PART % _CHANGED), Style(32, 32, 32, 32, part=_PART % _CHANGED))
_PAIR = _PART % f"({_CHANGED}, None)"
PAIR_STYLES = (Style(part=_PAIR), Style(32, 32, 32, 32, part=_PAIR))
# For modules that call the items of a list as layers.
LAYERS_STYLES = (Style(items="nn.Linear(<dim>, <dim>)"), Style(items="nn.GELU()"))
# For modules that are too big in other styles: one layer of each kind, and narrow layers.
SMALL_STYLES = (
    Style(depth=1, large=16),
    Style(16, 16, 16, 16, depth=1, large=16),
    Style(32, 32, 32, 32, depth=1, large=32),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One constructor parameter."""

    name: str
    required: bool = True
    annotation: str = ""  # or its type in a docstring
    usage: Usage = field(default_factory=Usage)
    default: str = ""  # source text, "" if it has none
    value: Any = None  # the default itself
    examples: tuple[str, ...] = ()  # defaults of other parameters of this name in the file

    @property
    def kind(self) -> Kind:
        return kind_of(self.name)


def candidates(parameter: Parameter, style: Style, classes: tuple[str, ...] = ()) -> list[str]:
    """Expressions to try, best first. `classes`: names of the other module classes of the source."""
    usage, values = parameter.usage, parameter.kind.values
    ordered = [repr(text) for text in usage.strings]
    if parameter.default and parameter.default != "None":
        ordered.append(parameter.default)
    if usage.keys:
        ordered.append(_mapping({key: _part_value(key, usage) for key in usage.keys}))
    if _wants_config(usage):
        ordered.append(_config_of(usage))
        ordered.append(config({name: attribute_value(name) for name in sorted(usage.attributes)}))
    ordered += layers_with(usage.attributes)
    if usage.called or parameter.annotation.startswith(("Callable", "function")) or values[0].startswith(("nn.", "'")):
        ordered += [text for text in parameter.examples if text != "None" and not text.isdigit()]
    ordered += _by_annotation(parameter, style)
    if usage.sequence or usage.nested or ((usage.items or usage.indexed) and not usage.number):
        ordered += lists(parameter, style)
    elif usage.called:
        instances = [text for text in values if text.startswith("nn.") and text.endswith(")")]
        ordered += [text for text in values if text.startswith("nn.") and text not in instances]
        ordered += [*classes, *instances, "nn.GELU()", "nn.ReLU", "nn.Linear"]
    elif usage.applied:
        ordered += [text for text in values if text.startswith("nn.") and text.endswith(")")] or ["nn.GELU()"]
    ordered += values[:2]
    ordered += [text for bound in usage.bounds for text in (str(bound // 16 * 16 + 32), str(bound))]
    ordered += values[2:]
    if not usage.number:
        ordered += lists(parameter, style)
    ordered += _LAST_RESORTS
    return list(dict.fromkeys(style.expand(text) for text in ordered))


def layers_with(attributes: Set[str]) -> list[str]:
    """Layers that have all these attributes; none if every module has them."""
    if attributes <= _attributes("nn.Identity()") | {"weight", "bias"}:
        return []
    return [text for text in _LAYERS.values() if attributes <= _attributes(text)]


@cache
def _attributes(text: str) -> frozenset[str]:
    return frozenset(dir(eval(Style().expand(text), {"nn": nn})))


def attribute_value(name: str) -> str:
    """A value for an attribute of a configuration. Configurations mostly hold activations by name."""
    kind = kind_of(name)
    return "'relu'" if kind.name == "activation" else kind.values[0]


def _config_of(usage: Usage) -> str:
    return config({name: _part_value(name, usage) for name in sorted(usage.attributes)})


def _part_value(name: str, usage: Usage) -> str:
    """A value for one entry of a configuration, by its use."""
    part = usage.parts.get(name, Usage())
    if part.keys:
        return _mapping({key: _part_value(key, part) for key in part.keys})
    if _wants_config(part):
        return _config_of(part)
    if part.strings:
        return repr(part.strings[0])
    if part.called or part.applied:
        layers = [text for text in kind_of(name).values if text.startswith("nn.") and text.endswith(")")]
        return (layers or ["nn.Linear(<dim>, <dim>)"])[0]
    if (part.sequence or part.nested or part.items) and not part.number:
        return lists(Parameter(name, usage=part), Style())[0]
    return attribute_value(name)


def _wants_config(usage: Usage) -> bool:
    if usage.number or usage.called or usage.applied:
        return False
    return bool(usage.attributes) and not usage.attributes & (
        _STRING_METHODS | _MODULE_ATTRIBUTES | _TENSOR_ATTRIBUTES | _DICT_METHODS
    )


def config(attributes: dict[str, str]) -> str:
    """An object with these attributes, as an expression that needs no import."""
    return f"type('Config', (), {_mapping(attributes)})()"


def _mapping(items: dict[str, str]) -> str:
    return f"{{{', '.join(f'{key!r}: {text}' for key, text in items.items())}}}"


def with_key(text: str, name: str) -> str | None:
    """The dict with one more item; None for another expression."""
    if not text.startswith("{") or f"{name!r}:" in text:
        return None
    return f"{text[:-1]}{', ' if len(text) > 2 else ''}{name!r}: {attribute_value(name)}}}"


def named_alternatives(text: str, message: str) -> Iterator[str]:
    """`text` with other strings for one that the message rejects: "no mode 'a', should be in ['b', 'c']"."""
    offered = re.findall(r"['\"]([A-Za-z][\w-]*)['\"]", message)
    for options in re.findall(r"\b(?:in|of|are|from):? [\[({]([\w, -]+)[\])}]", message):
        offered += options.replace(",", " ").split()
    for rejected in re.findall(r"'([A-Za-z][\w-]*)'(?!:)", text):
        if re.search(rf"\b{rejected}\b", message):
            yield from (
                text.replace(f"'{rejected}'", f"'{other}'") for other in dict.fromkeys(offered) if other != rejected
            )


def with_attribute(text: str, name: str) -> str | None:
    """The expression of `config` with one more attribute; None for another expression."""
    if not text.startswith("type('Config', (), {"):
        return None
    joint = "" if text.endswith("{})()") else ", "
    return f"{text.removesuffix('})()')}{joint}{name!r}: {attribute_value(name)}}})()"


def with_other_values(text: str, names: Set[str], style: Style) -> Iterator[str]:
    """A configuration or dict with another value for one of these attributes or keys, also in a nested one."""
    tree = ast.parse(text, mode="eval")
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]:
        for place, key in enumerate(node.keys):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in names:
                value = node.values[place]
                for other in dict.fromkeys((*kind_of(key.value).values, *_OTHER_VALUES)):
                    node.values[place] = ast.parse(style.expand(other), mode="eval").body
                    yield ast.unparse(tree)
                node.values[place] = value


def lists(parameter: Parameter, style: Style) -> list[str]:
    """A flat list and a list of lists whose items fit the parameter's kind; the one that fits its use comes first."""
    usage, kind = parameter.usage, parameter.kind
    count = usage.items if usage.items > 1 else _ITEMS
    if kind.name in SIZES and style.inner != style.outer:
        items = [str(style.inner * (i + 1)) for i in range(count)]
        inside = [f"[{32 * i + 32}, {32 * i + 48}]" for i in range(count)]
    else:
        items = [str(style.inner) if kind.name in SIZES else kind.values[0]] * count
        inside = [f"[{item}, {item}]" for item in items]
    if style.items:
        items, inside = [style.items] * count, [f"[{style.items}, {style.items}]"] * count
    texts = [f"[{', '.join(items)}]", f"[{', '.join(inside)}]"]
    return texts[::-1] if usage.nested else texts


def _by_annotation(parameter: Parameter, style: Style) -> list[str]:
    """Candidates that fit the annotation. They come first, but are not the only ones: annotations may be wrong."""
    values = parameter.kind.values
    text = re.sub(r"\b(Optional|typing|Union|torch)\b|[\s.]", "", parameter.annotation.strip("'\""))
    head = text.lstrip("[").split("|")[0]
    if literal := re.match(r"\[?Literal\[(.*?)\]", text):
        return [item for item in literal[1].split(",") if item]
    if re.match(r"bool\b", head):
        return ["False", "True"]
    if re.match(r"int\b", head):
        return [item for item in values if item.isdigit() or item.startswith("<")] or ["32", "4", "2"]
    if re.match(r"float\b", head):
        return [item for item in values if re.fullmatch(r"[\d.e-]+", item)] or ["0.5", "1.0"]
    if re.match(r"(list|List|Sequence|Iterable|tuple|Tuple)\[", head):
        return _sequence_values(parameter, head, style)
    if (layer := _LAYERS.get(head.removeprefix("nn"))) is not None:
        return [layer]
    if re.match(r"nnModule\b", head):
        instances = [item for item in values if item.startswith("nn.") and item.endswith(")")]
        return instances or ["nn.GELU()", "nn.Linear(<dim>, <dim>)"]
    if head.startswith(("Callable", "Type[", "type[", "function")):
        instance = head.startswith(("Callable", "function")) and not parameter.usage.called
        wanted = [item for item in values if item.startswith("nn.") and item.endswith(")") == instance]
        return wanted or (["nn.GELU()"] if instance else ["nn.ReLU", "nn.GELU()"])
    return []


def _sequence_values(parameter: Parameter, annotation: str, style: Style) -> list[str]:
    inner = annotation.split("[", 1)[1]
    if re.match(r"(list|List|Sequence|tuple|Tuple)\[", inner):
        return lists(replace(parameter, usage=Usage(nested=True, items=parameter.usage.items)), style)[:1]
    if inner.startswith("str"):
        return ["['a', 'b']"]
    if inner.startswith("nnModule"):
        return ["[nn.Linear(32, 32), nn.GELU()]"]
    fixed = re.match(r"(?:tuple|Tuple)\[((?:int|float|,)+)\]", annotation)
    count = fixed[1].count(",") + 1 if fixed else 0
    return lists(replace(parameter, usage=Usage(items=max(count, parameter.usage.items))), style)[:1]


def smaller(parameter: Parameter, style: Style) -> str | None:
    """A replacement for a default that makes the module large or lets it change its input in place; else None."""
    value, kind = parameter.value, parameter.kind
    if snake(parameter.name) == "inplace" and value is True:
        return "False"
    if isinstance(value, bool) or parameter.required:
        return None
    if isinstance(value, int):
        return _smaller_number(kind, value, style)
    if isinstance(value, list | tuple) and value and all(type(item) is int for item in value):
        return _smaller_sequence(snake(parameter.name), kind, value, style)
    return None


def _smaller_number(kind: Kind, value: int, style: Style) -> str | None:
    first = style.expand(kind.values[0])
    if kind.name in ("depth", "heads"):
        return first if value > int(first) else None
    if kind.name in ("head_dim", "patch", "classes", "vocabulary"):
        return first if value > 2 * int(first) else None
    return first if value > style.large and first.isdigit() else None


def _smaller_sequence(name: str, kind: Kind, value: list[int] | tuple[int, ...], style: Style) -> str | None:
    """Fewer multipliers, single layers, or narrow channels that keep their order."""
    if "mult" in name and len(value) > 2:
        shorter = list(value[:2])
    elif kind.name == "depth" and max(value) > style.depth:
        shorter = [1] * len(value)
    elif kind.name in SIZES and max(value) > style.large:
        ranks = sorted(set(value))
        shorter = [16 * (ranks.index(item) + 1) for item in value]
    else:
        return None
    return repr(tuple(shorter) if isinstance(value, tuple) else shorter)
