"""Triton's language on the CPU: all programs of a grid at once, in NumPy, with checked memory accesses.

The room `jobs` imports it.
"""
