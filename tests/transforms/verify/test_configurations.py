"""Each configuration of an autotuned kernel comes first in one variant of the source."""

from __future__ import annotations

from kernelquarry.transforms.verify.configurations import rotate_configurations

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
              for code in rotate_configurations(TWO_KERNELS)]  # fmt: skip
    assert firsts == [["B': 2", "C': 5"], ["B': 3", "C': 4"]]


def test_a_source_without_literal_configurations_has_no_variants() -> None:
    assert list(rotate_configurations("x = 1")) == []
    assert list(rotate_configurations("@triton.autotune(configs=made(), key=[])\ndef f(): pass")) == []
