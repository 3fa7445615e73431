"""Definitions of PyTorch's functions, computed as they are written."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from kernelquarry.pipeline.prompts import kernel_request, prompt_id
from kernelquarry.pipeline.prompts.defined_calls import definitions

X = torch.linspace(-4.0, 4.0, 33, dtype=torch.float64)
Y, Z = X.flip(0) + 0.3, 0.5 + X.abs()
IMAGE = torch.randn(2, 12, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
_NAMES = "abs erf exp floor log maximum mean minimum sigmoid sin sum tanh trunc where"


def _of_numbers(function: Any) -> Any:
    return lambda *values: function(*map(torch.as_tensor, values))


_PYTORCH = {name: _of_numbers(getattr(torch, name)) for name in _NAMES.split()}


def formula(name: str) -> str:
    """The first formula of a definition."""
    return definitions(f"import torch\ntorch.{name}(0)")[name].split("; ")[0].split(", and the")[0]


def computed(text: str, **values: Any) -> Tensor:
    names = {"sqrt": lambda value: value**0.5, "pi": math.pi, "max": torch.amax, **_PYTORCH, **values}
    value: Tensor = eval(text, {"__builtins__": {}}, names)
    return value


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("clamp", {"min": -1.5, "max": 0.7}, X.clamp(-1.5, 0.7)),
        ("sign", {}, X.sign()),
        ("round", {"x": X * 1.7}, (X * 1.7).round()),
        ("trunc", {}, X.trunc()),
        ("frac", {}, X.frac()),
        ("remainder", {}, torch.remainder(X, Y)),
        ("fmod", {}, torch.fmod(X, Y)),
        ("log10", {"x": Z}, Z.log10()),
        ("expm1", {}, X.expm1()),
        ("log1p", {"x": Z}, Z.log1p()),
        ("tanh", {}, X.tanh()),
        ("mish", {}, F.mish(X)),
        ("gelu", {}, F.gelu(X)),
        ("silu", {}, F.silu(X)),
        ("elu", {"alpha": 0.7}, F.elu(X, 0.7)),
        ("celu", {"alpha": 0.7}, F.celu(X, 0.7)),
        ("selu", {}, F.selu(X)),
        ("softplus", {"beta": 2.0}, F.softplus(X, 2.0)),
        ("softsign", {}, F.softsign(X)),
        ("softshrink", {"lambd": 0.4}, F.softshrink(X, 0.4)),
        ("hardshrink", {"lambd": 0.4}, F.hardshrink(X, 0.4)),
        ("tanhshrink", {}, F.tanhshrink(X)),
        ("hardswish", {}, F.hardswish(X)),
        ("hardsigmoid", {}, F.hardsigmoid(X)),
        ("hardtanh", {"min_val": -0.4, "max_val": 1.0}, F.hardtanh(X, -0.4)),
        ("relu6", {}, F.relu6(X)),
        ("logsigmoid", {}, F.logsigmoid(X)),
        ("leaky_relu", {"negative_slope": 0.1}, F.leaky_relu(X, 0.1)),
        ("lerp", {"weight": 0.3}, torch.lerp(X, Y, 0.3)),
        ("addcmul", {"value": 0.3}, torch.addcmul(X, Y, Z, value=0.3)),
        ("addcdiv", {"value": 0.3}, torch.addcdiv(X, Y, Z, value=0.3)),
        ("logaddexp", {}, torch.logaddexp(X, Y)),
        ("hypot", {}, torch.hypot(X, Y)),
        ("logit", {"x": torch.sigmoid(X)}, X),
        ("sinc", {"x": Z}, torch.sinc(Z)),
        ("mse_loss", {}, F.mse_loss(X, Y)),
        ("l1_loss", {}, F.l1_loss(X, Y)),
        ("binary_cross_entropy_with_logits", {"y": torch.sigmoid(Y)},
         F.binary_cross_entropy_with_logits(X, torch.sigmoid(Y))),
    ],
)  # fmt: skip
def test_elementwise_formulas_are_those_of_pytorch(name: str, values: dict[str, Any], expected: Tensor) -> None:
    torch.testing.assert_close(computed(formula(name), **{"x": X, "y": Y, "z": Z} | values).double(), expected)


class Padded:
    """A tensor that is 0 outside."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def __getitem__(self, index: Any) -> float:
        places = index if isinstance(index, tuple) else (index,)
        inside = all(0 <= place < size for place, size in zip(places, self.values.shape, strict=True))
        return float(self.values[places]) if inside else 0.0


def gathered(text: str, shape: Sequence[int], sizes: dict[str, int], **values: Any) -> Tensor:
    """The result of "out[n, c] = ...", for indices below `sizes`."""
    text = re.sub(r", \.\.|\.\., ", "", re.split(",? (?:0 outside|along dim|size is|\\+ bias)", text)[0])
    left, _, right = text.removeprefix("out").partition(" = ")
    if found := re.search(r"sum over (.*?) of ", right):
        loops = "".join(f" for {name} in range({sizes[name]})" for name in found[1].split(", "))
        right = f"{right[: found.start()]}sum([{right[found.end() :]}{loops}])"
    names = [name for name in sizes if re.search(rf"\b{name}\b", left)]
    out = torch.zeros(*shape, dtype=torch.float64)
    for place in itertools.product(*(range(sizes[name]) for name in names)):
        at = dict(zip(names, place, strict=True))
        given = {key: Padded(value) if isinstance(value, Tensor) else value for key, value in values.items()} | at
        given |= {"sum": sum, "range": range, "ceil": math.ceil}
        out[tuple(eval(left, given))] = eval(right, given)
    return out


