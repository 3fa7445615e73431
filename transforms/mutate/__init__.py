"""Mutants of verified kernels: what a verifier has to find, to measure how much of it it finds."""

from .mutants import Mutant, choose, choose_likely, diff, find_mutants
from .operator import Fault, Operator

__all__ = ["Fault", "Mutant", "Operator", "choose", "choose_likely", "diff", "find_mutants"]
