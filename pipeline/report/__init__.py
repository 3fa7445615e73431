"""Views of a run for people: the HTML report, one row side by side, and an ablation of the filters.

Imported by `run` and `cli`.
"""
