"""What a constructor parameter of a given name, annotation and use is likely to accept, as Python source.

Sizes are small, so that kernels are quick to interpret, and multiples of 16, so that heads and groups
divide them. Different roles get different sizes, so that a wrong axis shows.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from .source import Usage

LIST_ITEMS = 2  # length of lists whose length nothing tells, the same for all so that they agree


@dataclass(frozen=True, slots=True)
class Style:
    """One way to fill in sizes. Residual modules need `inner == outer`; the others show more with different ones."""

    inner: int = 16
    outer: int = 32
    dim: int = 32
    hidden: int = 64
    shrink: bool = True  # replace large defaults by small values

    def expand(self, text: str) -> str:
        for name in ("inner", "outer", "dim", "hidden"):
            text = text.replace(f"<{name}>", str(getattr(self, name)))
        return text


STYLES = (
    Style(),
    Style(32, 32, 32, 32),
    Style(shrink=False),
    Style(32, 32, 32, 32, shrink=False),
    Style(8, 16, 16, 32),
    Style(dim=1),  # `dim` may be an axis
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One constructor parameter."""

    name: str
    required: bool
    annotation: str
    usage: Usage
    default: str = ""  # source text, "" if it has none
    value: Any = None  # the default itself
    examples: tuple[str, ...] = ()  # defaults of other parameters of this name in the file


_FLAGS = (
    r"^(use|is|with|has|do|no|need|return|apply|enable|learn|learnable|add|only|keep|share|add)_"
    r"|(^|_)(bias|affine|inplace|bidirectional|causal|verbose|debug|pretrained|ceil_mode|batch_first|bn|flag|residual"
    r"|shortcut|align_corners|trainable|learnable|bottleneck|downsample|identity|flatten|training|enabled|final|last)$"
)
# Name pattern -> candidates, best first. The first pattern that is found in the snake-case name decides.
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_FLAGS, ("False", "True")),
    (r"^(fmap|feature|feat)_(size|res|resolution)$", ("8", "(8, 8)", "16")),
    (r"(image|img|frame|pretrain\w*|grid)_?(size|res|resolution|shape|height|width|h|w)$|^(input_)?(resolution|shape)$|^in_size$",
     ("32", "(32, 32)", "64", "(12, 20)")),
    (r"patch", ("4", "8", "2", "(4, 4)")),
    (r"(^|_)(n|num|nb)?_?(heads?|h)$|^n_?head", ("4", "2", "1", "8")),
    (r"dim_?head|head_?(dim|size|width|channels)|(^|_)(d_[kv]|dim_key|dim_value|key_dim|value_dim|dim_qk|dim_v)$", ("8", "16", "32")),
    (r"(^|_)(groups?|n_?groups|cardinality|num_groups)$", ("4", "1", "2", "8")),
    (r"dilation", ("1", "2", "(1, 1)")),
    (r"strides?$", ("1", "2", "(1, 1)")),
    (r"padding|(^|_)pad$", ("1", "0", "(1, 1)", "2")),
    (r"window", ("4", "(4, 4)", "8", "7", "3")),
    (r"(kernel|ksize|filter_size|^k$|(^|_)ks$|conv_size)", ("3", "5", "1", "(3, 3)", "2")),
    (r"dropout|(^|_)drop|_drop$|prob$|^p$|(^|_)p_", ("0.1", "0.0")),
    (r"eps(ilon)?$", ("1e-5",)),
    (r"(n|num|nb|total)?_?(class|labels?$|categor|ways$)|nclass", ("10", "8")),
    (r"vocab|(num|n|nb)_?(tokens?|embeddings|codes|bins|words|items|users|entities)|codebook_size|ntoken", ("50", "32")),
    (r"(max|seq|sequence|sentence|context|pos|position|token|time)\w*_(len|length|size|positions?|steps|seq_len)$|(^|_)(max_?len|seq_?len"
     r"|length|lookback|horizon|window_size|block_size|num_patches|num_points|num_nodes|num_queries|context_window|pred_len)$", ("24", "16", "12", "8")),
    (r"(depth|(n|num|nb|no|number_of)_?\w*(layers?|blocks?|stages?|repeats?|iters?|iterations|steps|convs?|units|scales|levels?|mlps?|downs|"
     r"modules|cells|experts|stacks|resblocks|hops|splits|bases|kernels|branches|flows)|repeats?|iterations|layers?|levels?|stages?|n_?res\w*|order|degree)$",
     ("2", "1", "3", "4")),
    (r"reduction|squeeze|shrink|bottleneck_factor|r$", ("4", "2", "8")),
    (r"momentum", ("0.1",)),
    (r"(upscale|scale_factor|up_?sampl\w*|down_?sampl\w*|(^|_)factor|mult$|multiplier|expan\w*|ratio|times|scale$|growth|upfactor)", ("2", "1", "4", "0.5")),
    (r"(^|_)(alpha|beta|gamma|lamb\w*|temperature|temp|tau|slope|coef\w*|margin|threshold|thresh|sigma|theta|mean|std|"
     r"init_values?|weight|rate|lr|decay|power|base|min\w*|max\w*|value|delta|rho|mu)\d?$", ("0.5", "1.0", "2.0", "1", "10000")),
    (r"(^|_)act(ivation|_layer|_fn|_func|_type|_cfg)?\d?$|nonlin|relu|activation", ("nn.ReLU()", "nn.ReLU", "'relu'")),
    (r"norm", ("nn.BatchNorm2d", "nn.LayerNorm", "nn.BatchNorm1d", "'batch'", "nn.GELU()", "None")),
    (r"(^|_)(fn|func|f|g|function|callable|module|submodule|net|network|block|encoder|decoder|backbone|model|transformer|"
     r"layer|mixer|attn|attention|op|sub_?layer|mlp|ff|embed|embedding|embedder|head|stem|body|branch\d?|body)$",
     ("nn.GELU()", "nn.Linear(<dim>, <dim>)", "nn.Identity()", "nn.Linear", "nn.Conv2d(<dim>, <dim>, 3, padding=1)")),
    (r"(^|_)(conv_layer|conv)$", ("nn.Conv2d", "nn.Conv1d", "nn.Conv2d(<dim>, <dim>, 3, padding=1)")),
    (r"(^|_)(mode|type|method|kind|reduction|padding_mode|name|variant)$", ("'mean'", "'bilinear'", "'nearest'", "'max'", "'relu'")),
    (r"^(config|cfg|conf|args|opts?|hparams|params|configs)$", ()),
    (r"hidden|mid|inter|inner|mlp|ffn?($|_)|d_ff|_ff$|latent|bottleneck|feed_?forward|expand|branch|(^|_)hid", ("<hidden>", "32", "16", "48")),
    (r"(^|_)(in|inp|input|ins|src|source|inplanes|inchannels|nin|cin|idim|inc|inch|infeatures|inf|x)(_|$)|^in|_in$|^(c1|ch1|dim1|channels1|n_feats_in)$",
     ("<inner>", "32", "16", "64", "3")),
    (r"(^|_)(out|oup|output|outs|outplanes|outchannels|nout|cout|odim|outc|outch|target|tgt|skip|planes|outf|y)(_|$)|^out|_out$|^(c2|ch2|dim2|channels2)$",
     ("<outer>", "32", "16", "64")),
    (r"(^|_)(growth_rate|base_width|basewidth|bn_size)$", ("8", "16")),
)  # fmt: skip
_SIZES = ("<dim>", "16", "64", "48")
_LAST_RESORTS = (
    "32", "16", "4", "2", "1", "None", "[16, 32]", "(4, 4)", "nn.ReLU()", "nn.ReLU", "'relu'", "[[16, 16], [32, 32]]",
    "True", "0.5", "nn.Linear(32, 32)", "nn.Identity()", "'max'", "[2, 2]", "[nn.Linear(32, 32), nn.ReLU()]", "nn.Linear", "torch.ones(32)", "{}",
)  # fmt: skip
_ATTRIBUTES_OF_STRINGS = frozenset({"lower", "upper", "startswith", "split", "endswith", "strip", "format"})
_MODULE_LIKE = frozenset({"weight", "parameters", "eval", "train", "named_parameters", "modules", "children", "state_dict"})
_LARGE = 64


