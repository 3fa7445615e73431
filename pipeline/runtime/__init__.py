"""Shared machinery of the transforms: concurrency, the result store, fingerprints, counts.

Imported by `transforms` and the rooms above.
"""
