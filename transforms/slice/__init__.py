"""Slice: cut probed modules into small modules of one to eight operators.

`pipeline.graph` loads `transform.py`; the other files need no Beam.
"""
