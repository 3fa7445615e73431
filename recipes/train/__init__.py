"""Training: rows for it, supervised fine-tuning, GRPO with its rollouts, and the run directory.

Imported by `pipeline.cli`; `evaluate` imports `data`.
"""
