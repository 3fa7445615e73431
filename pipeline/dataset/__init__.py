"""The published folder: shards, configs, card and metadata. Runs no stage.

Imports `schema`, `filters` and `runtime`.
"""
