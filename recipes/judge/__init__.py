"""Judging a model's answer: verification in pools of sandboxes, rewards and speedups.

Imported by `evaluate`, `generate` and `train`.
"""
