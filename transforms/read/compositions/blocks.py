"""Blocks of a composition. Each block transforms the current value of a builder."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder, Kind
from .operator_pool import COMBINATIONS, ELEMENTWISE, REDUCTIONS

Block = Callable[[Builder], None]


def chain(b: Builder) -> None:
    """Two to four elementwise operators, sometimes combined with their input."""
    start = b.keep("start") if b.random.random() < 0.6 else None
    for _ in range(b.random.randint(2, 4)):
        b.let(b.operator(ELEMENTWISE, b.value.name))
    if start is not None:
        b.let(b.operator(COMBINATIONS, b.value.name, start.name))


def norm_act(b: Builder) -> None:
    """A normalisation over features, groups or positions, then an activation."""
    x, width = b.value.name, b.value.width
    choices = {
        "layer_norm": f"nn.LayerNorm({width})",
        "group_norm": f"nn.GroupNorm({b.random.choice((2, 4, 8))}, {width})",
        "instance_norm": f"nn.InstanceNorm2d({width}, affine=True)",
        "batch_norm": f"nn.BatchNorm{2 if b.value.kind is Kind.IMAGE else 1}d({width})",
    }
    allowed = {
        Kind.FLAT: ["layer_norm", "batch_norm", "group_norm", "rms_norm", "standardize"],
        Kind.SEQUENCE: ["layer_norm", "rms_norm", "standardize"],
        Kind.IMAGE: ["group_norm", "instance_norm", "batch_norm", "rms_norm", "standardize"],
    }[b.value.kind]
    name = b.random.choice(allowed)
    b.parts.append(name)
    axis, eps = b.value.kind.axis, b.random.choice(("1e-6", "1e-5", "1e-3"))
    if name in choices:
        b.let(f"{b.layer('norm', choices[name])}({x})")
    elif name == "rms_norm":
        gain = b.layer("gain", f"nn.Parameter(torch.ones({_broadcast(b)}))")
        b.let(f"{x} * torch.rsqrt({x}.pow(2).mean(dim={axis}, keepdim=True) + {eps}) * {gain}")
    else:
        centred = b.let(f"{x} - {x}.mean(dim={axis}, keepdim=True)", "centred")
        b.let(f"{centred.name} / ({centred.name}.std(dim={axis}, keepdim=True) + {eps})")
    b.let(b.activate(b.value.name))


def matmul_bias_act(b: Builder) -> None:
    """A matrix product, as a layer, a parameter or a convolution, with or without a bias; then an activation."""
    width = b.value.width
    twice = width if "*" in width else f"2 * {width}"
    _project(b, b.random.choice((width, twice, str(b.random.randrange(16, 97, 8)))))
    if b.random.random() < 0.5:
        b.let(b.operator(ELEMENTWISE, b.value.name))
    b.let(b.activate(b.value.name))


def residual(b: Builder) -> None:
    """A block that keeps the shape, with a scaled or gated skip connection."""
    start = b.keep("skip")
    b.parts.append("residual")
    b.random.choice((chain, norm_act))(b)
    if b.random.random() < 0.6:
        _project(b, start.width)
    match b.random.randrange(3):
        case 0:
            b.let(f"{start.name} + {b.value.name}")
        case 1:
            scale = b.layer("scale", f"nn.Parameter(torch.full({_broadcast(b)}, 0.1))")
            b.let(f"{start.name} + {scale} * {b.value.name}")
        case 2:
            b.let(b.operator(COMBINATIONS, start.name, b.value.name))


def gating(b: Builder) -> None:
    """Features scaled by a function of the same value: gated linear units, squeeze and excitation."""
    x, kind, width = b.value.name, b.value.kind, b.value.width
    if kind is not Kind.FLAT and b.random.random() < 0.5:
        b.parts.append("squeeze_excitation")
        reduction = b.random.choice((2, 4))
        squeezed = b.let(f"{x}.mean(dim={_dims(kind)})", "squeezed", Kind.FLAT)
        down = b.layer("down", f"nn.Linear({width}, {width} // {reduction})")
        up = b.layer("up", f"nn.Linear({width} // {reduction}, {width})")
        hidden = b.let(b.activate(f"{down}({squeezed.name})"), "hidden", Kind.FLAT)
        gate = b.let(f"torch.sigmoid({up}({hidden.name}))", "gate", Kind.FLAT)
        index = "[:, :, None, None]" if kind is Kind.IMAGE else "[:, None, :]"
        b.let(f"{x} * {gate.name}{index}")
        return
    b.parts.append("gated_linear_unit")
    hidden_width = str(b.random.randrange(16, 97, 8))
    if b.random.random() < 0.5:
        both = f"{b.layer('both', _layer(b, width, f'2 * {hidden_width}'))}({x})"
        b.statements.append(f"value, gate = {both}.chunk(2, dim={kind.axis})")
    else:
        for name in ("value", "gate"):
            b.statements.append(f"{name} = {b.layer(f'to_{name}', _layer(b, width, hidden_width))}({x})")
    b.let(f"value * {b.activate('gate')}", width=hidden_width)


def attention(b: Builder) -> None:
    """Attention over positions, or over features where there are no positions."""
    x, width = b.value.name, b.value.width
    if b.value.kind is not Kind.SEQUENCE:
        _feature_attention(b)
        return
    heads = b.random.choice((1, 2, 4))
    for name in ("query", "key", "value"):
        layer = b.layer(f"to_{name}", f"nn.Linear({width}, {width}, bias={b.random.random() < 0.5})")
        split = f".unflatten(-1, ({heads}, -1)).transpose(1, 2)" if heads > 1 else ""
        b.statements.append(f"{name} = {layer}({x}){split}")
    if b.random.random() < 0.3:
        b.parts.append("linear_attention")
        feature = b.random.choice(("F.elu({}) + 1.0", "torch.relu({}) + 0.01", "F.softplus({})"))
        b.statements += [f"{name} = {feature.format(name)}" for name in ("query", "key")]
        b.statements.append("context = key.transpose(-2, -1) @ value")
        b.statements.append("total = query @ key.sum(dim=-2, keepdim=True).transpose(-2, -1)")
        mixed = "query @ context / (total + 1e-6)"
    else:
        b.parts.append("attention")
        scale = b.random.choice(("query.shape[-1] ** -0.5", "0.125", "0.2"))
        b.statements.append(f"scores = query @ key.transpose(-2, -1) * {scale}")
        if b.random.random() < 0.4:
            b.statements.append(f"scores = {b.operator(ELEMENTWISE, 'scores')}")
        mixed = "torch.softmax(scores, dim=-1) @ value"
    b.let(f"({mixed}).transpose(1, 2).flatten(2)" if heads > 1 else mixed)
    if b.random.random() < 0.6:
        b.let(f"{b.layer('out', f'nn.Linear({width}, {width})')}({b.value.name})")


def pooling(b: Builder) -> None:
    """Pooling of neighbours, or of all positions."""
    x, kind = b.value.name, b.value.kind
    if kind is Kind.IMAGE:
        size, stride = b.random.choice(((2, 2), (3, 2), (3, 1), (2, 1), (4, 2)))
        expressions = {
            "average_pool": f"F.avg_pool2d({x}, {size}, {stride})",
            "max_pool": f"F.max_pool2d({x}, {size}, {stride})",
            "smooth_pool": f"torch.sqrt(F.avg_pool2d({x} * {x}, {size}, {stride}) + 1e-5)",
            "mixed_pool": f"F.avg_pool2d({x}, {size}, {stride}) + F.max_pool2d({x}, {size}, {stride})",
            "min_pool": f"-F.max_pool2d(-{x}, {size}, {stride})",
        }
        name = b.random.choice(sorted(expressions))
        b.parts.append(name)
        b.let(expressions[name])
    elif kind is Kind.SEQUENCE:
        b.parts.append("attention_pool")
        weights = b.layer("weigh", f"nn.Linear({b.value.width}, 1)")
        weight = b.let(f"torch.softmax({weights}({x}), dim=1)", "weight")
        b.let(f"({weight.name} * {x}).sum(dim=1)", kind=Kind.FLAT)
    else:
        reduction(b)


def reduction(b: Builder) -> None:
    """A reduction over positions; over features, where there are no positions, a softmax that keeps the shape."""
    kind, x = b.value.kind, b.value.name
    if kind is Kind.FLAT:
        b.parts.append("softmax")
        weights = b.let(f"torch.softmax({b.operator(ELEMENTWISE, x)}, dim=-1)", "weights")
        b.let(b.operator(COMBINATIONS, x, weights.name))
        return
    b.let(b.operator(REDUCTIONS, x).replace("{d}", _dims(kind)), kind=Kind.FLAT)
    b.let(b.operator(ELEMENTWISE, b.value.name))


def _feature_attention(b: Builder) -> None:
    """Attention between the features of each example."""
    x, width = b.value.name, b.value.width
    b.parts.append("feature_attention")
    if b.value.kind is Kind.IMAGE:
        flat = b.let(f"{x}.flatten(2)", "flat")
        b.statements.append(f"scores = {flat.name} @ {flat.name}.transpose(1, 2) / {flat.name}.shape[-1]")
        b.let(f"(torch.softmax(scores, dim=-1) @ {flat.name}).view_as({x})")
        return
    query, key = (f"{b.layer(f'to_{name}', f'nn.Linear({width}, {width})')}({x})" for name in ("query", "key"))
    b.statements.append(f"scores = torch.softmax({query} * {key}, dim=-1)")
    b.let(b.operator(COMBINATIONS, x, "scores"))


def _project(b: Builder, width: str) -> None:
    x, before = b.value.name, b.value.width
    bias = b.random.random() < 0.7
    if b.value.kind is Kind.IMAGE or b.random.random() < 0.6:
        b.parts.append("conv" if b.value.kind is Kind.IMAGE else "linear")
        b.let(f"{b.layer('proj', _layer(b, before, width, bias))}({x})", width=width)
        return
    b.parts.append("matmul")
    weight = b.layer("weight", f"nn.Parameter(torch.randn({before}, {width}) / 8.0)")
    added = f" + {b.layer('bias', f'nn.Parameter(torch.zeros({width}))')}" if bias else ""
    b.let(f"{x} @ {weight}{added}", width=width)


def _layer(b: Builder, before: str, width: str, bias: bool = True) -> str:
    if b.value.kind is not Kind.IMAGE:
        return f"nn.Linear({before}, {width}, bias={bias})"
    size = b.random.choice((1, 1, 3))
    return f"nn.Conv2d({before}, {width}, {size}, padding={size // 2}, bias={bias})"


def _broadcast(b: Builder) -> str:
    """Shape of a parameter with one number for each feature that broadcasts with the value."""
    return f"({b.value.width}, 1, 1)" if b.value.kind is Kind.IMAGE else f"({b.value.width},)"


def _dims(kind: Kind) -> str:
    dims = kind.others or (-1,)
    return str(dims[0]) if len(dims) == 1 else str(dims)


FAMILIES: dict[str, tuple[Block, tuple[Kind, ...]]] = {
    "elementwise": (chain, tuple(Kind)),
    "norm_act": (norm_act, tuple(Kind)),
    "matmul_bias_act": (matmul_bias_act, tuple(Kind)),
    "residual": (residual, tuple(Kind)),
    "gating": (gating, tuple(Kind)),
    "attention": (attention, tuple(Kind)),
    "pooling": (pooling, (Kind.SEQUENCE, Kind.IMAGE)),
    "reduction": (reduction, (Kind.SEQUENCE, Kind.IMAGE)),
}
BEFORE: tuple[Block, ...] = (chain, norm_act, matmul_bias_act, residual)
AFTER: tuple[Block, ...] = (chain, norm_act, matmul_bias_act)
