"""Kinds of constructor parameters, recognised by name, and values that parameters of a kind accept.

Sizes are small, so that kernels are fast to interpret, and multiples of 16, so that heads and groups divide them.
`<inner>`, `<outer>`, `<dim>`, `<hidden>` and `<depth>` stand for the sizes of a `Style`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of parameter."""

    name: str
    pattern: re.Pattern[str]  # searched for in the snake-case name
    values: tuple[str, ...]  # Python source, best first


def _kind(name: str, values: tuple[str, ...], *patterns: str) -> Kind:
    return Kind(name, re.compile("|".join(patterns)), values)


_SIZE = _kind("size", ("<dim>", "16", "64", "48"), "")  # the kind of every other name
# The first kind whose pattern matches decides.
_KINDS = (
    _kind(
        "flag",
        ("False", "True"),
        r"^(use|is|with|has|do|no|need|return|apply|enable|learn|learnable|add|only|keep|share)_",
        r"(^|_)(bias|affine|inplace|bidirectional|causal|verbose|debug|pretrained|ceil_mode|batch_first|bn|flag|residual)$",
        r"(^|_)(shortcut|align_corners|trainable|learnable|bottleneck|downsample|identity|flatten|training|enabled)$",
        r"(^|_)(final|last|keep_?dims?)$",
    ),
    _kind("device", ("'cpu'",), r"(^|_)device$"),
    _kind("map", ("8", "(8, 8)", "16"), r"^(fmap|feature|feat)_(size|res|resolution)$"),
    _kind(
        "image",
        ("32", "(32, 32)", "64", "(12, 20)"),
        r"(image|img|frame|pretrain\w*|grid)_?(size|res|resolution|shape|height|width|h|w)$",
        r"^(input_)?(resolution|shape)$|^in_size$",
    ),
    _kind("frames", ("8", "4"), r"frames?$|(^|_)num_f$|temporal_(size|dim|length)"),
    _kind("patch", ("4", "8", "2", "(4, 4)"), r"patch(?!es)"),
    _kind(
        "head_dim",
        ("8", "16", "32"),
        r"dim_?head|head_?(dim|size|width|channels)",
        r"(^|_)(d_[kv]|dim_key|dim_value|key_dim|value_dim|dim_qk|dim_v)$",
    ),
    _kind("heads", ("4", "2", "1", "8"), r"(^|_)(n|num|nb)?_?(heads?|h)$|^n_?head"),
    _kind("chosen", ("1", "2"), r"(^|_)(top_?k|k_?top)$|(experts?|tokens?)_(per|used|selected|active)"),
    _kind("groups", ("4", "1", "2", "8"), r"(^|_)(groups?|n_?groups|cardinality|num_groups)$"),
    _kind("dilation", ("1", "2", "(1, 1)"), r"dilation"),
    _kind("stride", ("1", "2", "(1, 1)"), r"strides?$"),
    _kind("padding", ("1", "0", "(1, 1)", "2"), r"padding(?!_mode)|(^|_)pad$"),
    _kind("window", ("4", "(4, 4)", "8", "7", "3"), r"window"),
    _kind("kernel", ("3", "5", "1", "(3, 3)", "2"), r"kernel|ksize|filter_size|^k$|^k_(?!dim)|(^|_)ks$|conv_size"),
    _kind("dropout", ("0.1", "0.0"), r"dropout|(^|_)p?drop|_drop$|prob$|^p$|(^|_)p_"),
    _kind("epsilon", ("1e-5",), r"(^|_)eps(ilon)?$"),
    _kind("classes", ("10", "8"), r"(n|num|nb|total)?_?(class|labels?$|categor|ways$)|nclass"),
    _kind(
        "vocabulary",
        ("50", "32"),
        r"vocab|codebook_size|ntoken",
        r"(num|n|nb)_?(tokens?|embeddings|codes|bins|words|items|users|entities)",
    ),
    _kind(
        "length",
        ("24", "16", "12", "8"),
        r"(max|seq|sequence|sentence|context|pos(?!t)|position|token|time)\w*_(len|length|size|positions?|steps|seq_len)$",
        r"(^|_)(max_?len|seq_?len|length|lookback|horizon|block_size|context_window|pred_len)$",
        r"(^|_)num_(patches|points|nodes|queries)$",
    ),
    _kind(
        "depth",
        ("<depth>", "1", "3", "4"),
        r"depth|(reps?|repeats?|iterations|layers|levels?|stages?|n_?res\w*|order|degree|convolutions?)$|(^|_)(steps|iters)$",
        r"(^|_)(n|num|nb|no|number_of)(_\w+)?_?(layers?|blocks?|stages?|repeats?|iters?|iterations|steps|convs?|units)$",
        r"(^|_)(n|num|nb|no|number_of)(_\w+)?_?(levels?|mlps?|downs|modules|cells|experts|stacks|resblocks|hops)$",
        r"(^|_)(n|num|nb|no|number_of)(_\w+)?_?(scales|splits|bases|kernels|branches|flows)$",
        r"(^|_)(layer|block|stage|stack|cell)s?_(n|num|nb|cnt|count)$",
    ),
    _kind(
        "count",
        ("4", "2", "8", "16", "32"),
        r"^(n|num|nb|number_of)_(?!\w*(feat|chan|chns|hid|dim|emb|unit|filt|in$|inp|out|stat|mel|freq|freqs|bin|fft|plane|neur"
        r"|ch$|chs|pix|node|atom|size|width|model|cap|var))",
    ),
    _kind("reduction", ("4", "2", "8"), r"reduction|squeeze|shrink|bottleneck_factor|^r$"),
    _kind("momentum", ("0.1",), r"momentum"),
    _kind(
        "factor",
        ("2", "1", "4", "0.5"),
        r"upscale|scale_factor|up_?sampl\w*|down_?sampl\w*|(^|_)factor|mult$|multiplier|expan\w*|ratio|times|scale$",
        r"growth|upfactor",
    ),
    _kind(
        "number",
        ("0.5", "1.0", "2.0", "1", "10000"),
        r"(^|_)(alpha|beta|gamma|lamb\w*|temperature|temp|tau|slope|coef\w*|margin|threshold|thresh|sigma|theta)\d?$",
        r"(^|_)(mean|std|init_values?|weight|rate|lr|decay|power|base|min\w*|max\w*|value|delta|rho|mu)\d?$",
    ),
    _kind(
        "activation",
        ("nn.ReLU()", "nn.ReLU", "'relu'"),
        r"(^|_)act(ivation|_layer|_fn|_func|_type|_cfg|_fun)?\d?$|nonlin|relu|activation",
    ),
    _kind(
        "norm",
        ("nn.BatchNorm2d", "nn.LayerNorm", "nn.BatchNorm1d", "'batch'", "nn.GELU()", "None"),
        r"norm",
    ),
    _kind("size", _SIZE.values, r"^(d|dim)_model$"),
    _kind("hidden", ("<hidden>", "32", "16", "48"), r"^(d|dim)_ff$"),
    _kind(
        "encoder_layer",
        ("nn.TransformerEncoderLayer(<dim>, 4, <hidden>, batch_first=True)",),
        r"^encoder_layer$",
    ),
    _kind(
        "decoder_layer",
        ("nn.TransformerDecoderLayer(<dim>, 4, <hidden>, batch_first=True)",),
        r"^decoder_layer$",
    ),
    _kind(
        "convolution",
        ("nn.Conv2d", "nn.Conv1d", "nn.Conv2d(<dim>, <dim>, 3, padding=1)"),
        r"(^|_)conv(_(layer|op|cls|class))?$",
    ),
    _kind(
        "module",
        ("nn.GELU()", "nn.Linear(<dim>, <dim>)", "nn.Identity()", "nn.Linear", "nn.Conv2d(<dim>, <dim>, 3, padding=1)"),
        r"(^|_)(fn|func|f|g|function|callable|module|submodule|net|network|block|encoder|decoder|backbone|model)$",
        r"(^|_)(transformer|layer|mixer|attn|attention|op|sub_?layer|mlp|ff|embed|embedding|embedder|head|stem)$",
        r"(^|_)(body|branch\d?)$",
    ),
    _kind(
        "mode",
        ("'mean'", "'bilinear'", "'nearest'", "'max'", "'relu'"),
        r"(^|_)(mode|type|method|kind|padding_mode|name|variant)$",
    ),
    _kind(
        "hidden",
        ("<hidden>", "32", "16", "48"),
        r"hidden|mid|inter|inner|mlp|ffn?($|_)|d_ff|_ff$|latent|bottleneck|feed_?forward|expand|branch|(^|_)hid",
    ),
    _kind(
        "inner",
        ("<inner>", "32", "16", "64", "3"),
        r"(^|_)(in|inp|input|ins|src|source|inplanes|inchannels|nin|cin|idim|inc|inch|infeatures|inf|x)(_|$)",
        r"^in|_in$|^(c1|ch1|dim1|channels1|n_feats_in)$",
    ),
    _kind(
        "outer",
        ("<outer>", "32", "16", "64"),
        r"(^|_)(out|oup|output|outs|outplanes|outchannels|nout|cout|odim|outc|outch|target|tgt|skip|planes|outf|y)(_|$)",
        r"^out|_out$|^(c2|ch2|dim2|channels2)$",
    ),
)
SIZES = frozenset({"inner", "outer", "hidden", "size"})  # kinds whose values are numbers of channels


def snake(name: str) -> str:
    """`inChannels` -> `in_channels`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def kind_of(name: str) -> Kind:
    lowered = snake(name)
    return next((kind for kind in _KINDS if kind.pattern.search(lowered)), _SIZE)
