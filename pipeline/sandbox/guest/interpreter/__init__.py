"""Triton's language on the CPU: all programs of a grid at once, in NumPy, with every memory access checked."""
