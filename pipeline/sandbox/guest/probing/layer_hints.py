"""What the layers of a constructed module say about its input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from .source_hints import pattern_rank


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one layer expects. `layouts` as in `guess.LAYOUTS`, best first."""

    layouts: tuple[tuple[str, ...], ...]
    features: int = 0  # size of C, 0 if the layer takes any
    tokens: int = 0  # integers in [0, tokens), 0 if it takes floats


_IMAGE, _VOLUME, _SERIES = ("B", "C", "H", "W"), ("B", "C", "T", "H", "W"), ("B", "C", "L")
_SEQUENCE, _ROWS = ("B", "L", "C"), ("B", "C")
# How a layer that reorders axes says what it takes, up to the arrow: "b c (h p) w -> b (h w) (c p)".
_PATTERN = re.compile(r"([\w\s()]+)->[\w\s().]+")
_BY_DIMENSIONS = {1: (_SERIES,), 2: (_IMAGE,), 3: (_VOLUME,)}


def evidence(module: nn.Module) -> Iterator[Evidence]:
    """Of each layer that says something, in the order of registration, which is mostly that of execution."""
    for layer in module.modules():
        found = _of(layer)
        if found is not None:
            yield found


def _of(layer: nn.Module) -> Evidence | None:
    kind = type(layer).__name__
    dimensions = next((n for n in (1, 2, 3) if f"{n}d" in kind), 0)
    channels = getattr(layer, "in_channels", None) or getattr(layer, "num_features", None)
    features = channels if isinstance(channels, int) else 0
    match layer:
        case nn.modules.conv._ConvNd() | nn.modules.batchnorm._NormBase() if dimensions:
            return Evidence(_BY_DIMENSIONS[dimensions], features)
        case nn.Linear():
            return Evidence((_SEQUENCE, _ROWS), layer.in_features)
        case nn.LayerNorm() if layer.normalized_shape:
            return Evidence((_SEQUENCE, _ROWS), layer.normalized_shape[-1])
        case nn.GroupNorm():
            return Evidence((_IMAGE, _SERIES), layer.num_channels)
        case nn.Embedding() | nn.EmbeddingBag():
            return Evidence((("B", "L"),), tokens=layer.num_embeddings)
        case nn.RNNBase():
            return Evidence((_SEQUENCE,), layer.input_size)
        case nn.RNNCellBase():
            return Evidence((_ROWS,), layer.input_size)
        case nn.MultiheadAttention():
            return Evidence((_SEQUENCE,), layer.embed_dim)
        case nn.PixelShuffle() | nn.PixelUnshuffle() | nn.UpsamplingBilinear2d() | nn.UpsamplingNearest2d():
            return Evidence((_IMAGE,))
    if dimensions and type(layer).__module__.startswith("torch.nn"):  # pooling, padding, dropout
        return Evidence(_BY_DIMENSIONS[dimensions])
    if pattern := _PATTERN.match(type(layer).__doc__ or ""):
        rank = pattern_rank(pattern[1])
        return Evidence({3: (_SEQUENCE, _SERIES), 4: (_IMAGE,), 5: (_VOLUME,)}.get(rank, ()))
    return None
