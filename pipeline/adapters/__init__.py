"""The checker in the interfaces of other projects: TRL, verifiers and KernelBench.

Imported by `pipeline.api`, which exports their public names.
"""
