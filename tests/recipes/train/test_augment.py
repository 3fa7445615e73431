"""Renaming a row's identifiers does not change the computation."""

from __future__ import annotations

import re
from dataclasses import replace

from factories import make_pairs, make_workload

from kernelquarry.pipeline.schema.records import CallShape, Pair, StateSpec, TensorSpec
from kernelquarry.recipes.train.augment import renamed, replaceable_names
from kernelquarry.recipes.train.data import chat_of

MODULE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

LIMIT = 4


class Model(nn.Module):
    def __init__(self, width, dim=1):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.dim = dim
        self.weight_of = {"gain": 2}
        self.register_buffer("shift", torch.zeros(width))

    def forward(self, image, b):
        tall = F.normalize(image, dim=self.dim) * self.scale
        tall = torch.einsum("b c h w, b c -> b h w", tall, b)
        return tall.clamp(max=LIMIT) + self.shift.sum()
"""
KERNEL = '''
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mul_kernel(image_ptr, scale_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """mul"""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < n_elements
    image = tl.load(image_ptr + offset, mask=mask)
    scale = tl.load(scale_ptr + offset, mask=mask)
    # F.normalize(image, dim=self.dim) * self.scale
    tl.store(out_ptr + offset, image * scale, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width, dim=1):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, image, b):
        raise ValueError(f"image is {tuple(image.shape)}, scale {self.scale.shape}")
'''


def test_names_known_outside_of_the_row_are_kept() -> None:
    names = replaceable_names(MODULE, KERNEL)
    assert names.attributes == ("scale", "weight_of")  # dim is a keyword of calls, gain stands in a string
    assert names.locals == ("image", "tall", "width")  # b is an axis, offset is the kernel's, LIMIT the module's


def test_module_and_kernel_stay_consistent() -> None:
    pair = replace(make_pairs(1)[0], python_code=MODULE, triton_code=KERNEL)
    others = [*renamed([pair, *make_pairs(6)], 4)][::7]
    assert {other.id for other in others} == {pair.id}
    changed = 0
    for other in others:
        ours, theirs = (replaceable_names(each.python_code, each.triton_code) for each in (pair, other))
        assert len(ours.attributes) == len(theirs.attributes)
        for old, new in zip(texts(pair), texts(other), strict=True):
            assert len(old.split()) == len(new.split())
        new = other.triton_code.split("def mul_kernel(")[1].split("_ptr")[0]  # the first argument follows the input
        assert f"def forward(self, {new}, b)" in other.python_code and f"F.normalize({new}, dim" in other.python_code
        assert (
            f'f"{new} is {{tuple({new}.shape)}}' in other.triton_code
            and f"{new} = tl.load({new}_ptr" in other.triton_code
        )
        assert '"b c h w, b c -> b h w"' in other.python_code and "n_elements" in other.triton_code
        changed += new != "image"
    assert changed


def test_the_chat_has_the_new_names() -> None:
    workload = replace(make_workload(5, 8), tensors=(TensorSpec("image", (5, 8), "float32"),))
    state = (StateSpec("scale", "parameter", (8,), "float32", 1.0, 0.0, 1.0),)
    pair = replace(make_pairs(1)[0], python_code=MODULE, triton_code=KERNEL)
    other_size = replace(workload, tensors=(TensorSpec("image", (6, 9), "float32"),))
    pair = replace(pair, workloads=(workload, other_size), guards=("input0_1 <= 31",), shape_general=True, state=state)
    pair = replace(pair, shapes=tuple(CallShape(call, (5, 1), "float32") for call in ("self.scale[0].conv", "scale")))
    names = set()
    for other in [*renamed([pair, *make_pairs(6)], 4)][::7]:
        name = other.triton_code.split("def mul_kernel(")[1].split("_ptr")[0]
        _, prompt, answer = chat_of(other, thinking=True)
        assert (
            f"for inputs `{name}` (batch, length), where names are sizes that vary and `length <= 31`."
            in prompt["content"]
        )
        (scale,) = re.findall(r"self\.(\w+) = nn\.Parameter", other.triton_code)
        assert f"`self.{scale}[0].conv` gives (5, 1), `scale` gives (5, 1)." in prompt["content"]
        assert f"It owns `{scale}` [8];" in answer["content"] and f"brings `{name}` [5, 8]" in answer["content"]
        names |= {name, scale}
    assert len(names) > 3


def test_the_draw_depends_on_the_seed() -> None:
    pairs = make_pairs(6)
    first, again, other = (list(renamed(pairs, 2, seed)) for seed in (0, 0, 1))
    assert first == again and first != other
    assert len(first) == 12 and not list(renamed(pairs, 0))


def test_renamed_rows_parse() -> None:
    for other in renamed(make_pairs(6), 3):
        for text in texts(other):
            compile(text, "text", "exec")


def texts(pair: Pair) -> tuple[str, str]:
    return pair.python_code, pair.triton_code
