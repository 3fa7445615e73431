"""Hints at the input of a constructed module, from the types of its layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from .source_hints import pattern_rank


@dataclass(frozen=True, slots=True)
class LayerHint:
    """The input that one layer expects. `layouts` are as in `guess.LAYOUTS`, best first."""

    layouts: tuple[tuple[str, ...], ...]
    features: int = 0  # size of C; 0 if the layer takes any
    tokens: int = 0  # the layer takes integers in [0, tokens); 0 if it takes floats


_IMAGE, _VOLUME, _SERIES = ("B", "C", "H", "W"), ("B", "C", "T", "H", "W"), ("B", "C", "L")
_SEQUENCE, _ROWS = ("B", "L", "C"), ("B", "C")
# The docstring of a generated layer that reorders axes: "b c (h p) w -> b (h w) (c p)".
_PATTERN = re.compile(r"([\w\s()]+)->[\w\s().]+")
_BY_DIMENSIONS = {1: (_SERIES,), 2: (_IMAGE,), 3: (_VOLUME,)}


def layer_hints(module: nn.Module) -> Iterator[LayerHint]:
    """The hints of all layers in the order of registration, which is mostly the order of execution."""
    for layer in module.modules():
        if (hint := _hint(layer)) is not None:
            yield hint


def _hint(layer: nn.Module) -> LayerHint | None:
    kind = type(layer).__name__
    dimensions = next((n for n in (1, 2, 3) if f"{n}d" in kind), 0)
    channels = getattr(layer, "in_channels", None) or getattr(layer, "num_features", None)
    features = channels if isinstance(channels, int) else 0
    match layer:
        case nn.modules.conv._ConvNd() | nn.modules.batchnorm._NormBase() if dimensions:
            return LayerHint(_BY_DIMENSIONS[dimensions], features)
        case nn.Linear():
            return LayerHint((_SEQUENCE, _ROWS), layer.in_features)
        case nn.LayerNorm() if layer.normalized_shape:
            return LayerHint((_SEQUENCE, _ROWS), layer.normalized_shape[-1])
        case nn.GroupNorm():
            return LayerHint((_IMAGE, _SERIES), layer.num_channels)
        case nn.Embedding() | nn.EmbeddingBag():
            return LayerHint((("B", "L"),), tokens=layer.num_embeddings)
        case nn.RNNBase():
            return LayerHint((_SEQUENCE,), layer.input_size)
        case nn.RNNCellBase():
            return LayerHint((_ROWS,), layer.input_size)
        case nn.MultiheadAttention():
            return LayerHint((_SEQUENCE,), layer.embed_dim)
        case nn.PixelShuffle() | nn.PixelUnshuffle() | nn.UpsamplingBilinear2d() | nn.UpsamplingNearest2d():
            return LayerHint((_IMAGE,))
    if dimensions and type(layer).__module__.startswith("torch.nn"):  # pooling, padding, dropout
        return LayerHint(_BY_DIMENSIONS[dimensions])
    if pattern := _PATTERN.match(type(layer).__doc__ or ""):
        rank = pattern_rank(pattern[1])
        return LayerHint({3: (_SEQUENCE, _SERIES), 4: (_IMAGE,), 5: (_VOLUME,)}.get(rank, ()))
    return None
