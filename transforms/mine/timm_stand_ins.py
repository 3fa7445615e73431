"""Definitions that replace imports of small timm layers and helpers, so that a dataset row needs torch alone."""

from __future__ import annotations

from . import tree_sitter_nodes as ts
from .bindings import imports

_TUPLE = '''def {name}(x):
    """A sequence as a tuple; anything else, %d times."""
    return tuple(x) if hasattr(x, "__iter__") and not isinstance(x, str) else (x,) * %d'''
_DROP_PATH = '''def {name}(x, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True):
    """Zeroes whole samples at random while training."""
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1.0 - drop_prob
    kept = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep_prob)
    return x * (kept / keep_prob if scale_by_keep and keep_prob > 0.0 else kept)'''
_DROP_PATH_LAYER = '''class {name}(torch.nn.Module):
    """Zeroes whole samples at random while training."""

    def __init__(self, drop_prob: float = 0.0, scale_by_keep: bool = True):
        super().__init__()
        self.drop_prob = drop_prob
        self.scale_by_keep = scale_by_keep

    def forward(self, x):
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep_prob = 1.0 - self.drop_prob
        kept = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep_prob)
        return x * (kept / keep_prob if self.scale_by_keep and keep_prob > 0.0 else kept)'''
_LAYER_NORM_2D = '''class {name}(torch.nn.LayerNorm):
    """Over the channels of (batch, channels, height, width)."""

    def __init__(self, num_channels, eps=1e-6, affine=True):
        super().__init__(num_channels, eps=eps, elementwise_affine=affine)

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)'''
_MLP = '''class {name}(torch.nn.Module):
    """Two linear layers with an activation between them."""

    def __init__(
        self, in_features, hidden_features=None, out_features=None, act_layer=torch.nn.GELU, norm_layer=None,
        bias=True, drop=0.0,
    ):
        super().__init__()
        hidden_features = hidden_features or in_features
        first, second = bias if isinstance(bias, (tuple, list)) else (bias, bias)
        drop1, drop2 = drop if isinstance(drop, (tuple, list)) else (drop, drop)
        self.fc1 = torch.nn.Linear(in_features, hidden_features, bias=first)
        self.act = act_layer()
        self.drop1 = torch.nn.Dropout(drop1)
        self.norm = norm_layer(hidden_features) if norm_layer is not None else torch.nn.Identity()
        self.fc2 = torch.nn.Linear(hidden_features, out_features or in_features, bias=second)
        self.drop2 = torch.nn.Dropout(drop2)

    def forward(self, x):
        x = self.drop1(self.act(self.fc1(x)))
        return self.drop2(self.fc2(self.norm(x)))'''
_DEFINITIONS = {
    "DropPath": _DROP_PATH_LAYER,
    "LayerNorm2d": _LAYER_NORM_2D,
    "Mlp": _MLP,
    "drop_path": _DROP_PATH,
    **{f"to_{n}tuple": _TUPLE % (n, n) for n in (1, 2, 3, 4)},
}
_IN_TORCH = {"trunc_normal_": "torch.nn.init"}  # name -> module of torch with the same function


class UnsupportedImport(Exception):
    """timm is imported as a whole, but only single names of it can be replaced. The message names the module."""


def replace_timm_imports(lines: set[str]) -> tuple[set[str], list[str]]:
    """Replace imports of timm.

    Returns:
        The import lines without timm, and definitions of the names that they imported.

    Raises:
        UnsupportedImport: the package itself is imported.
    """
    timm_lines = sorted(line for line in lines if line.split()[1].partition(".")[0] == "timm")
    kept, definitions = lines - {*timm_lines}, []
    for line in timm_lines:
        for item in imports(ts.statements(ts.parse(line.encode()))[0]):
            if item.name is None:
                raise UnsupportedImport(f"{item.module}, by its own name")
            if item.name in _IN_TORCH:
                alias = f" as {item.local}" if item.local != item.name else ""
                kept.add(f"from {_IN_TORCH[item.name]} import {item.name}{alias}")
            else:
                definitions.append(_DEFINITIONS[item.name].replace("{name}", item.local))
    return kept | ({"import torch"} if any("torch." in text for text in definitions) else set()), definitions
