"""Mutants of verified kernels: sources with one mistake each, to measure which mistakes the verifier detects.

`transforms.verify` scores candidates with them, and `benchmarks/mutants.py` measures the verifier.
"""

from .mutants import Mutant, choose, choose_likely, diff, find_mutants
from .operator import Fault, Operator

__all__ = ["Fault", "Mutant", "Operator", "choose", "choose_likely", "diff", "find_mutants"]
