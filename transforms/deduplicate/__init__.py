"""Deduplicate: keep the best of the modules that copy each other, and put similar modules into one cluster.

`pipeline.graph` loads `transform.py`; the other files need no Beam.
"""
