"""Functions of PyTorch as Triton kernels for inputs of any size: what `write_candidate` puts into files."""
