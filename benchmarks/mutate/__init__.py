"""Mutants of verified kernels: sources with one mistake each, to measure which mistakes the verifier detects."""

from .mutants import Mutant, choose, diff, find_mutants
from .operator import Fault, Operator

__all__ = ["Fault", "Mutant", "Operator", "choose", "diff", "find_mutants"]
