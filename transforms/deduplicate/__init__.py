"""Deduplicate: keep the best of the modules that copy each other, and put similar modules into one cluster.

`transforms.wiring` imports its steps; nothing here needs Beam or a sandbox.
"""
