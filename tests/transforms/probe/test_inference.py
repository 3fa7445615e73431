"""The constructor of a reference switches it to eval mode where that may matter."""

from __future__ import annotations

import textwrap

import pytest
import torch
from torch import nn

from kernelquarry.transforms.probe.inference import for_inference

PLAIN = "class Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
CASES = {
    "a constructor": """
        class Model(nn.Module):
            def __init__(self, p):
                super().__init__()
                self.drop = nn.Dropout(p)  # half of it

            def forward(self, x):
                return self.drop(x)
        """,
    "a constructor that ends in a block": """
        class Model(nn.Module):
            def __init__(self, p):
                super().__init__()
                for name in ("drop",):
                    setattr(self, name, nn.Dropout(p))
            def forward(self, x): return self.drop(x)
        """,
    "a constructor of the class below": """
        class Base(nn.Module):
            def __init__(self, p):
                super().__init__()
                self.drop = nn.Dropout(p)


        class Model(Base):
            \"\"\"Drops.\"\"\"

            def forward(self, x):
                return self.drop(x)
        """,
    "no docstring, and a decorator": """
        class Base(nn.Module):
            def __init__(self, p):
                super().__init__()
                self.drop = nn.Dropout(p)


        class Model(Base):
            @torch.no_grad()
            def forward(self, x):
                return self.drop(x)
        """,
    "the end of the file": """
        class Model(nn.Dropout):
            pass
        """,
}


@pytest.mark.parametrize("about", CASES)
def test_the_constructor_ends_training(about: str) -> None:
    code = for_inference(textwrap.dedent(CASES[about]).strip())
    namespace = {"nn": nn, "torch": torch}
    exec(code, namespace)
    model = namespace["Model"](0.5)
    assert not any(module.training for module in model.modules())
    assert torch.equal(model(torch.ones(9)), torch.ones(9))
    assert code.count("self.eval()") == 1


@pytest.mark.parametrize(
    "code",
    [
        PLAIN,
        PLAIN + "    def train(self, mode=True):\n        raise NotImplementedError('dropout')\n",
        "class Model(nn.Dropout): pass\n",
        "class Other(nn.Dropout):\n    pass\n",
    ],
)
def test_code_that_stays_as_it_is(code: str) -> None:
    assert for_inference(code) == code
