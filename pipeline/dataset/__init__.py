"""The published dataset folder: shards, configs, card and metadata.

Imported by `publish`, `report`, `run` and `cli`.
"""
