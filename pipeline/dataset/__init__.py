"""The published dataset folder: shards, configs, card and metadata.

Imported by `publish`, `report`, `run`, `cli` and `recipes.train`.
"""
