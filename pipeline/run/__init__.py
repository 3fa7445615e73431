"""Building a run: bring stages up to date, merge parts of several machines, write the products.

Imported by `cli` alone.
"""
