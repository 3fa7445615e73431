"""Every configuration of an autotuned kernel comes first once."""

from __future__ import annotations

from kernelquarry.transforms.verify.configurations import others

TWO_KERNELS = """
@triton.autotune(configs=[triton.Config({'B': 1}), triton.Config({'B': 2}), triton.Config({'B': 3})], key=['n'])
@triton.jit
def one(x): pass

@triton.autotune([triton.Config({'C': 4}), triton.Config({'C': 5})], ['n'])
@triton.jit
def two(x): pass
"""


def test_each_configuration_is_first_once() -> None:
    firsts = [[line.split("Config({'")[1].split("}")[0] for line in code.splitlines() if "Config(" in line]
              for code in others(TWO_KERNELS)]  # fmt: skip
    assert firsts == [["B': 2", "C': 5"], ["B': 3", "C': 4"]]


def test_what_is_not_tuned_has_no_others() -> None:
    assert list(others("x = 1")) == []
    assert list(others("@triton.autotune(configs=made(), key=[])\ndef f(): pass")) == []
