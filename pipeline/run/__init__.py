"""Building a run directory: which stages are up to date, running the others, merging parts, writing the products."""
