"""Turn one of Inductor's kernels into a plain `triton.jit` function and choose its launch options."""