ROW, WEIGHT, BIAS = IMAGE[0, 0, 0], IMAGE[0, :3, :2, :3], IMAGE[1, :3, 0, 0]
BELOW = {"n": 2, "c": 3, "h": 8, "w": 12}


@pytest.mark.parametrize(
    ("name", "sizes", "values", "expected"),
    [
        ("pixel_shuffle", BELOW, {"x": IMAGE, "r": 2}, F.pixel_shuffle(IMAGE, 2)),
        ("pixel_unshuffle", {"n": 2, "c": 48, "h": 2, "w": 3}, {"x": IMAGE, "r": 2}, F.pixel_unshuffle(IMAGE, 2)),
        ("channel_shuffle", {"n": 2, "c": 12}, {"x": IMAGE[..., 0, 0], "groups": 3, "channels": 12},
         torch.channel_shuffle(IMAGE, 3)[..., 0, 0]),
        ("flip", {"j": 6}, {"x": ROW, "size": 6}, ROW.flip(0)),
        ("roll", {"j": 6}, {"x": ROW, "size": 6, "shift": 2}, ROW.roll(2)),
        ("repeat", {"j": 18}, {"x": ROW, "size": 6}, ROW.repeat(3)),
        ("repeat_interleave", {"j": 18}, {"x": ROW, "repeats": 3}, ROW.repeat_interleave(3)),
        ("cat", {"j": 12}, {"x": ROW, "y": BIAS.repeat(2), "size": 6}, torch.cat([ROW, BIAS.repeat(2)])),
        ("outer", {"i": 6, "j": 3}, {"x": ROW, "y": BIAS}, torch.outer(ROW, BIAS)),
        ("linear", {"o": 3, "i": 6}, {"x": ROW, "weight": WEIGHT.flatten(1)},
         F.linear(ROW, WEIGHT.flatten(1))),
        ("conv1d", {"n": 2, "o": 3, "l": 4, "c": 2, "i": 3},
         {"x": IMAGE[:, :2, 0], "weight": WEIGHT, "bias": BIAS, "first": 0, "stride": 2, "padding": 2, "dilation": 1},
         F.conv1d(IMAGE[:, :2, 0], WEIGHT, BIAS, stride=2, padding=2)),
        ("conv2d", {"n": 2, "o": 3, "h": 6, "w": 6, "c": 1, "i": 2, "j": 3},
         {"x": IMAGE[:, :1], "weight": WEIGHT[:, None], "bias": BIAS, "first": 0, "stride": 1, "padding": 2,
          "dilation": 2}, F.conv2d(IMAGE[:, :1], WEIGHT[:, None], BIAS, padding=2, dilation=2)),
        ("unfold", {"n": 2, "c": 12, "i": 2, "j": 3, "h": 2, "w": 2},
         {"x": IMAGE, "kernel_h": 2, "kernel_w": 3, "columns": 2, "stride": 3, "padding": 1, "dilation": 1},
         F.unfold(IMAGE, (2, 3), stride=3, padding=1)),
        ("avg_pool2d", {"n": 2, "c": 12, "h": 3, "w": 4, "i": 2, "j": 2},
         {"x": IMAGE, "kernel_h": 2, "kernel_w": 2, "stride": 2, "padding": 1}, F.avg_pool2d(IMAGE, 2, padding=1)),
    ],
)  # fmt: skip
def test_formulas_of_places_are_those_of_pytorch(
    name: str, sizes: dict[str, int], values: dict[str, Any], expected: Tensor
) -> None:
    found = gathered(formula(name), expected.shape, sizes, **values)
    torch.testing.assert_close(found, expected)


def test_a_request_defines_what_the_module_calls_of_pytorch() -> None:
    code = """
import torch
from torch.nn.functional import mish as act

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.split = torch.nn.LayerNorm(3), 2

    def forward(self, x):
        return act(self.norm(x)).flip(0) + self.split + self.chunk(x) + own.stack
"""
    assert [*definitions(code)] == ["LayerNorm", "mish", "flip", "stack"]
    assert "- `flip`: out[.., j, ..] = x[.., size - 1 - j, ..]\n" in kernel_request(code)[1]["content"]
    assert definitions("def") == {} and "- `" not in kernel_request("class Model:\n    pass\n")[1]["content"]


def test_the_id_of_the_request_depends_on_the_definitions(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    known = prompt_id("write")
    (tmp_path / "write.md.j2").write_text("{{ definitions }}")
    (tmp_path / "definitions.toml").write_text("")
    monkeypatch.setattr("kernelquarry.pipeline.prompts._FOLDER", tmp_path)
    prompt_id.cache_clear()
    empty = prompt_id("write")
    (tmp_path / "definitions.toml").write_text("a = 'b'")
    prompt_id.cache_clear()
    assert len({known, empty, prompt_id("write")}) == 3
    prompt_id.cache_clear()
