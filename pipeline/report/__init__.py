"""Pages for people: the report of a run, one row side by side, what each filter removes.

Imported by `run` and `cli`.
"""
