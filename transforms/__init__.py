"""Stages, one folder each, and what they share: `similarity`, `workloads`, `stage_transform`.

`pipeline.graph` loads the stages' transforms by name; `dataset`, `run`, `cli` and `recipes` import the rest.
"""
