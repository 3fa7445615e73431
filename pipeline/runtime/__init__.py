"""What the transforms of all stages use: concurrency, the result store, fingerprints, counts. Imported by `transforms`
and above.
"""
