"""The search for constructor arguments and calls of `forward`, and the checks that a found call must pass.

Only `guest.jobs.probe` and `guest.similarity` import it.
"""
