"""Compiling and tracing a candidate's kernels on a machine without a GPU."""
