"""Allow-list of imports for mined modules: numerics, and the part of the standard library that only computes."""

from __future__ import annotations

from functools import lru_cache

from .einops.pattern import DEFINED, FUNCTIONS

THIRD_PARTY = frozenset({"einops", "numpy", "torch", "typing_extensions"})

STANDARD = frozenset(
    """
    __future__ abc bisect cmath collections colorsys contextlib copy dataclasses decimal difflib enum fractions
    functools hashlib heapq inspect itertools json keyword logging math numbers operator pprint random re statistics
    string struct textwrap time types typing unicodedata warnings weakref
    """.split()
)

# Parts of the allowed packages that use the network, a compiler or other processes, or no longer exist.
FORBIDDEN = frozenset(
    """
    numpy.ctypeslib numpy.distutils numpy.f2py numpy.testing
    torch._six torch.hub torch.multiprocessing torch.utils.cpp_extension torch.utils.model_zoo
    torch.utils.tensorboard
    """.split()
)


@lru_cache(maxsize=4096)
def allowed(dotted: str) -> bool:
    """True if a mined module may contain `import a.b.c`, or use `a.b.c`."""
    root = dotted.partition(".")[0]
    if root not in THIRD_PARTY and root not in STANDARD:
        return False
    if root == "einops":  # rewritten in torch
        return any(f"{name}.".startswith(f"{dotted}.") for name in (*FUNCTIONS, *DEFINED))
    return not any(dotted == name or dotted.startswith(name + ".") for name in FORBIDDEN)


def is_standard(dotted: str) -> bool:
    return dotted.partition(".")[0] in STANDARD
