"""Parts of a candidate that repeat its module: a constructor may hold them, and a call of forward may not."""

from __future__ import annotations

import pytest

from kernelquarry.filters.language import check

MODULE = '''
import numbers
import torch
from torch import nn
from torch.nn.modules.utils import _pair

class Block(nn.Sequential):
    """Two layers."""

    def __init__(self, width: int, layer=nn.ReLU()):
        super(Block, self).__init__(nn.Linear(width, width), layer)

class Model(nn.Module):
    def __init__(self, width, name="tanh", act=nn.GELU()):
        super().__init__()
        if isinstance(width, numbers.Integral):
            width = _pair(width)
        self.block = Block(width[0])
        self.steps = nn.utils.parameters_to_vector(self.parameters())
        self.act = eval(name)
        setattr(self, name, act)

    def forward(self, x):
        return self.block(x)
'''
CANDIDATE = """
import numbers
import torch
import triton
import triton.language as tl
from torch import nn
from torch.nn.modules.utils import _pair

@triton.jit
def copy(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(x_ptr + index, mask=index < size), mask=index < size)

class Block(nn.Sequential):
    def __init__(self, width, layer=nn.ReLU()):
        super().__init__(nn.Linear(width, width), layer)

class ModelNew(nn.Module):
    def __init__(self, width, name="tanh", act=nn.GELU()):
        super().__init__()
        if isinstance(width, numbers.Integral):
            width = _pair(width)
        self.block = Block(width[0])
        self.steps = nn.utils.parameters_to_vector(self.parameters())
        {init}

    def forward(self, x):
        out = torch.empty_like(x)
        copy[(1,)](x, out, x.numel(), BLOCK=128)
        {body}
        return out
"""


def _code(init: str = "pass", body: str = "pass") -> str:
    return CANDIDATE.format(init=init, body=body)


def test_a_constructor_may_repeat_its_module() -> None:
    assert check(_code(), module=MODULE) is None
    assert check(_code()) is not None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("class Block(nn.Sequential)", "class Block(nn.ModuleList)", "a class of nn.ModuleList"),
        ("layer=nn.ReLU()", "layer=nn.ELU()", "a default that is no constant"),
        ("vector(self", "vector(self.block", "nn.utils.parameters_to_vector"),
        ("isinstance(width, numbers.Integral)", "isinstance(width, numbers.Real)", "numbers.Real"),
        ("utils import _pair", "utils import _pair, _triple", "an import from torch.nn.modules.utils"),
    ],
)
def test_another_text_is_the_candidates_own(old: str, new: str, what: str) -> None:
    assert old in _code()
    assert what in str(check(_code().replace(old, new), module=MODULE))


@pytest.mark.parametrize("statement", ["self.act = eval(name)", "setattr(self, name, act)"])
def test_what_looks_names_up_stays_outside(statement: str) -> None:
    assert statement in MODULE
    assert "is outside of the language" in str(check(_code(init=statement), module=MODULE))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("self.steps = nn.utils.parameters_to_vector(self.parameters())", "an assignment to self.steps"),
        ("width = _pair(2)", "torch.nn.modules.utils._pair"),
        ("block = Block(2)", "a class of nn.Sequential"),
    ],
)
def test_a_call_of_forward_may_repeat_nothing(body: str, what: str) -> None:
    module = MODULE.replace("        self.act", f"        {body}\n        self.act")
    assert what in str(check(_code(body=body), module=module))
