"""Functions of PyTorch as Triton kernels for inputs of any size: what `write_answer` puts into files."""
