"""Text generation by a model: loading, sampling, decoding, serving, and the `KernelWriter`.

Imported by `evaluate`, `train` and `pipeline.cli`.
"""
