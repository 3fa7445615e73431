"""Compiling, tracing and launching a candidate's kernels. The rooms `interpreter` and `jobs` import it."""
