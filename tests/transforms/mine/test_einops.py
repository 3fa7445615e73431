"""The torch code that replaces einops computes the same, for any pattern and shape."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from math import prod

import einops
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelquarry.transforms.mine.einops.einops_layers import Layers
from kernelquarry.transforms.mine.einops.pattern import Unsupported, equation
from kernelquarry.transforms.mine.einops.plain import methods

AXES = "abcdefg"


@dataclass(frozen=True)
class Use:
    """A call of one function, and a shape that it accepts."""

    function: str
    pattern: str
    reduction: str
    lengths: dict[str, int]
    shape: tuple[int, ...]

    def by_einops(self, x: torch.Tensor) -> torch.Tensor:
        reduction = [self.reduction] if self.reduction else []
        return getattr(einops, self.function)(x, self.pattern, *reduction, **self.lengths)

    def written(self) -> str:
        lengths = {axis: str(length) for axis, length in self.lengths.items()}
        return "".join(["x", *methods(self.function, self.pattern, lengths, self.reduction)])


@st.composite
def sides(draw: st.DrawFn, axes: list[str], ellipsis_in_group: bool) -> str:
    """The axes in their order, some of them in groups, with axes of length 1 among them."""
    parts: list[str] = []
    rest = list(axes)
    while rest:
        if draw(st.integers(0, 7)) == 0:
            parts.append(draw(st.sampled_from(["1", "()"])))
        size = draw(st.sampled_from([1, 1, 1, 2, 3]))
        group, rest = rest[:size], rest[size:]
        if "..." in group and not ellipsis_in_group:
            parts += group
        else:
            grouped = len(group) > 1 or draw(st.integers(0, 5)) == 0
            parts.append(f"({' '.join(group)})" if grouped else group[0])
            if grouped and group == ["..."] and not ellipsis_in_group:
                parts[-1] = "..."
    return " ".join([*parts, *draw(st.lists(st.just("1"), max_size=1))])


@st.composite
def uses(draw: st.DrawFn) -> Use:
    function = draw(st.sampled_from(["rearrange", "repeat", "reduce"]))
    count = draw(st.integers(0, 4))
    left = list(AXES[:count])
    if draw(st.booleans()):
        left.insert(draw(st.integers(0, count)), "...")
    right = list(draw(st.permutations(left))) if draw(st.booleans()) else list(left)
    new: list[str] = []
    if function == "reduce":
        right = [axis for axis in right if draw(st.booleans())]
    elif function == "repeat":
        new = list(AXES[count : count + draw(st.integers(0, 2))])
        for axis in [*new, *draw(st.lists(st.just("2"), max_size=1))]:
            right.insert(draw(st.integers(0, len(right))), axis)
    one, other = draw(sides(left, False)), draw(sides(right, True))
    sizes = {axis: draw(st.integers(1, 3)) for axis in AXES}
    lengths = {axis: sizes[axis] for axis in new}
    shape: list[int] = []
    for part in re.findall(r"\.\.\.|\(.*?\)|\w", one):
        axes = re.findall(r"[a-g]", part)
        shape += draw(st.lists(st.integers(1, 3), max_size=2)) if part == "..." else [prod(sizes[a] for a in axes)]
        unknown = draw(st.sampled_from([None, *axes]))
        lengths |= {axis: sizes[axis] for axis in axes if axis != unknown and len(axes) > 1}
    reduction = draw(st.sampled_from(["max", "mean", "min", "prod", "sum"])) if function == "reduce" else ""
    return Use(function, f"{one} -> {other}", reduction, lengths, tuple(shape))


@settings(max_examples=600)
@given(uses())
def test_replacement_equals_einops_for_any_pattern(use: Use) -> None:
    x = torch.arange(1.0, prod(use.shape) + 1, dtype=torch.float64).reshape(use.shape)
    expected = use.by_einops(x)
    found = eval(use.written(), {"x": x})
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


# function, pattern, lengths, reduction -> what is written
WRITTEN = {
    ("rearrange", "b c (h p) w -> b h (c p) w", "p", ""):
        "x.unflatten(2, (-1, p)).permute(0, 2, 1, 3, 4).flatten(2, 3)",
    ("rearrange", "b n (h d) -> b h n d", "h", ""): "x.unflatten(2, (h, -1)).permute(0, 2, 1, 3)",
    ("rearrange", "b (h w) c -> b (h w) c", "h", ""): "x",
    ("rearrange", "b j -> b 1 1 j", "", ""): "x[:, None, None, :]",
    ("rearrange", "... -> ... 1", "", ""): "x.unsqueeze(-1)",
    ("rearrange", "... i j -> ... j i", "", ""): "x.transpose(-2, -1)",
    ("rearrange", "b ... d -> b d ...", "", ""): "x.movedim(-1, 1)",
    ("rearrange", "... -> (...)", "", ""): "x.flatten()",
    ("rearrange", "b 1 n d -> b n d", "", ""): "x.squeeze(1)",
    ("repeat", "1 1 d -> b 1 d", "b", ""): "x.expand(b, -1, -1)",
    ("repeat", "n d -> b n d", "b", ""): "x.expand(b, -1, -1)",
    ("repeat", "b h n d -> b (h r) n d", "r", ""): "x.repeat_interleave(r, dim=1)",
    ("repeat", "b h n d -> b (r h) n d", "r", ""): "x.repeat(1, r, 1, 1)",
    ("repeat", "b n -> b n 3", "", ""): "x.unsqueeze(2).expand(-1, -1, 3)",
    ("reduce", "b c h w -> b c", "", "mean"): "x.mean(dim=(2, 3))",
    ("reduce", "b c h w -> b c 1 1", "", "max"): "x.amax(dim=(2, 3), keepdim=True)",
    ("reduce", "... all -> all", "", "sum"): "x.unsqueeze(0).flatten(0, -2).sum(dim=0)",
    ("reduce", "b (h p) -> b h", "p", "min"): "x.unflatten(1, (-1, p)).amin(dim=2)",
}  # fmt: skip


@pytest.mark.parametrize("use", WRITTEN)
def test_steps_without_effect_are_not_written(use: tuple[str, str, str, str]) -> None:
    function, pattern, lengths, reduction = use
    assert "".join(["x", *methods(function, pattern, {a: a for a in lengths.split()}, reduction)]) == WRITTEN[use]


@pytest.mark.parametrize(
    ("function", "pattern", "lengths"),
    [
        ("rearrange", "a b", ""),
        ("rearrange", "a b -> a", ""),
        ("rearrange", "a -> a b", ""),
        ("rearrange", "a a -> a", ""),
        ("rearrange", "(a b) -> a b", ""),
        ("rearrange", "((a) b) -> a b", "a"),
        ("rearrange", "(a b -> a b", "a"),
        ("rearrange", "a b -> a b", "c"),
        ("rearrange", "a 2 -> a 2", ""),
        ("rearrange", "(a ...) -> a ...", "a"),
        ("rearrange", "a + b -> b + a", ""),
        ("repeat", "a -> a b", ""),
        ("repeat", "a b -> a", "b"),
        ("reduce", "a -> a b", ""),
    ],
)
def test_patterns_that_einops_rejects_are_rejected(function: str, pattern: str, lengths: str) -> None:
    given_lengths = dict.fromkeys(lengths.split(), 2)
    with pytest.raises((einops.EinopsError, ValueError)):
        Use(function, pattern, "sum" if function == "reduce" else "", given_lengths, (2, 2)).by_einops(torch.ones(2, 2))
    with pytest.raises(Unsupported):
        methods(function, pattern, dict.fromkeys(lengths.split(), "2"), "sum" if function == "reduce" else "")


@pytest.mark.parametrize(
    ("text", "expected", "shapes"),
    [
        ("b h i d, b h j d -> b h i j", "b h i d, b h j d -> b h i j", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("batch i, i out  ->  batch out", "b i, i o -> b o", [(2, 3), (3, 4)]),
        ("... d_in, d e -> ... d_in e d", "... i, d e -> ... i e d", [(2, 3), (4, 5)]),
        ("heads h -> h heads", "e h -> h e", [(2, 3)]),
    ],
)
def test_einsum_equation(text: str, expected: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [torch.rand(shape, dtype=torch.float64) for shape in shapes]
    assert equation(text) == expected
    assert torch.equal(torch.einsum(expected, operands), einops.einsum(*operands, text))


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(1, 3), max_size=2), min_size=1, max_size=3),
    st.sampled_from(["*", "a *", "* b", "a * b"]),
)
def test_pack_and_unpack_equal_einops(inner: list[list[int]], pattern: str) -> None:
    tensors = [
        torch.rand([2, *shape, 3][0 if "a" in pattern else 1 : None if "b" in pattern else -1]) for shape in inner
    ]
    layers = Layers("nn.Module", ())
    names = {"torch": torch, "math": math}
    exec("\n\n".join([layers.define("pack"), layers.define("unpack"), *layers.definitions][2:]), names)
    packed, shapes = names["pack"](tensors, pattern)
    expected, expected_shapes = einops.pack(tensors, pattern)
    assert torch.equal(packed, expected) and shapes == expected_shapes
    assert all(map(torch.equal, names["unpack"](packed, shapes, pattern), tensors))


@pytest.mark.parametrize("text", ["a b", "(a b) -> a b", "a 1 -> a", " ".join(f"x{i}" for i in range(60)) + " -> "])
def test_malformed_equations_are_rejected(text: str) -> None:
    with pytest.raises(Unsupported):
        equation(text)


def test_unknown_reduction_is_rejected() -> None:
    with pytest.raises(Unsupported, match="median"):
        methods("reduce", "a b -> a", {}, "median")
