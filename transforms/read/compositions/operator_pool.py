"""Operators of compositions: name -> expression of a value `{x}` that keeps its shape.

The constants `{a}` and `{b}` are drawn from a few round numbers, so that compositions rarely repeat.
"""

from __future__ import annotations

from random import Random

ACTIVATIONS: dict[str, str] = {
    "relu": "torch.relu({x})",
    "gelu": "F.gelu({x})",
    "gelu_tanh": 'F.gelu({x}, approximate="tanh")',
    "silu": "F.silu({x})",
    "sigmoid": "torch.sigmoid({x})",
    "tanh": "torch.tanh({x})",
    "softplus": "F.softplus({x}, beta={a})",
    "elu": "F.elu({x}, alpha={a})",
    "selu": "F.selu({x})",
    "leaky_relu": "F.leaky_relu({x}, {b})",
    "hardswish": "F.hardswish({x})",
    "hardsigmoid": "F.hardsigmoid({x})",
    "mish": "F.mish({x})",
    "softsign": "F.softsign({x})",
    "logsigmoid": "F.logsigmoid({x})",
    "relu6": "F.relu6({x})",
    "swish_beta": "{x} * torch.sigmoid({a} * {x})",
    "squared_relu": "torch.relu({x}) ** 2",
    "tanh_exp": "{x} * torch.tanh(torch.exp(torch.clamp({x}, max={a})))",
    "shrink": "F.softshrink({x}, {b})",
}
ELEMENTWISE: dict[str, str] = {
    **ACTIVATIONS,
    "abs": "torch.abs({x})",
    "square": "{x} * {x}",
    "sqrt": "torch.sqrt(torch.abs({x}) + {b})",
    "log1p": "torch.log1p(torch.abs({x}))",
    "signed_log": "torch.sign({x}) * torch.log1p({a} * torch.abs({x}))",
    "bell": "torch.exp(-{a} * {x} * {x})",
    "sin": "torch.sin({a} * {x})",
    "cos": "torch.cos({a} * {x})",
    "erf": "torch.erf({x} / {a})",
    "atan": "torch.atan({a} * {x})",
    "clamp": "torch.clamp({x}, -{a}, {a})",
    "rational": "{x} / ({a} + torch.abs({x}))",
    "rsqrt": "{x} * torch.rsqrt({b} + {x} * {x})",
    "scale": "{a} * {x}",
    "shift": "{x} + {b}",
    "affine": "{a} * {x} - {b}",
    "where": "torch.where({x} > {b}, {x}, {a} * {x})",
    "maximum": "torch.maximum({x}, {b} * {x})",
    "snake": "{x} + torch.sin({a} * {x}) ** 2 / {a}",
}
COMBINATIONS: dict[str, str] = {  # two values of the same shape
    "add": "{x} + {y}",
    "subtract": "{x} - {y}",
    "multiply": "{x} * {y}",
    "gate": "{x} * torch.sigmoid({y})",
    "minimum": "torch.minimum({x}, {y})",
    "maximum": "torch.maximum({x}, {y})",
    "weighted": "{b} * {x} + {a} * {y}",
    "distance": "torch.sqrt(({x} - {y}) ** 2 + {b})",
    "divide": "{x} / ({a} + torch.abs({y}))",
    "lerp": "torch.lerp({x}, {y}, {b})",
    "softmax_pair": "torch.logaddexp({x}, {y})",
}
REDUCTIONS: dict[str, str] = {  # over dimensions {d}
    "mean": "{x}.mean(dim={d})",
    "sum": "{x}.sum(dim={d})",
    "amax": "{x}.amax(dim={d})",
    "amin": "{x}.amin(dim={d})",
    "logsumexp": "torch.logsumexp({x}, dim={d})",
    "norm": "torch.sqrt(({x} * {x}).sum(dim={d}) + {b})",
    "variance": "{x}.var(dim={d}, unbiased=False)",
    "mean_of_squares": "({x} ** 2).mean(dim={d})",
    "span": "{x}.amax(dim={d}) - {x}.amin(dim={d})",
}
_LARGE = ("0.5", "0.7", "0.8", "1.2", "1.5", "1.702", "2.0", "2.5", "3.0")
_SMALL = ("0.01", "0.02", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.4")


def pick(random: Random, table: dict[str, str]) -> tuple[str, str]:
    """Draw an operator. Returns its name and its expression with constants filled in."""
    name = random.choice(sorted(table))
    expression = table[name].replace("{a}", random.choice(_LARGE)).replace("{b}", random.choice(_SMALL))
    return name, expression