def snake(name: str) -> str:
    """`inChannels` -> `in_channels`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def candidates(parameter: Parameter, style: Style, classes: tuple[str, ...] = ()) -> list[str]:
    """Expressions to try, best first. `classes`: names of the module classes that the source defines."""
    usage, found = parameter.usage, by_name(parameter.name)
    ordered: list[str] = [repr(text) for text in usage.strings]
    if parameter.default and parameter.default != "None":
        ordered.append(parameter.default)
    if wants_config(parameter):
        ordered.append(config({name: style.expand(by_name(name)[0]) for name in sorted(usage.attributes)}))
        ordered += [f"{{{', '.join(f'{k!r}: {by_name(k)[0]}' for k in sorted(usage.keys))}}}"] if usage.keys else []
    if usage.called or parameter.annotation.startswith(("Callable", "function")) or found[0].startswith(("nn.", "'")):
        ordered += [text for text in parameter.examples if text != "None" and not text.isdigit()]
    ordered += _by_annotation(parameter, found)
    if usage.sequence or usage.nested or ((usage.items or usage.indexed) and not usage.number):
        ordered += lists(parameter, found)
    elif usage.called:
        ordered += [text for text in found if text.startswith("nn.") and not text.endswith(")")]
        ordered += [text for text in found if text.endswith(")")]
        ordered += ["nn.GELU()", *classes, "nn.ReLU", "nn.Linear"]
    ordered += found[:2]
    ordered += [text for bound in usage.bounds for text in (str(bound // 16 * 16 + 32), str(bound))]
    ordered += found[2:]
    if not usage.number:
        ordered += lists(parameter, found)
    ordered += _LAST_RESORTS
    return list(dict.fromkeys(style.expand(text) for text in ordered))


def by_name(name: str) -> tuple[str, ...]:
    lowered = snake(name)
    return next((texts for pattern, texts in _RULES if texts and re.search(pattern, lowered)), _SIZES)


def wants_config(parameter: Parameter) -> bool:
    usage = parameter.usage
    if usage.number or usage.called or usage.attributes & (_ATTRIBUTES_OF_STRINGS | _MODULE_LIKE):
        return False
    return bool(usage.attributes or usage.keys)


def config(attributes: dict[str, str]) -> str:
    """An object with these attributes, as an expression that needs no import."""
    fields = ", ".join(f"{name!r}: {text}" for name, text in attributes.items())
    return f"type('Config', (), {{{fields}}})()"


def lists(parameter: Parameter, found: tuple[str, ...]) -> list[str]:
    """Lists whose items fit the name in the singular."""
    usage = parameter.usage
    count = usage.items if usage.items > 1 else LIST_ITEMS
    if found in (_SIZES, by_name("in_size_of"), by_name("out"), by_name("hidden")):
        items = [str(16 * (i + 1)) for i in range(count)]
    else:
        items = [found[0]] * count
    flat = f"[{', '.join(items)}]"
    if items[0] == items[-1]:
        nested = f"[{', '.join(f'[{item}, {item}]' for item in items)}]"
    else:
        nested = f"[{', '.join(f'[{32 * i + 32}, {32 * i + 48}]' for i in range(count))}]"
    return [nested, flat] if usage.nested else [flat, nested]


def _by_annotation(parameter: Parameter, found: tuple[str, ...]) -> list[str]:
    """Candidates that the annotation asks for. Annotations may be wrong, so they only come first."""
    text = re.sub(r"\b(Optional|typing|Union|torch)\b|[\s.]", "", parameter.annotation.strip("'\""))
    head = text.lstrip("[").split("|")[0]
    if literal := re.match(r"\[?Literal\[(.*?)\]", text):
        return [item for item in literal[1].split(",") if item]
    if re.match(r"\[?bool\b", head):
        return ["False", "True"]
    if re.match(r"\[?int\b", head):
        return [item for item in found if item.isdigit() or item.startswith("<")] or ["32", "4", "2"]
    if re.match(r"\[?float\b", head):
        return [item for item in found if re.fullmatch(r"[\d.e-]+", item)] or ["0.5", "1.0"]
    if re.match(r"(list|List|Sequence|Iterable|tuple|Tuple)\[", head):
        inner = head.split("[", 1)[1]
        if re.match(r"(list|List|Sequence|tuple|Tuple)\[", inner):
            return lists(parameter, found)[:0] + [lists(Parameter(parameter.name, True, "", Usage(nested=True)), found)[0]]
        if inner.startswith("str"):
            return [repr(["a", "b"])]
        if inner.startswith("nnModule"):
            return ["[nn.Linear(32, 32), nn.GELU()]"]
        fixed = re.match(r"(?:tuple|Tuple)\[((?:int|float|,)+)\]", head)
        count = fixed[1].count(",") + 1 if fixed else 0
        usage = Usage(items=max(count, parameter.usage.items))
        return lists(Parameter(parameter.name, True, "", usage), found)[:1]
    if head.startswith("nnModule"):
        return [item for item in found if item.endswith(")") and item.startswith("nn.")] or ["nn.GELU()", "nn.Linear(<dim>, <dim>)"]
    if head.startswith(("Callable", "Type[", "type[", "function")):
        return [item for item in found if item.startswith("nn.") and not item.endswith(")")] or ["nn.ReLU", "nn.GELU()"]
    return []


def smaller(parameter: Parameter, style: Style) -> str | None:
    """A replacement for a default that would make the module large or change its input, or None."""
    name, value = snake(parameter.name), parameter.value
    if name == "inplace" and value is True:
        return "False"
    if isinstance(value, bool) or parameter.required:
        return None
    if isinstance(value, int):
        return _smaller_number(parameter, value, style)
    if isinstance(value, list | tuple) and value and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        found = by_name(parameter.name)
        if "mult" in name and len(value) > 2:
            return _sequence(value, list(value[:2]))
        if found == by_name("depth") and max(value) > 2:
            return _sequence(value, [1] * len(value))
        if found in (_SIZES, by_name("in_size_of"), by_name("out"), by_name("hidden")) and max(value) > _LARGE:
            # 16, 32, 48, ...: keeps "larger than the one before"
            sizes = sorted(set(value))
            return _sequence(value, [16 * (sizes.index(v) + 1) for v in value])
    return None


def _smaller_number(parameter: Parameter, value: int, style: Style) -> str | None:
    found = by_name(parameter.name)
    if found == by_name("depth"):
        return "2" if value > 2 else None
    if found == by_name("num_heads"):
        return "4" if value > 4 else None
    if found in (by_name("dim_head"), by_name("patch"), by_name("num_classes"), by_name("vocab")):
        return found[0] if value > 2 * int(found[0]) else None
    if value > _LARGE and found[0].strip("<>").isalnum() and not found[0].startswith("nn."):
        return style.expand(found[0])
    return None


def _sequence(like: list[int] | tuple[int, ...], values: list[int]) -> str:
    return repr(tuple(values) if isinstance(like, tuple) else values)


def is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
