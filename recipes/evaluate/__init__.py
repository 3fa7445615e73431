"""Evaluation of a model on suites of problems: answers, scores, metrics and the leaderboard.

Imported by `pipeline.cli`.
"""
