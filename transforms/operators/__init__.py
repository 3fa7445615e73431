"""Operators: write a module with a kernel for each operator, from a library of kernels for inputs of any size.

Such texts are slower than the compiler's and easier to learn: a module needs no kernel of its own, only the right
calls.
"""

from .write_candidate import GENERATOR, write_candidate

__all__ = ["GENERATOR", "write_candidate"]
